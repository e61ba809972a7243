"""MCAP recordings read as episodes: JSON, Protobuf and ROS 2 messages.

Every number in a message becomes a sample of the channel `topic/field`, every array of fixed length
a vector, every topic of images a video. Texts, and lists of varying length, are left out with a
warning. A truncated file is read up to its end, and its provenance says so.
"""

from __future__ import annotations

import hashlib
import logging
import mmap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from mcap.records import Metadata

from sim2real.arrays import Array, Floats
from sim2real.data.episode import Episode, Signal, channel_name
from sim2real.data.formats.file_errors import naming
from sim2real.data.formats.mcap.decode import Decoder, decoder_of
from sim2real.data.formats.mcap.lossless import CUT_OFF, OWN, own_episode
from sim2real.data.formats.mcap.pictures import (
    as_depth,
    as_picture,
    is_depth,
    is_picture_schema,
    not_understood,
)
from sim2real.data.formats.mcap.records import CutOff, McapChannel, McapMessage, records
from sim2real.data.formats.mcap.ros2 import short_name
from sim2real.data.formats.mcap.ros_units import units_of
from sim2real.data.provenance import Provenance
from sim2real.data.video import Video
from sim2real.errors import Sim2RealError, explaining

_CHANNELS_MAX = 4096
_DEPTH_MAX = 16
_STAMP_MAX_S = 60.0
"""A message's own time stamp counts if it is this close to the time it was logged at [s]."""
_JOINTS = "sensor_msgs/JointState"
_log = logging.getLogger(__name__)


def read_mcap(path: Path, *, base: Provenance) -> Iterator[Episode]:
    """The episode of one MCAP file.

    Times are in seconds from the first message on, whose time is `start_unix_ns` in the
    calibration, beside the clock of each topic. What sim2real wrote is restored exactly.
    """
    path = Path(path)
    with explaining(f"{path} cannot be read", OSError), naming(path), path.open("rb") as file:
        if not path.stat().st_size:
            raise Sim2RealError(f"{path} is not an MCAP file: it is empty")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            digest = hashlib.sha256(content).hexdigest()
            found = _Recording(path, content).episode(base, f"{path.name} sha256:{digest}")
    yield found


@dataclass
class _Series:
    """Samples of one field, gathered into arrays."""

    rows: list[int] = field(default_factory=list)
    values: list[object] = field(default_factory=list)
    parts: list[Array] = field(default_factory=list)
    trouble: str = ""

    def add(self, row: int, value: object) -> None:
        self.rows.append(row)
        self.values.append(value)
        if len(self.values) >= 4096:
            self.gather()

    def gather(self) -> None:
        if not self.values or self.trouble:
            self.values = []
            return
        try:
            part: Array = np.array(self.values)
        except (ValueError, OverflowError):
            part = np.array(None)
        if part.dtype.kind not in "biuf":
            self.trouble = "its values differ in length or are too large"
        elif part[0].size == 0:
            self.trouble = "it is empty"
        elif self.parts and part.shape[1:] != self.parts[0].shape[1:]:
            self.trouble = "its values differ in length"
        else:
            self.parts.append(part)
        self.values = []


class _Topic:
    """What is read from one topic."""

    def __init__(self, channel: McapChannel, decode: Decoder) -> None:
        self.channel, self.decode = channel, decode
        self.name = channel.topic
        schema = channel.schema_name
        self.type = short_name(schema) if "/" in schema else ""
        self.units = units_of(self.type)
        self.pictures = is_picture_schema(schema)
        self.depth = False
        self.series: dict[str, _Series] = {}
        self.log_ns: list[int] = []
        self.stamp_ns: list[int] = []
        self.joints: list[str] = []
        self.skipped: set[str] = set()
        self.where = f"topic {self.name!r}"


