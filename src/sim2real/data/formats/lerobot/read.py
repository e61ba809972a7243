"""LeRobot data sets, versions 2.0, 2.1 and 3.0, read as episodes.

A data set is a folder: `meta/info.json` lists the features, the rate and the paths of files.
Numbers are in Parquet, images in mp4 or Parquet. Since version 3.0 a file holds many episodes.
Paths that leave the folder, and counts that do not match, are a `Sim2RealError`.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Annotated

import numpy as np
import pyarrow as pa

from sim2real.arrays import Array, Floats
from sim2real.data.episode import Episode, Signal, channel_name
from sim2real.data.formats.file_errors import naming
from sim2real.data.formats.film import Film, decoded_picture
from sim2real.data.formats.lerobot.files import (
    INDEX_FEATURES,
    TIME_FEATURE,
    filled,
    numeric_column,
    picture_column,
    read_parquet,
)
from sim2real.data.formats.lerobot.sidecar import SIDECAR, ChannelEntry, EpisodeEntry, Sidecar
from sim2real.data.provenance import Provenance
from sim2real.data.video import Video
from sim2real.errors import Sim2RealError, explaining, number_at, table_at
from sim2real.files import read_json, read_text
from sim2real.plain import AtLeastOne, Count, PlainData, Positive, written_as


def read_lerobot(path: Path, *, base: Provenance) -> Iterator[Episode]:
    """The episodes of the data set in folder `path`, in order.

    Every numeric feature becomes a signal, every camera a video. What sim2real wrote is restored
    with its provenance, units and time stamps; otherwise `base` is completed by the task, the
    robot and, in the calibration, the names of the features.
    """
    path = Path(path)
    with naming(path):
        info = _Info.load(path)
        own = Sidecar.load(path)
        data: _DataFile | None = None
        for row in _rows_v3(path, info) if info.many else _rows_v2(path, info):
            place = row.file(info.data_path, "data/")
            if data is None or data.path != place:
                data = _DataFile.load(path, place, info)
            yield _episode(info, own, data, row, base)


@dataclass(frozen=True, kw_only=True)
class _FeatureInfo(PlainData, lenient=True):
    """What `meta/info.json` says of a feature."""

    dtype: str
    names: object = None


@dataclass(frozen=True, kw_only=True)
class _Info(PlainData, lenient=True):
    """What `meta/info.json` says."""

    folder: Path
    codebase_version: str
    fps: Positive
    robot_type: str | None = None
    data_path: str
    video_path: str | None = None
    chunks_size: AtLeastOne = 1000
    features: Mapping[str, _FeatureInfo]

    @classmethod
    def load(cls, folder: Path) -> _Info:
        where = str(folder / "meta/info.json")
        told = table_at(read_json(folder / "meta/info.json"), where)
        info = cls.from_dict({**told, "folder": str(folder)}, where)
        if not re.match(r"^v?[23]\.", info.codebase_version):
            raise Sim2RealError(
                f"{where}: LeRobot version {info.codebase_version!r} cannot be read, only 2.0, 2.1"
                " and 3.0"
            )
        if not info.fps < 1e6:
            raise Sim2RealError(f"{where}: fps cannot be {info.fps:g}")
        return info

    @property
    def many(self) -> bool:
        """Whether a file holds many episodes, as since version 3."""
        return self.codebase_version.removeprefix("v").startswith("3")

    def of(self, *kinds: str) -> list[str]:
        """Names of the features whose dtype is one of `kinds`."""
        return [name for name, feature in self.features.items() if feature.dtype in kinds]


@dataclass(frozen=True, kw_only=True)
class _Row(PlainData, lenient=True):
    """An episode's row in the metadata."""

    index: Annotated[Count, written_as("episode_index")]
    length: Count
    tasks: tuple[str, ...] | None = None
    fields: Mapping[str, object]
    """All fields, which the path templates refer to."""

    @classmethod
    def of(cls, fields: Mapping[str, object], where: str) -> _Row:
        return cls.from_dict({**fields, "fields": fields}, where)

    def file(self, template: str, prefix: str, **more: str) -> PurePosixPath:
        """The path of a file; in version 3 its numbers are in fields that begin with `prefix`."""
        numbers = {}
        for name in ("chunk_index", "file_index"):
            if prefix + name in self.fields:
                value = self.fields[prefix + name]
                if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                    raise Sim2RealError(
                        f"episode {self.index}: {prefix}{name} must be a whole number, not"
                        f" {value!r}"
                    )
                numbers[name] = value
        return filled(template, {**self.fields, **numbers, **more})

    def film(self, info: _Info, camera: str) -> tuple[PurePosixPath, float]:
        """The path of a camera's file, and where the episode begins in it [s]."""
        prefix = f"videos/{camera}/"
        begin = number_at(
            self.fields.get(f"{prefix}from_timestamp", 0.0),
            f"episode {self.index}: the start of {camera}",
        )
        if not 0 <= begin < 1e9:
            raise Sim2RealError(f"episode {self.index}: {camera} begins at {begin:g} s")
        return self.file(info.video_path or "", prefix, video_key=camera), begin


