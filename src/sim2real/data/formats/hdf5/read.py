"""HDF5 files of robomimic and ALOHA as episodes.

Both hold one row a control step and no time stamps: times are row numbers over a rate, which is
given, or stands in the file, or is ALOHA's 50 Hz. Pictures become videos. The file is read by a
child process (`reader_process.py`), because the HDF5 library does not survive every damaged file.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from sim2real.data.episode import Episode, Signal
from sim2real.data.formats.columns.column_table import channel_name, explained, unpacked_limit
from sim2real.data.formats.film import decoded_picture, video_of
from sim2real.data.provenance import Origin, Provenance
from sim2real.data.video import Video
from sim2real.errors import Sim2RealError, number_at, table_at

ALOHA_HZ = 50.0
"""Rate of an ALOHA recording where none is given [Hz]: its files do not say it."""
OWN = "sim2real"
"""Group with what `write_hdf5` knows beyond robomimic's layout."""
_BLOCK_FRAMES = 16
_READER_PROCESS = Path(__file__).with_name("reader_process.py")
_PICTURES_MIN_PIXELS = 8


def read_hdf5(path: Path, *, base: Provenance, rate_hz: float = 0.0) -> Iterator[Episode]:
    """The episodes of a robomimic or ALOHA file, or of all those in a folder, in order.

    `rate_hz` is the rate of the rows [Hz]; without it, robomimic's `control_freq` or ALOHA's 50 Hz.
    """
    path = Path(path)
    files = [path]
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.suffix in (".hdf5", ".h5"))
        if not files:
            raise Sim2RealError(f"{path} holds no HDF5 file")
    with Hdf5Reader() as reader:
        for file in files:
            yield from reader.episodes(file, base=base, rate_hz=rate_hz)


class Hdf5File:
    """What one open file holds."""

    def __init__(self, *, reader: Hdf5Reader, told: dict[str, Any], source: str) -> None:
        self.datasets: dict[str, dict[str, Any]] = told["datasets"]
        """Shape and type of each dataset by its path."""
        self.attributes: dict[str, dict[str, Any]] = told["attributes"]
        """Attributes of each group by its path; '' is the file."""
        self.source = source
        """Provenance of an episode, with '{}' for its name in the file."""
        self._reader = reader

    def below(self, group: str) -> list[str]:
        """Paths of the datasets in a group and in those inside it."""
        return sorted(name for name in self.datasets if name.startswith(f"{group}/"))

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of a dataset, which must be numbers."""
        if name not in self.datasets:
            raise Sim2RealError(f"no dataset {name!r}")
        about = self.datasets[name]
        if not about["numbers"]:
            raise Sim2RealError(f"{name[:80]!r} holds {about['dtype']} instead of numbers")
        return tuple(about["shape"])

    def rows(self, name: str, start: int, end: int) -> np.ndarray:
        """Some rows of a dataset."""
        shape, dtype = self.shape(name), np.dtype(self.datasets[name]["dtype"])
        content = self._reader.read(name, start, end)
        count = len(range(*slice(start, end).indices(shape[0])))
        if len(content) != dtype.itemsize * count * math.prod(shape[1:]):
            raise Sim2RealError(f"{name[:80]!r}: its data do not fit its shape")
        return np.frombuffer(content, dtype).reshape(count, *shape[1:])

    def array(self, name: str) -> np.ndarray:
        """A whole dataset, which must have rows."""
        shape = self.shape(name)
        if not shape:
            raise Sim2RealError(f"{name[:80]!r} is a single value, not a list of rows")
        return self.rows(name, 0, shape[0])

    def json(self, name: str) -> Any:
        """The JSON that a dataset of bytes holds."""
        return json.loads(self.array(name).astype("u1").tobytes())


class Hdf5Reader:
    """A child process that reads HDF5 files, one after the other; started anew when it dies."""

    def __init__(self, *, patience_s: float = 30.0) -> None:
        self.patience_s = patience_s
        """How long one answer may take for a small file [s]; a large one has more."""
        self._child: subprocess.Popen[bytes] | None = None
        self._limit_s = patience_s

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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
            tree = Hdf5File(reader=self, told=told, source=f"{path.name}:{{}} sha256:{digest}")
            if any(name.startswith(f"{OWN}/") for name in tree.datasets):
                yield from _own(tree)
            elif any(re.match(r"data/[^/]+/", name) for name in tree.datasets):
                yield from _robomimic(tree, base, rate_hz)
            elif "action" in tree.datasets and tree.below("observations"):
                source = f"{path.name} sha256:{digest}"
                yield _aloha(tree, replace(base, source=source), rate_hz)
            else:
                shown = ", ".join(repr(name[:40]) for name in list(tree.datasets)[:8]) or "nothing"
                raise Sim2RealError(f"neither robomimic's layout nor ALOHA's; it holds {shown}")

    def read(self, name: str, start: int, end: int) -> bytes:
        """The bytes of some rows of a dataset of the open file."""
        return self._ask({"read": name, "start": start, "end": end})[1]

    def _ask(self, request: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
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
            raise Sim2RealError("damaged: the HDF5 library crashes on it or comes to no end")
        if "error" in told:
            raise Sim2RealError(str(told["error"]))
        return told, content

    def _started(self) -> subprocess.Popen[bytes]:
        if self._child is None or self._child.poll() is not None:
            self.close()
            # By its file, not as a module: the package's own imports would take longer than h5py's.
            self._child = subprocess.Popen(
                [sys.executable, "-P", str(_READER_PROCESS)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        return self._child


def _robomimic(tree: Hdf5File, base: Provenance, rate_hz: float) -> Iterator[Episode]:
    """One episode a demonstration: every dataset of it, but `next_obs`, which repeats `obs`."""
    told = _environment(tree)
    kwargs = told.get("env_kwargs")
    stated = kwargs.get("control_freq", 0.0) if isinstance(kwargs, dict) else 0.0
    rate_hz = rate_hz or number_at(stated, "env_args: control_freq")
    if rate_hz <= 0:
        raise Sim2RealError("no time stamps and no control_freq in env_args: give a rate")
    if not base.task and isinstance(told.get("env_name"), str):
        base = replace(base, task=told["env_name"])
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
    return sorted(groups, key=lambda name: [int(p) if p.isdigit() else p for p in _parts(name)])


def _parts(name: str) -> list[str]:
    return re.split(r"(\d{1,9})", name)


def _environment(tree: Hdf5File) -> dict[str, Any]:
    """What the file says about robomimic's environment."""
    text = tree.attributes.get("data", {}).get("env_args", "{}")
    try:
        told = json.loads(str(text))
    except (ValueError, RecursionError):
        raise Sim2RealError("its attribute env_args is not JSON") from None
    return dict(table_at(told, "env_args"))


