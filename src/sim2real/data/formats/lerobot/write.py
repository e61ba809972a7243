"""Episodes written as a LeRobot data set of version 3.0.

LeRobot has a single rate: its `timestamp` is the frame's number divided by it. The true time stamps
are kept as the feature `sim2real.time`, unless the data are resampled to a given rate. Provenance,
units and outcome, which have no place in LeRobot, are in `meta/sim2real.json`; with it, an episode
with a single rate is restored with its id.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NotRequired, TypedDict

import numpy as np

from sim2real.arrays import Array, Floats
from sim2real.data.episode import Episode, Signal
from sim2real.data.formats.film import frame_times, retimed
from sim2real.data.formats.lerobot.files import INDEX_FEATURES, TIME_FEATURE
from sim2real.data.formats.lerobot.sidecar import SIDECAR
from sim2real.data.formats.lerobot.stats import Stats, aggregated, signal_stats, video_stats
from sim2real.data.formats.lerobot.tables import (
    CHUNK_FILES,
    DATA_MB,
    FILE,
    DataFiles,
    placed,
    write_episodes,
    write_tasks,
)
from sim2real.data.resampling import common_times, derived, held_channels
from sim2real.data.video import Video, video_stream
from sim2real.errors import Sim2RealError
from sim2real.files import atomic_folder

_TOLERANCE_S = 5e-5
"""Half of LeRobot's tolerance between a video frame and its time stamp [s]."""
_TYPES = {
    "?": "bool", "b": "int8", "h": "int16", "i": "int32", "l": "int64", "q": "int64",
    "B": "uint8", "H": "uint16", "I": "uint32", "L": "uint64", "Q": "uint64",
    "e": "float16", "f": "float32", "d": "float64",
}  # fmt: skip


def write_lerobot(
    path: Path, episodes: Iterable[Episode], *, rate_hz: float = 0.0, clock: str = ""
) -> None:
    """Write a new data set into the folder `path`, completely or not at all.

    The channels of an episode must share their time stamps, or be sampled at `rate_hz` or at the
    times of the channel `clock`. All episodes need the same channels and rate.
    """
    with atomic_folder(path) as folder:
        writer = _Writer(folder, rate_hz, clock)
        for episode in episodes:
            writer.add(episode)
        writer.finish()


class _Feature(TypedDict):
    """The entry of a channel in info.json."""

    dtype: str
    shape: list[int]
    names: object
    info: NotRequired[dict[str, object]]


