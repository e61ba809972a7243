"""Episodes written as MCAP files, one file each.

Channels keep their own time stamps; any MCAP viewer can plot them, as they are JSON with schemas.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from mcap.writer import CompressionType, Writer

from sim2real.data.episode import Episode, Signal
from sim2real.data.formats.mcap.lossless import OWN, plain
from sim2real.data.video import Video
from sim2real.errors import Sim2RealError
from sim2real.files import atomic_folder, atomic_path

_TYPES = {"b": "boolean", "i": "integer", "u": "integer", "f": "number"}


def write_mcap(path: Path, episodes: Iterable[Episode]) -> None:
    """Write one episode to the file `path`, or many to a new folder `path`, a file each by its id.

    A path that ends in '.mcap' is a file.
    """
    path = Path(path)
    if path.suffix == ".mcap":
        found = iter(episodes)
        first = next(found, None)
        if first is None or next(found, None) is not None:
            number = "no episode" if first is None else "several episodes"
            raise Sim2RealError(f"{path} holds one episode, not {number}: give a folder")
        with atomic_path(path) as temporary:
            _write(temporary, first)
        return
    count = 0
    with atomic_folder(path) as folder:
        for count, episode in enumerate(episodes, start=1):  # noqa: B007
            _write(folder / f"{episode.id}.mcap", episode)
        if not count:
            raise Sim2RealError("there are no episodes to write")


def _write(file: Path, episode: Episode) -> None:
    topics = {f"/{name}": channel for name, channel in episode.channels.items()}
    with file.open("wb") as stream:
        writer = Writer(stream, compression=CompressionType.ZSTD)
        writer.start(profile="", library="sim2real")
        # First, so that a file that is cut off still says what it was.
        writer.add_metadata(
            OWN,
            {
                "version": "1",
                "id": episode.id,
                "outcome": episode.outcome,
                "provenance": episode.provenance.to_json(),
                "channels": json.dumps({t: _note(t, c) for t, c in topics.items()}),
            },
        )
        for topic, channel in topics.items():
            if isinstance(channel, Video):
                writer.add_attachment(0, 0, _film(topic), "video/mp4", channel.mp4)
        numbers = {topic: _register(writer, topic, c) for topic, c in topics.items()}
        for log_time, topic, data in _messages(topics):
            writer.add_message(numbers[topic], log_time, data, log_time)
        writer.finish()  # type: ignore[no-untyped-call]


def _note(topic: str, channel: Signal | Video) -> dict[str, Any]:
    """What the metadata says about a topic."""
    note: dict[str, Any] = {"name": topic[1:], "stated_hz": channel.stated_hz}
    if isinstance(channel, Video):
        return note | {"film": _film(topic), "frames": len(channel.times)}
    dtype = channel.values.dtype.str
    return note | {"unit": channel.unit, "dtype": dtype, "shape": list(channel.shape)}


def _film(topic: str) -> str:
    return f"{topic[1:]}.mp4"


def _register(writer: Writer, topic: str, channel: Signal | Video) -> int:
    value: dict[str, Any] = {"type": "integer", "description": "number of the frame"}
    if isinstance(channel, Signal):
        value = {"type": _TYPES[channel.values.dtype.kind]}
        for size in reversed(channel.shape):
            value = {"type": "array", "items": value, "minItems": size, "maxItems": size}
        value["description"] = channel.unit
    schema = {
        "type": "object",
        "properties": {"time": {"type": "number", "description": "s"}, "value": value},
    }
    number = writer.register_schema(
        f"sim2real.{topic[1:]}", "jsonschema", json.dumps(schema).encode()
    )
    return writer.register_channel(topic, "json", number)


def _messages(topics: dict[str, Signal | Video]) -> Iterator[tuple[int, str, bytes]]:
    """Log time [ns], topic and content of every message, in the order of their times."""
    return heapq.merge(*(_told(*entry) for entry in topics.items()), key=itemgetter(0))


def _told(topic: str, channel: Signal | Video) -> Iterator[tuple[int, str, bytes]]:
    values = plain(channel.values) if isinstance(channel, Signal) else range(len(channel.times))
    # A log time cannot step back, be negative or be no number; the message has the exact one.
    logged = (np.clip(np.nan_to_num(channel.times), 0, 9e9) * 1e9).astype(np.int64)
    logged = np.maximum.accumulate(logged)
    for log_time, time, value in zip(logged.tolist(), plain(channel.times), values, strict=True):
        text = json.dumps({"time": time, "value": value}, separators=(",", ":"))
        yield log_time, topic, text.encode()
