"""Arrays in npz files, read without running any code in them; and episodes written as such."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np

from sim2real.arrays import Array
from sim2real.data.episode import Episode
from sim2real.data.formats.columns.column_table import ColumnTable, read_bytes, unpacked_limit
from sim2real.data.formats.round_trip import described, restored, stored
from sim2real.data.video import Video
from sim2real.errors import Sim2RealError, table_at
from sim2real.files import atomic_path

OWN = "sim2real"
"""Name of the array that lists, as JSON, the episodes that `write_npz` wrote."""


def read_npz(path: Path) -> ColumnTable:
    """The file's arrays, each read when it is used; one with a single value is a scalar too."""
    data, digest = read_bytes(path)
    archive = zipfile.ZipFile(io.BytesIO(data))
    members = {info.filename: info for info in archive.infolist()}
    if sum(info.file_size for info in archive.infolist()) > unpacked_limit(len(data)):
        raise Sim2RealError("it decompresses to far more than its own size")
    loaders, scalars, texts = {}, {}, set()
    for filename, info in members.items():
        if not filename.endswith(".npy"):
            continue
        name = filename.removesuffix(".npy")
        loaders[name] = partial(_array, archive, info)
        shape, dtype = _head(archive, info)
        if dtype.kind in "US":
            texts.add(name)
        if np.prod(shape, dtype=object) == 1 and dtype.kind in "biufU" and info.file_size < 10_000:
            scalars[name] = _array(archive, info).item()
    return ColumnTable(loaders=loaders, scalars=scalars, texts=frozenset(texts), sha256=digest)


def write_npz(path: Path, episodes: Iterable[Episode]) -> None:
    """Write episodes into one npz file, from which `read_columns` restores them with their ids."""
    about = []
    with atomic_path(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for number, episode in enumerate(episodes):
            clocks: dict[bytes, str] = {}
            channels: dict[str, object] = {}
            for name, channel in episode.channels.items():
                key = channel.times.tobytes()
                if key not in clocks:
                    clocks[key] = f"{number}/clock_{len(clocks)}"
                    _add(archive, clocks[key], channel.times)
                where = f"{number}/{name}"
                _add(archive, where, stored(channel))
                channels[name] = {
                    "values": where,
                    "times": clocks[key],
                    "unit": channel.unit,
                    "stated_hz": channel.stated_hz,
                    "video": isinstance(channel, Video),
                }
            about.append(described(episode, channels))
        _add(archive, OWN, np.array(json.dumps({"version": 1, "episodes": about})))


def _add(archive: zipfile.ZipFile, name: str, array: Array) -> None:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=False)
    # A fixed date, so that the same episodes give the same bytes.
    info = zipfile.ZipInfo(f"{name}.npy")
    info.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(info, buffer.getvalue(), compresslevel=1)


def own_episodes(table: ColumnTable) -> Iterator[Episode]:
    """The episodes that `write_npz` wrote, checked against their ids."""
    about = json.loads(str(table.loaders[OWN]("")[()]))
    entries = table_at(about, OWN).get("episodes")
    if about.get("version") != 1 or not isinstance(entries, list):
        raise Sim2RealError("it is damaged, or a newer version of sim2real wrote it")

    def samples(channel: Mapping[str, object]) -> tuple[Array, Array]:
        return table.column(str(channel.get("times"))), table.column(str(channel.get("values")))

    for number, entry in enumerate(entries):
        yield restored(entry, samples, f"episode {number}")


def _head(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo
) -> tuple[tuple[int, ...], np.dtype[np.generic]]:
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    with archive.open(info) as file:
        version = np.lib.format.read_magic(file)
        if version not in readers:
            raise Sim2RealError(f"an array has the unknown version {version}")
        shape, _, dtype = readers[version](file)
    return shape, dtype


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, dtype: str = "") -> Array:
    """The member as an array; anything but plain numbers or text is a `Sim2RealError`."""
    name = info.filename.removesuffix(".npy")
    shape, kind = _head(archive, info)
    if kind.kind not in "biufUS" or kind.hasobject:
        raise Sim2RealError(f"array {name!r} holds {kind} instead of numbers")
    if kind.itemsize * int(np.prod(shape, dtype=object)) > info.file_size:
        raise Sim2RealError(f"array {name!r}: its shape {shape} does not fit its bytes")
    with archive.open(info) as file:
        found: Array = np.lib.format.read_array(file, allow_pickle=False)
    return found
