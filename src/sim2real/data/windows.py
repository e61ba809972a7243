"""Windows of many episodes, for training.

The chosen channels are stored once as flat arrays in memory-mapped files, so that a batch of
windows is one gather per channel. Channels are sampled at the times of a clock channel; between its
own samples, a channel holds its last value.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import TypedDict, cast

import numpy as np
import pyarrow as pa

from sim2real.arrays import Array, Ints
from sim2real.data.arrow_rows import read_channel
from sim2real.data.episode import Signal, held
from sim2real.data.lake import Lake, quoted
from sim2real.data.mixture import frame_counts
from sim2real.data.sealed_table import Damage
from sim2real.errors import Sim2RealError
from sim2real.files import atomic_folder, read_json, write_json, write_text
from sim2real.storage import Storage

_EPISODES_PER_READ = 500
_FOLDER = "windows"


class _Index(TypedDict):
    """The content of a folder of stored windows."""

    ids: list[str]
    channels: list[str]
    frames: list[int]
    """Number of frames of each episode."""
    sha256: dict[str, str]
    """Hash of each file."""


class Windows:
    """Channels of the episodes `ids`, at the samples of a clock channel."""

    def __init__(self, folder: Path) -> None:
        """Open what `Windows.of` stored in a folder."""
        index = cast(_Index, read_json(folder / "index.json"))
        self.ids, self.channels = index["ids"], index["channels"]
        self._ends = np.cumsum(index["frames"])
        self._values = {
            name: np.load(folder / f"{k}.npy", mmap_mode="r")
            for k, name in enumerate(self.channels)
        }

    @classmethod
    def of(
        cls,
        lake: Lake,
        ids: Sequence[str],
        *,
        channels: Sequence[str],
        clock: str = "",
        purpose: str = "training",
        folder: Path | None = None,
        report: Callable[[int, int], None] = lambda done, of: None,
    ) -> Windows:
        """Windows over the episodes: stored on the first call, opened on later ones.

        `clock` is the first channel if not given. The arrays are kept in `folder`, by default
        inside the lake. A lake on object storage needs a folder, and a withdrawal does not reach
        it there. The people in the episodes must have agreed to `purpose`.
        """
        if folder is None and not lake.storage.local:
            raise Sim2RealError("windows of a lake on object storage need a local folder")
        root = lake.storage.path(_FOLDER) if folder is None else Path(folder)
        if not ids or not channels or len(set(channels)) < len(channels):
            raise Sim2RealError("windows need episodes, and channels without repeats")
        for missing in sorted(set(ids) - set(lake.present(ids))):
            raise Sim2RealError(f"no episode {missing!r} in {lake.uri}")
        lake.permit(ids, purpose)
        clock = clock or channels[0]
        key = hashlib.sha256(json.dumps([list(ids), list(channels), clock]).encode())
        place = root / key.hexdigest()[:32]
        if not place.exists():
            try:
                with lake.storage.lock(alone=False), atomic_folder(place) as temporary:
                    _lay_out(lake, list(ids), list(channels), clock, temporary, report)
            except Sim2RealError:
                if not place.exists():  # else another process was faster
                    raise
        return cls(place)

    @property
    def frames(self) -> Ints:
        """Number of frames of each episode."""
        return np.diff(self._ends, prepend=0)

    def take(self, episodes: Ints, starts: Ints, length: int) -> dict[str, Array]:
        """Windows (windows, length, …) of each channel, from the frames `starts` on.

        Where a window reaches beyond its episode, the last frame is repeated.
        """
        first, last = self._ends[episodes] - self.frames[episodes], self._ends[episodes] - 1
        rows = np.minimum((first + starts)[:, None] + np.arange(length), last[:, None])
        return {name: values[rows] for name, values in self._values.items()}


def forget(storage: Storage, ids: Collection[str]) -> None:
    """Delete stored windows in a lake that hold any of these episodes or cannot be read."""
    for folder in _layouts(storage):
        try:
            index = json.loads(storage.read(f"{folder}/index.json"))
            touched = not set(ids).isdisjoint(index["ids"])
        except (Sim2RealError, ValueError, KeyError, TypeError):
            touched = True
        if touched:
            storage.delete_folder(folder)


def verify_windows(storage: Storage) -> Iterator[Damage]:
    """Stored windows in a lake that have changed; deleting them loses nothing."""
    for folder in _layouts(storage):
        try:
            index = storage.read(f"{folder}/index.json")
            seal = storage.read(f"{folder}/index.sha256").decode("ascii", "replace")
            sound = seal == hashlib.sha256(index).hexdigest() and all(
                storage.digest(f"{folder}/{name}") == digest
                for name, digest in json.loads(index)["sha256"].items()
            )
        except Sim2RealError:
            sound = False
        if not sound:
            yield Damage(file=folder, message="has changed since it was written; delete it")


def _layouts(storage: Storage) -> list[str]:
    return sorted({name.rpartition("/")[0] for name in storage.names(_FOLDER)})


def _lay_out(
    lake: Lake,
    ids: list[str],
    channels: list[str],
    clock: str,
    folder: Path,
    report: Callable[[int, int], None],
) -> None:
    counts = frame_counts(lake, ids, clock)
    frames = [counts[id_] for id_ in ids]
    files: dict[str, np.memmap[tuple[int, ...], np.dtype[np.generic]]] = {}
    first = 0
    for begin in range(0, len(ids), _EPISODES_PER_READ):
        chosen = ids[begin : begin + _EPISODES_PER_READ]
        found = _signals(lake, chosen, {*channels, clock})
        for id_ in chosen:
            mine = found.get(id_, {})
            for name in (clock, *channels):
                if name not in mine:
                    raise Sim2RealError(f"episode {id_} has no samples of channel {name!r}")
            at = mine[clock].times
            for k, name in enumerate(channels):
                signal = mine[name]
                if name not in files:
                    files[name] = np.lib.format.open_memmap(
                        folder / f"{k}.npy",
                        "w+",
                        signal.values.dtype,
                        (sum(frames), *signal.shape),
                    )
                file = files[name]
                if signal.values.dtype != file.dtype or signal.shape != file.shape[1:]:
                    raise Sim2RealError(
                        f"channel {name!r} of episode {id_} is {signal.values.dtype}{signal.shape},"
                        f" others are {file.dtype}{file.shape[1:]}"
                    )
                same = np.array_equal(signal.times, at)
                values = signal.values if same else signal.values[held(signal.times, at)]
                file[first : first + len(at)] = values
            first += len(at)
        report(min(begin + _EPISODES_PER_READ, len(ids)), len(ids))
    for file in files.values():
        file.flush()
    names = [f"{k}.npy" for k in range(len(channels))]
    digests = {name: Storage(str(folder)).digest(name) for name in names}
    write_json(
        folder / "index.json", _Index(ids=ids, channels=channels, frames=frames, sha256=digests)
    )
    write_text(folder / "index.sha256", Storage(str(folder)).digest("index.json"))


def _signals(lake: Lake, ids: list[str], channels: set[str]) -> dict[str, dict[str, Signal]]:
    names = pa.table({"channel": pa.array(sorted(channels), pa.string())})
    rows = lake.query(
        "select stored_signals.* from stored_signals semi join names using (channel)"
        f" where episode in ({quoted(ids)})",
        names=names,
    ).combine_chunks()
    found: dict[str, dict[str, Signal]] = {}
    for row in range(rows.num_rows):
        signal = read_channel(rows, row, lake.film)
        if isinstance(signal, Signal) and len(signal.times):
            mine = found.setdefault(rows["episode"][row].as_py(), {})
            mine[rows["channel"][row].as_py()] = signal
    return found