def _rows_v3(folder: Path, info: _Info) -> Iterator[_Row]:
    files = sorted((folder / "meta/episodes").glob("*/*.parquet"))
    if not files:
        raise Sim2RealError(f"{folder / 'meta/episodes'} contains no Parquet file")
    wanted = {"episode_index", "length", "tasks", "data/chunk_index", "data/file_index"}
    for key in info.of("video"):
        wanted |= {f"videos/{key}/{n}" for n in ("chunk_index", "file_index", "from_timestamp")}
    for file in files:
        table = read_parquet(file, sorted(wanted))
        for row in table.to_pylist():
            yield _Row.of(row, str(file))


def _rows_v2(folder: Path, info: _Info) -> Iterator[_Row]:
    file = folder / "meta/episodes.jsonl"
    for number, line in enumerate(read_text(file).splitlines(), start=1):
        if not line.strip():
            continue
        where = f"{file}, line {number}"
        with explaining(f"{where} is not JSON", ValueError, RecursionError):
            row = _Row.of(table_at(json.loads(line), where), where)
        fields = {
            "episode_index": row.index,
            "length": row.length,
            "episode_chunk": row.index // info.chunks_size,
        }
        yield replace(row, fields=fields)


@dataclass(frozen=True, kw_only=True)
class _DataFile:
    """The frames of one Parquet file."""

    path: PurePosixPath
    sha256: str
    columns: Mapping[str, Array]
    pictures: Mapping[str, pa.Array]
    spans: Mapping[int, tuple[int, int]]
    """First row and number of rows of each episode."""

    @classmethod
    def load(cls, folder: Path, path: PurePosixPath, info: _Info) -> _DataFile:
        file = folder / path
        cameras = info.of("image")
        wanted = [n for n, f in info.features.items() if f.dtype not in ("video", "string")]
        table = read_parquet(file, [*wanted, "timestamp", "episode_index"])
        columns = {}
        for name in table.column_names:
            if name not in cameras:
                values = numeric_column(table[name], f"{file}: column {name}")
                if values is not None:
                    columns[name] = values
        for name in ("episode_index", "timestamp"):
            if name not in columns or columns[name].ndim > 2:
                raise Sim2RealError(f"{file} has no numeric column {name!r}")
        pictures = {name: picture_column(table[name], f"{file}: column {name}") for name in cameras}
        spans = _spans(columns["episode_index"].reshape(-1), file)
        with file.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
        return cls(path=path, sha256=digest, columns=columns, pictures=pictures, spans=spans)


def _spans(episodes: Array, file: Path) -> dict[int, tuple[int, int]]:
    changes = np.flatnonzero(np.diff(episodes)) + 1
    starts = [0, *changes.tolist()] if len(episodes) else []
    ends = [*starts[1:], len(episodes)]
    spans: dict[int, tuple[int, int]] = {}
    for start, end in zip(starts, ends, strict=False):
        index = int(episodes[start])
        if index in spans:
            raise Sim2RealError(f"{file}: the frames of episode {index} are not contiguous")
        spans[index] = (start, end - start)
    return spans


