"""HDF5 files of robomimic and ALOHA as episodes.

Both have one row per control step and no time stamps: times are row numbers divided by a rate,
which is given, is in the file, or is ALOHA's 50 Hz. Images become videos. A child process
(`reader_process.py`) reads the file, because the HDF5 library may crash on a damaged one.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from sim2real.arrays import Array, Pixels
from sim2real.data.episode import Episode, Signal, channel_name
from sim2real.data.formats.columns.column_table import unpacked_limit
from sim2real.data.formats.file_errors import explained
from sim2real.data.formats.film import decoded_picture
from sim2real.data.formats.round_trip import restored
from sim2real.data.provenance import Origin, Provenance
from sim2real.data.video import Video
from sim2real.errors import Sim2RealError, explaining, number_at, table_at

if TYPE_CHECKING:
    from sim2real.data.formats.hdf5.reader_process import Attributes, Dataset, FileContent, Request

ALOHA_HZ = 50.0
"""Rate of an ALOHA recording if none is given [Hz]; the files do not say."""
OWN = "sim2real"
"""Group with what `write_hdf5` writes beyond robomimic's layout."""
_BLOCK_FRAMES = 16
READER_PROCESS = Path(__file__).with_name("reader_process.py")
_PICTURES_MIN_PIXELS = 8


def read_hdf5(path: Path, *, base: Provenance, rate_hz: float = 0.0) -> Iterator[Episode]:
    """The episodes of a robomimic or ALOHA file, or of all files in a folder, in order.

    `rate_hz` is the rate of the rows [Hz]; by default robomimic's `control_freq`, or ALOHA's 50 Hz.
    """
    path = Path(path)
    files = [path]
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.suffix in (".hdf5", ".h5"))
        if not files:
            raise Sim2RealError(f"{path} contains no HDF5 file")
    with closing(Hdf5Reader()) as reader:
        for file in files:
            yield from reader.episodes(file, base=base, rate_hz=rate_hz)


@dataclass(frozen=True, kw_only=True)
class Hdf5File:
    """The content of one open file."""

    reader: Hdf5Reader
    datasets: dict[str, Dataset]
    """Shape and type of each dataset by its path."""
    attributes: dict[str, Attributes]
    """Attributes of each group by its path; '' is the file."""
    source: str
    """Source of an episode, with '{}' for its name in the file."""

    def below(self, group: str) -> list[str]:
        """Paths of the datasets in a group and its subgroups."""
        return sorted(name for name in self.datasets if name.startswith(f"{group}/"))

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of a dataset, which must be numbers."""
        if name not in self.datasets:
            raise Sim2RealError(f"no dataset {name!r}")
        about = self.datasets[name]
        if not about["numbers"]:
            raise Sim2RealError(f"{name[:80]!r} holds {about['dtype']} instead of numbers")
        return tuple(about["shape"])

    def rows(self, name: str, start: int, end: int) -> Array:
        """Some rows of a dataset."""
        shape, dtype = self.shape(name), np.dtype(self.datasets[name]["dtype"])
        content = self.reader.read(name, start, end)
        count = len(range(*slice(start, end).indices(shape[0])))
        if len(content) != dtype.itemsize * count * math.prod(shape[1:]):
            raise Sim2RealError(f"{name[:80]!r}: its data do not match its shape")
        return np.frombuffer(content, dtype).reshape(count, *shape[1:])

    def array(self, name: str) -> Array:
        """A whole dataset, which must have rows."""
        shape = self.shape(name)
        if not shape:
            raise Sim2RealError(f"{name[:80]!r} is a single value, not a list of rows")
        return self.rows(name, 0, shape[0])

    def json(self, name: str) -> object:
        """The JSON value in a dataset of bytes."""
        found: object = json.loads(self.array(name).astype("u1").tobytes())
        return found


class Hdf5Reader:
    """A child process that reads HDF5 files, one after the other; restarted when it dies."""

    def __init__(self, *, patience_s: float = 30.0) -> None:
        self.patience_s = patience_s
        """Time limit of an answer for a small file [s]; larger files get more."""
        self._child: subprocess.Popen[bytes] | None = None
        self._limit_s = patience_s

    def close(self) -> None:
        """End the child."""
        if self._child is not None:
            self._child.kill()
            self._child.communicate()
            self._child = None

    def episodes(self, path: Path, *, base: Provenance, rate_hz: float = 0.0) -> Iterator[Episode]:
        """As `read_hdf5`."""
        path = Path(path)
        with explained(path):
            size = path.stat().st_size
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            self._limit_s = self.patience_s + size / 10e6
            told, _ = self._ask({"open": str(path.resolve()), "limit": unpacked_limit(size)})
            content = cast("FileContent", told)
            source = f"{path.name}:{{}} sha256:{digest}"
            tree = Hdf5File(reader=self, source=source, **content)
            if any(name.startswith(f"{OWN}/") for name in tree.datasets):
                yield from _own(tree)
            elif any(re.match(r"data/[^/]+/", name) for name in tree.datasets):
                yield from _robomimic(tree, base, rate_hz)
            elif "action" in tree.datasets and tree.below("observations"):
                source = f"{path.name} sha256:{digest}"
                yield _aloha(tree, replace(base, source=source), rate_hz)
            else:
                shown = ", ".join(repr(name[:40]) for name in list(tree.datasets)[:8]) or "nothing"
                raise Sim2RealError(f"neither robomimic's layout nor ALOHA's; it contains {shown}")

    def read(self, name: str, start: int, end: int) -> bytes:
        """The bytes of some rows of a dataset in the open file."""
        return self._ask({"read": name, "start": start, "end": end})[1]

    def _ask(self, request: Request) -> tuple[dict[str, object], bytes]:
        child = self._started()
        if child.stdin is None or child.stdout is None:
            raise Sim2RealError("the process that reads HDF5 has no pipes")
        watch = threading.Timer(self._limit_s, child.kill)
        watch.start()
        try:
            child.stdin.write(json.dumps(request).encode() + b"\n")
            child.stdin.flush()
            line = child.stdout.readline()
            told = json.loads(line) if line.endswith(b"\n") else None
            content = child.stdout.read(told.get("bytes", 0)) if told else b""
        except BrokenPipeError:
            told = None
        finally:
            watch.cancel()
        if told is None or len(content) != told.get("bytes", 0):
            self.close()
            raise Sim2RealError("damaged: the HDF5 library crashes or does not finish")
        if "error" in told:
            raise Sim2RealError(str(told["error"]))
        return told, content

    def _started(self) -> subprocess.Popen[bytes]:
        if self._child is None or self._child.poll() is not None:
            self.close()
            # As a file, not as a module: importing the package would take longer than h5py.
            self._child = subprocess.Popen(
                [sys.executable, "-P", str(READER_PROCESS)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        return self._child


def _robomimic(tree: Hdf5File, base: Provenance, rate_hz: float) -> Iterator[Episode]:
    """One episode per demonstration: all its datasets but `next_obs`, which repeats `obs`."""
    told = _environment(tree)
    kwargs = told.get("env_kwargs")
    stated = kwargs.get("control_freq", 0.0) if isinstance(kwargs, dict) else 0.0
    rate_hz = rate_hz or number_at(stated, "env_args: control_freq")
    if rate_hz <= 0:
        raise Sim2RealError("no time stamps and no control_freq in env_args: give a rate")
    if not base.task and isinstance(told.get("env_name"), str):
        base = replace(base, task=str(told["env_name"]))
    for demo in _demos(tree):
        names = [name for name in tree.below(demo) if f"{demo}/next_obs/" not in name]
        channels = {
            channel_name(name.removeprefix(f"{demo}/")): _channel(tree, name, rate_hz)
            for name in names
        }
        if channels:
            source = tree.source.format(demo.removeprefix("data/"))
            yield Episode(channels, replace(base, source=source))


def _demos(tree: Hdf5File) -> list[str]:
    """Groups of the demonstrations, demo_2 before demo_10."""
    found = {"/".join(name.split("/")[:2]) for name in tree.datasets if name.startswith("data/")}
    groups = [name for name in found if name in tree.attributes]

    def parts(name: str) -> list[int | str]:
        return [int(p) if p.isdigit() else p for p in re.split(r"(\d{1,9})", name)]

    return sorted(groups, key=parts)


def _environment(tree: Hdf5File) -> Mapping[str, object]:
    """The description of robomimic's environment in the file."""
    text = tree.attributes.get("data", {}).get("env_args", "{}")
    with explaining("its attribute env_args is not JSON", ValueError, RecursionError):
        return table_at(json.loads(str(text)), "env_args")