def _channel(tree: Hdf5File, name: str, rate_hz: float) -> Signal | Video:
    """A dataset as a channel: a video where it holds RGB pictures of bytes."""
    shape = tree.shape(name)
    times = np.arange(shape[0] if shape else 0) / rate_hz
    pictures = len(shape) == 4 and shape[3] == 3 and tree.datasets[name]["dtype"] == "|u1"
    if pictures and shape[0] and min(shape[1:3]) >= _PICTURES_MIN_PIXELS:
        return video_of(times, _frames(tree, name, shape[0]), stated_hz=rate_hz)
    return Signal(times, tree.array(name), "", rate_hz)


def _frames(tree: Hdf5File, name: str, count: int) -> Iterator[np.ndarray]:
    for start in range(0, count, _BLOCK_FRAMES):
        yield from tree.rows(name, start, min(count, start + _BLOCK_FRAMES))


def _aloha(tree: Hdf5File, base: Provenance, rate_hz: float) -> Episode:
    """The episode of an ALOHA file. Its arms' joints [rad] and grippers (a ratio) share a list."""
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
            channels[channel_name(name)] = video_of(times, frames, stated_hz=rate_hz)
        else:
            channels[channel_name(name)] = _channel(tree, name, rate_hz)
    return Episode(channels, base)


def _unpacked(tree: Hdf5File, name: str) -> Iterator[np.ndarray]:
    """Pictures kept as JPEG, each padded with zeros to the length of the longest."""
    for number, row in enumerate(_frames(tree, name, tree.shape(name)[0])):
        yield decoded_picture(row.astype("u1").tobytes(), f"{name}, picture {number}")


def _own(tree: Hdf5File) -> Iterator[Episode]:
    """The episodes of a file that `write_hdf5` wrote, checked against their ids."""
    for demo in _demos(tree):
        name = demo.removeprefix("data/")
        told = table_at(tree.json(f"{OWN}/{name}/about"), name)
        times = tree.array(f"{OWN}/{name}/times")
        channels: dict[str, Signal | Video] = {}
        for channel, entry in table_at(told.get("channels"), f"{name}: channels").items():
            about = table_at(entry, f"{name}: {channel!r}")
            stated_hz = number_at(about.get("stated_hz"), f"{name}: stated_hz")
            values, unit = tree.array(str(about.get("data"))), str(about.get("unit", ""))
            channels[channel] = (
                Video(times, values.astype("u1").tobytes(), stated_hz, unit)
                if about.get("video")
                else Signal(times, values, unit, stated_hz)
            )
        episode = Episode(
            channels,
            Provenance.from_dict(table_at(told.get("provenance"), name)),
            str(told.get("outcome", "")),
        )
        if episode.id != told.get("id"):
            raise Sim2RealError(f"{name} is damaged: its content does not fit its id")
        yield episode