class _Writer:
    def __init__(self, folder: Path, rate_hz: float, clock: str) -> None:
        if not (math.isfinite(rate_hz) and rate_hz >= 0):
            raise Sim2RealError(f"the rate must be 0 Hz or more, not {rate_hz}")
        self.folder, self.clock, self.rate_hz = folder, clock, float(rate_hz)
        self.fps = self.rate_hz
        self.features: dict[str, _Feature] = {}
        self.names: dict[str, str] = {}
        self.robots: set[str] = set()
        self.tasks: dict[str, int] = {}
        self.rows: list[dict[str, object]] = []
        self.stats: dict[str, list[Stats]] = {}
        self.entries: list[dict[str, object]] = []
        self.layouts: dict[str, int] = {}
        self.frames = 0
        self.data = DataFiles(folder / "data")

    def add(self, episode: Episode) -> None:
        at = common_times(episode, clock=self.clock, rate_hz=self.rate_hz)
        if not len(at):
            raise Sim2RealError(f"episode {episode.id} has no samples")
        self._set_rate(episode, at)
        episode = self._on_one_clock(episode, at)
        if not self.features:
            self.names = _feature_names(episode)
            self.features = self._described(episode)
        self._check(episode)
        row: dict[str, object] = {
            "episode_index": len(self.rows),
            "tasks": [episode.provenance.task],
            "length": len(at),
            "dataset_from_index": self.frames,
            "dataset_to_index": self.frames + len(at),
        }
        columns = self._columns(episode, at)
        for name, values in columns.items():
            self.stats.setdefault(name, []).append(signal_stats(values))
        self.data.add(columns, row)
        for name, video in episode.videos.items():
            self._write_video(self.names[name], video, row)
        self._describe(episode, at)
        self.rows.append(row)
        self.robots.add(episode.provenance.robot)
        self.frames += len(at)

    def _set_rate(self, episode: Episode, at: Floats) -> None:
        if self.rate_hz:
            return
        steps = np.diff(at)
        step = float(np.median(steps)) if len(steps) else 0.0
        measured = 1 / step if step > 0 else 0.0
        if not self.fps:
            stated = {c.stated_hz for c in episode.channels.values()}
            if len(stated) == 1 and (not measured or abs(max(stated) / measured - 1) < 0.05):
                self.fps = max(stated)
            elif round(measured) and abs(measured / round(measured) - 1) < 0.01:
                self.fps = float(round(measured))
            else:
                self.fps = round(measured, 3)
            if not self.fps:
                raise Sim2RealError(f"the rate of episode {episode.id} is unknown: give a rate")
        if measured and abs(measured / self.fps - 1) > 0.05:
            raise Sim2RealError(
                f"episode {episode.id} runs at {measured:g} Hz, the first at {self.fps:g}:"
                " give a rate"
            )

    def _on_one_clock(self, episode: Episode, at: Floats) -> Episode:
        """The episode with all channels at the times `at`, and videos played at that rate."""
        channels = held_channels(episode, at, stated_hz=self.fps)
        for name, channel in channels.items():
            if isinstance(channel, Video):
                late = frame_times(channel) - np.arange(len(at)) / self.fps
                if np.abs(late).max() > _TOLERANCE_S:
                    channels[name] = retimed(channel, self.fps)
        return derived(episode, f"held at {self.fps:g} Hz for LeRobot", channels)

    def _described(self, episode: Episode) -> dict[str, _Feature]:
        """The entries of info.json for the channels of the first episode."""
        features: dict[str, _Feature] = {}
        known = episode.provenance.calibration.get("names")
        for name, channel in episode.channels.items():
            feature = self.names[name]
            dtype, shape = _kind(channel)
            features[feature] = {"dtype": dtype, "shape": shape, "names": None}
            if isinstance(channel, Video):
                features[feature]["names"] = ["height", "width", "channels"]
                features[feature]["info"] = _film_info(channel, self.fps)
                continue
            if len(shape) > 5 or 0 in shape:
                raise Sim2RealError(f"channel {name!r}: LeRobot cannot store the shape {shape}")
            parts = known.get(feature) if isinstance(known, dict) else None
            if isinstance(parts, dict) or (isinstance(parts, list) and len(parts) == shape[0]):
                features[feature]["names"] = parts
        return features

    def _check(self, episode: Episode) -> None:
        """Raise a `Sim2RealError` if the channels differ from those of the first episode."""
        if episode.channels.keys() != self.names.keys():
            name = min(episode.channels.keys() ^ self.names.keys())
            raise Sim2RealError(
                f"episode {episode.id} has other channels than the first: {name!r} is not in both"
            )
        for name, channel in episode.channels.items():
            entry = self.features[self.names[name]]
            if _kind(channel) != (entry["dtype"], entry["shape"]):
                raise Sim2RealError(
                    f"channel {name!r} of episode {episode.id} is {_kind(channel)}, not"
                    f" {(entry['dtype'], entry['shape'])} as in the first"
                )

    def _columns(self, episode: Episode, at: Floats) -> dict[str, Array]:
        count = len(at)
        frame = np.arange(count)
        task = self.tasks.setdefault(episode.provenance.task, len(self.tasks))
        columns: dict[str, Array] = {
            self.names[name]: s.values for name, s in episode.signals.items()
        }
        if not self.rate_hz:
            columns[TIME_FEATURE] = at
        columns["timestamp"] = (frame / self.fps).astype(np.float32)
        columns["frame_index"] = frame
        columns["episode_index"] = np.full(count, len(self.rows))
        columns["index"] = self.frames + frame
        columns["task_index"] = np.full(count, task)
        return columns

    def _write_video(self, feature: str, video: Video, row: dict[str, object]) -> None:
        """One file for each episode, so that its bytes and its id stay the same."""
        place: dict[str, float] = {**placed(len(self.rows))}
        file = self.folder / "videos" / feature / (FILE.format(**place) + ".mp4")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(video.mp4)
        place |= {"from_timestamp": 0.0, "to_timestamp": len(video.times) / self.fps}
        row.update({f"videos/{feature}/{name}": value for name, value in place.items()})
        self.stats.setdefault(feature, []).append(video_stats(video))

    def _describe(self, episode: Episode, at: Floats) -> None:
        """Add the episode to the sidecar."""
        layout = {
            self.names[name]: {
                "name": name,
                "unit": channel.unit,
                "stated_hz": channel.stated_hz,
                "shape": list(channel.shape),
            }
            for name, channel in episode.channels.items()
        }
        number = self.layouts.setdefault(json.dumps(layout), len(self.layouts))
        self.entries.append(
            {
                "id": episode.id,
                "layout": number,
                "start_s": float(at[0]),
                "outcome": episode.outcome,
                "provenance": episode.provenance.to_dict(),
            }
        )

    def finish(self) -> None:
        self.data.flush()
        meta = self.folder / "meta"
        meta.mkdir()
        for name in sorted(self.stats, key=lambda name: name in INDEX_FEATURES):
            if name not in self.features:
                whole = name in INDEX_FEATURES and name != "timestamp"
                kind = "int64" if whole else "float32" if name == "timestamp" else "float64"
                self.features[name] = {"dtype": kind, "shape": [1], "names": None}
        videos = any(f["dtype"] == "video" for f in self.features.values())
        robot = self.robots.pop() if len(self.robots) == 1 else ""
        info = {
            "codebase_version": "v3.0",
            "robot_type": robot or None,
            "total_episodes": len(self.rows),
            "total_frames": self.frames,
            "total_tasks": len(self.tasks),
            "chunks_size": CHUNK_FILES,
            "data_files_size_in_mb": DATA_MB,
            "video_files_size_in_mb": 200,
            "fps": int(self.fps) if self.fps == int(self.fps) else self.fps,
            "splits": {"train": f"0:{len(self.rows)}"},
            "data_path": f"data/{FILE}.parquet",
            "video_path": f"videos/{{video_key}}/{FILE}.mp4" if videos else None,
            "features": self.features,
        }
        _write_json(meta / "info.json", info)
        stats = {name: aggregated(entries) for name, entries in self.stats.items()}
        plain = {n: {k: v.tolist() for k, v in entry.items()} for n, entry in stats.items()}
        _write_json(meta / "stats.json", plain)
        layouts = [json.loads(layout) for layout in self.layouts]
        sidecar = {"version": 1, "layouts": layouts, "episodes": self.entries}
        _write_json(self.folder / SIDECAR, sidecar, indent=None)
        write_tasks(meta / "tasks.parquet", list(self.tasks))
        write_episodes(meta / "episodes", self.rows, self.stats)