class _Recording:
    def __init__(self, path: Path, content: mmap.mmap) -> None:
        self.path, self.content = path, content
        self.topics: dict[McapChannel, _Topic] = {}
        self.unread: dict[str, str] = {}
        self.cut_off = False

    def episode(self, base: Provenance, source: str) -> Episode:
        first = next(records(self.content), None)
        if isinstance(first, Metadata) and first.name == OWN:
            return own_episode(records(self.content), source)
        for record in records(self.content):
            if isinstance(record, CutOff):
                self.cut_off = True
            elif isinstance(record, McapMessage):
                with naming(f"topic {record.channel.topic!r}"):
                    self._take(record)
        return self._built(base, source)

    def _take(self, message: McapMessage) -> None:
        topic = self._topic(message.channel)
        if topic is None:
            return
        table = topic.decode(message.data)
        if topic.type == _JOINTS:
            table = self._joints(topic, table)
        topic.log_ns.append(message.log_time_ns)
        stamp = _stamp_ns(table)
        if stamp is not None:
            topic.stamp_ns.append(stamp)
        if topic.pictures:
            reason = not_understood(table)
            if reason:
                self._leave(topic.name, reason)
                return
            topic.depth = topic.depth or is_depth(table)
            if topic.depth:
                series = topic.series.setdefault("", _Series())
                series.add(len(topic.log_ns) - 1, as_depth(table, topic.where))
            return
        for name, value in _leaves(table):
            if name not in topic.series:
                if sum(len(t.series) for t in self.topics.values()) >= _CHANNELS_MAX:
                    raise Sim2RealError(f"more than {_CHANNELS_MAX} channels")
                topic.series[name] = _Series()
            topic.series[name].add(len(topic.log_ns) - 1, value)
        topic.skipped.update(_texts(table))

    def _topic(self, channel: McapChannel) -> _Topic | None:
        """What is read from the channel's topic; None if it is left out."""
        if channel.topic in self.unread:
            return None
        if channel not in self.topics:
            decoder = decoder_of(channel)
            if isinstance(decoder, str):
                self._leave(channel.topic, f"its encoding, {decoder}, is not supported")
                return None
            self.topics[channel] = _Topic(channel, decoder)
        return self.topics[channel]

    def _leave(self, topic: str, reason: str) -> None:
        _log.warning("%s: topic %s is left out: %s", self.path, topic, reason)
        self.unread[topic] = reason

    def _joints(self, topic: _Topic, table: dict[str, object]) -> dict[str, object]:
        """The joint state in the order of the first; that of other joints is left out."""
        names = table.get("name")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            return table
        topic.joints = topic.joints or names
        if names == topic.joints:
            return table
        if sorted(names) != sorted(topic.joints) or len(set(names)) != len(names):
            topic.skipped.add("states of other joints than the first")
            return {"header": table.get("header")}
        moved = dict(table)
        for key in ("position", "velocity", "effort"):
            values = table.get(key)
            if isinstance(values, list | np.ndarray) and len(values) == len(names):
                moved[key] = [values[names.index(name)] for name in topic.joints]
        return moved

    def _built(self, base: Provenance, source: str) -> Episode:
        topics = [t for t in self.topics.values() if t.log_ns and t.name not in self.unread]
        start_ns = min((ns for topic in topics for ns in topic.log_ns), default=0)
        channels: dict[str, Signal | Video] = {}
        clocks: dict[str, str] = {}
        names: dict[str, list[str]] = {}
        for topic in topics:
            times, clock = _times(topic, start_ns)
            before = len(channels)
            for name, channel in self._channels(topic, times):
                if name in channels:
                    raise Sim2RealError(f"two fields would both be the channel {name!r}")
                channels[name] = channel
                if topic.joints:
                    names[name] = topic.joints
            if len(channels) > before:
                clocks[topic.name] = clock
            if topic.joints:
                topic.skipped.discard("name")  # the calibration has the names
            if topic.skipped:
                left = ", ".join(sorted(topic.skipped)[:8])
                _log.warning("%s: %s: left out: %s", self.path, topic.where, left)
        if not channels:
            why = "".join(f"; topic {topic!r}: {why}" for topic, why in self.unread.items())
            whole = " before it is cut off" if self.cut_off else ""
            raise Sim2RealError(f"no numbers or images{whole}{why[:300]}")
        calibration: dict[str, object] = {
            **base.calibration,
            "clocks": clocks,
            "start_unix_ns": start_ns,
        }
        if names:
            calibration["names"] = names
        process = CUT_OFF if self.cut_off else base.process
        found = replace(base, source=source, calibration=calibration, process=process)
        return Episode(channels, found)

    def _channels(self, topic: _Topic, times: Floats) -> Iterator[tuple[str, Signal | Video]]:
        prefix = channel_name(topic.name.strip("/"))
        if topic.pictures and not topic.depth:
            yield prefix, self._video(topic, times)
            return
        for name, series in topic.series.items():
            series.gather()
            if series.trouble:
                topic.skipped.add(f"{name} ({series.trouble})")
                continue
            values = np.concatenate(series.parts)
            unit = _unit(topic.units, name)
            signal = Signal(times[np.array(series.rows, dtype=np.intp)], values, unit)
            yield f"{prefix}/{channel_name(name.strip('/'))}" if name else prefix, signal

    def _video(self, topic: _Topic, times: Floats) -> Video:
        """The topic's video; images are read again one by one, as they may not fit in memory."""
        found = (record for record in records(self.content) if isinstance(record, McapMessage))
        messages = (message for message in found if message.channel == topic.channel)
        return Video.encode(
            times, (as_picture(topic.decode(m.data), topic.where) for m in messages)
        )