def _episode(
    info: _Info,
    own: Sidecar | None,
    data: _DataFile,
    row: _Row,
    base: Provenance,
) -> Episode:
    where = f"{info.folder / data.path}: episode {row.index}"
    first, count = data.spans.get(row.index, (0, 0))
    if count != row.length or not count:
        raise Sim2RealError(f"{where} has {count} frames, but its metadata says {row.length}")
    rows = slice(first, first + count)
    note = own.episode(row.index) if own else None
    times = _times(data, rows, info.fps, note)
    channels: dict[str, Signal | Video] = {}
    for feature, values in data.columns.items():
        if feature not in (*INDEX_FEATURES, TIME_FEATURE):
            channel = _entry(note, feature, where)
            shape = values.shape[1:] if channel.shape is None else channel.shape
            picked = values[rows]
            if picked[0].size != math.prod(shape):
                raise Sim2RealError(f"{where}: feature {feature} does not have the shape {shape}")
            stated_hz = info.fps if channel.stated_hz is None else channel.stated_hz
            signal = Signal(times, picked.reshape(count, *shape), channel.unit, stated_hz)
            _put(channels, channel.name, signal, where)
    for feature in (*info.of("video"), *data.pictures):
        channel = _entry(note, feature, where)
        if feature not in data.pictures:
            file, begin_s = row.film(info, feature)
            with closing(Film(info.folder / file)) as film:
                video = film.cut(begin_s, times, info.fps)
        else:
            cells = data.pictures[feature][rows]
            shown = (decoded_picture(cell.as_py(), f"{where}: {feature}") for cell in cells)
            video = Video.encode(times, shown, stated_hz=info.fps)
        if channel.stated_hz is not None:
            video = replace(video, stated_hz=channel.stated_hz)
        _put(channels, channel.name, video, where)
    if not channels:
        raise Sim2RealError(f"{where} has neither numbers nor cameras")
    with explaining(f"{where}: its metadata contain an invalid text or number", ValueError):
        if note is None:
            return Episode(channels, _provenance(info, data, row, base), _outcome(data, rows))
        found = Episode(channels, note.provenance, note.outcome)
    if found.id != note.id:
        raise Sim2RealError(
            f"{where} has changed since sim2real wrote it: delete {SIDECAR} to read it as it is"
        )
    return found


def _entry(note: EpisodeEntry | None, feature: str, where: str) -> ChannelEntry:
    """What is known of the channel in a feature."""
    if note is None:
        return ChannelEntry(name=channel_name(feature))
    if feature not in note.layout:
        raise Sim2RealError(f"{where}: {SIDECAR} does not know the feature {feature!r}")
    return note.layout[feature]


def _put(
    channels: dict[str, Signal | Video], name: str, channel: Signal | Video, where: str
) -> None:
    if name in channels:
        raise Sim2RealError(f"{where}: two features would both be the channel {name!r}")
    channels[name] = channel


def _times(data: _DataFile, rows: slice, fps: float, note: EpisodeEntry | None) -> Floats:
    """Time stamps of an episode's frames [s].

    LeRobot stores them in single precision; those that follow from the stated rate are computed
    in double precision.
    """
    if TIME_FEATURE in data.columns:
        return data.columns[TIME_FEATURE][rows].astype(np.float64).reshape(-1)
    stamps = data.columns["timestamp"][rows].reshape(-1)
    regular = np.arange(len(stamps)) / fps
    if note:
        return note.start_s + regular
    same = np.array_equal(regular.astype(stamps.dtype), stamps)
    return regular if same else stamps.astype(np.float64)


def _provenance(info: _Info, data: _DataFile, row: _Row, base: Provenance) -> Provenance:
    names = {n: f.names for n, f in info.features.items() if f.names is not None}
    calibration = {**base.calibration, "names": names} if names else base.calibration
    name = f"{info.folder.name}/{data.path}#{row.index}"
    return replace(
        base,
        task=base.task or "; ".join(row.tasks or ()),
        robot=base.robot or info.robot_type or "",
        calibration=calibration,
        source=f"{name} sha256:{data.sha256}",
    )


def _outcome(data: _DataFile, rows: slice) -> str:
    for name in ("next.success", "success", "is_success"):
        if name in data.columns:
            return "success" if np.greater(data.columns[name][rows], 0.5).any() else "failure"
    return ""