def _feature_names(episode: Episode) -> dict[str, str]:
    """The feature's name for each channel: LeRobot allows no '/', and reserves some names."""
    names: dict[str, str] = {}
    for channel in episode.channels:
        name = channel.replace("/", ".").replace(":", ".")
        if name in (*INDEX_FEATURES, TIME_FEATURE, "task"):
            name = f"channel.{name}"
        if name in names.values():
            raise Sim2RealError(f"two channels would both be the LeRobot feature {name!r}")
        names[channel] = name
    return names


def _kind(channel: Signal | Video) -> tuple[str, list[int]]:
    """LeRobot's name for a channel's type, and the shape of one sample."""
    dtype = "video" if isinstance(channel, Video) else _TYPES[channel.values.dtype.char]
    return dtype, list(channel.shape) or [1]


def _film_info(video: Video, fps: float) -> dict[str, object]:
    with video.open() as container:
        stream = video_stream(container)
        return {
            "video.height": stream.height,
            "video.width": stream.width,
            "video.codec": stream.codec_context.name,
            "video.pix_fmt": stream.codec_context.pix_fmt,
            "video.is_depth_map": False,
            "video.fps": int(fps) if fps == int(fps) else fps,
            "video.channels": 3,
            "has_audio": bool(container.streams.audio),
        }


def _write_json(file: Path, value: Mapping[str, object], indent: int | None = 4) -> None:
    file.write_text(json.dumps(value, indent=indent, ensure_ascii=False), encoding="utf-8")