def _times(topic: _Topic, start_ns: int) -> tuple[Floats, str]:
    """Time stamps [s] and their clock: that of the messages themselves, if it is plausible."""
    logged = topic.log_ns
    stamps = topic.stamp_ns
    limit = _STAMP_MAX_S * 1e9
    sane = len(stamps) == len(logged) and all(
        stamp > 0 and abs(stamp - log) < limit for stamp, log in zip(stamps, logged, strict=True)
    )
    picked = stamps if sane else logged
    # Subtracted as whole nanoseconds, before rounding to a float.
    seconds = np.array([ns - start_ns for ns in picked], dtype=np.float64) * 1e-9
    return seconds, "header.stamp" if sane else "log_time"


def _stamp_ns(table: Mapping[str, object]) -> int | None:
    """The time stamp in a message [ns]."""
    header = table.get("header")
    stamp = header.get("stamp") if isinstance(header, dict) else None
    stamp = table.get("timestamp") if stamp is None else stamp
    if not isinstance(stamp, dict):
        return None
    seconds = stamp.get("sec", stamp.get("secs", stamp.get("seconds")))
    parts = stamp.get("nanosec", stamp.get("nsec", stamp.get("nsecs", stamp.get("nanos"))))
    if isinstance(seconds, int) and isinstance(parts, int) and abs(seconds) < 1 << 40:
        return seconds * 10**9 + parts if 0 <= parts < 10**9 else None
    return None


def _leaves(
    table: Mapping[str, object], prefix: str = "", depth: int = 0
) -> Iterator[tuple[str, object]]:
    """Name and value of every number and list of numbers in a table, except its header."""
    for key, value in table.items():
        if depth == 0 and key in ("header", "timestamp") and isinstance(value, dict):
            continue
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            if depth < _DEPTH_MAX:
                yield from _leaves(value, f"{name}.", depth + 1)
        elif isinstance(value, bool | int | float | np.ndarray) or _numeric(value):
            yield name, value


def _texts(table: Mapping[str, object]) -> Iterator[str]:
    """Names of the top-level fields that are not numbers."""
    for key, value in table.items():
        texts = isinstance(value, list) and value and not _numeric(value)
        if isinstance(value, str | bytes) or texts:
            yield str(key)[:100]


def _numeric(value: object) -> bool:
    """Whether this is a list, perhaps nested, whose first element is a number."""
    if not isinstance(value, list):
        return False
    first: object = value
    for _ in range(_DEPTH_MAX):
        if not isinstance(first, list):
            return isinstance(first, bool | int | float)
        if not first:
            return False
        first = first[0]
    return False


def _unit(units: Mapping[str, str], name: str) -> str:
    """The unit of a field, or of the field that contains it."""
    parts = name.split(".")
    paths = [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
    return next((units[path] for path in paths if path in units), "")