def _channel(tree: Hdf5File, name: str, rate_hz: float) -> Signal | Video:
    """A dataset as a channel: a video if it holds RGB images."""
    shape = tree.shape(name)
    times = np.arange(shape[0] if shape else 0) / rate_hz
    pictures = len(shape) == 4 and shape[3] == 3 and tree.datasets[name]["dtype"] == "|u1"
    if pictures and shape[0] and min(shape[1:3]) >= _PICTURES_MIN_PIXELS:
        return Video.encode(times, _frames(tree, name, shape[0]), stated_hz=rate_hz)
    return Signal(times, tree.array(name), "", rate_hz)


def _frames(tree: Hdf5File, name: str, count: int) -> Iterator[Pixels]:
    for start in range(0, count, _BLOCK_FRAMES):
        yield from tree.rows(name, start, min(count, start + _BLOCK_FRAMES)).astype(
            "u1", copy=False
        )


def _aloha(tree: Hdf5File, base: Provenance, rate_hz: float) -> Episode:
    """The episode of an ALOHA file; joints [rad] and grippers (a ratio) share a list."""
    rate_hz = rate_hz or ALOHA_HZ
    about = tree.attributes[""]
    if "sim" in about:
        base = replace(base, kind=Origin.SIMULATED if about["sim"] else Origin.REAL)
    channels: dict[str, Signal | Video] = {}
    for name in [*(n for n in tree.datasets if "/" not in n), *tree.below("observations")]:
        camera = name.removeprefix("observations/images/")
        if name == "compress_len":
            continue
        if camera != name and len(tree.shape(name)) == 2:
            times = np.arange(tree.shape(name)[0]) / rate_hz
            frames = _unpacked(tree, name)
            channels[channel_name(name)] = Video.encode(times, frames, stated_hz=rate_hz)
        else:
            channels[channel_name(name)] = _channel(tree, name, rate_hz)
    return Episode(channels, base)


def _unpacked(tree: Hdf5File, name: str) -> Iterator[Pixels]:
    """Images stored as JPEG, each padded with zeros to the length of the longest."""
    for number, row in enumerate(_frames(tree, name, tree.shape(name)[0])):
        yield decoded_picture(row.tobytes(), f"{name}, image {number}")


def _own(tree: Hdf5File) -> Iterator[Episode]:
    """The episodes that `write_hdf5` wrote, checked against their ids."""
    for demo in _demos(tree):
        name = demo.removeprefix("data/")
        times = tree.array(f"{OWN}/{name}/times")

        def samples(channel: Mapping[str, object], times: Array = times) -> tuple[Array, Array]:
            return times, tree.array(str(channel.get("data")))

        yield restored(tree.json(f"{OWN}/{name}/about"), samples, name)
