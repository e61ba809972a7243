"""Episodes written as MCAP files, one file each.

Channels keep their own time stamps. They are JSON with schemas, so any MCAP viewer can plot them.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Iterator
from operator import itemgetter
from pathlib import Path

import numpy as np
from mcap.writer import CompressionType, Writer

from sim2real.data.episode import Episode, Signal
from sim2real.data.formats.mcap.lossless import OWN, plain
from sim2real.data.video import Video
from sim2real.errors import Sim2RealError
from sim2real.files import atomic_folder, atomic_path

_TYPES = {"b": "boolean", "i": "integer", "u": "integer", "f": "number"}


def write_mcap(path: Path, episodes: Iterable[Episode]) -> None:
    """Write one episode to the file `path`, or many to a new folder, a file each, named by id.

    A path that ends in '.mcap' is a file.
    """
    path = Path(path)
    if path.suffix == ".mcap":
        found = iter(episodes)
        first = next(found)
        if next(found, None) is not None:
            raise Sim2RealError(f"{path} can hold one episode only: give a folder to write several")
        with atomic_path(path) as temporary:
            _write(temporary, first)
        return
    with atomic_folder(path) as folder:
        for episode in episodes:
            _write(folder / f"{episode.id}.mcap", episode)


def _write(file: Path, episode: Episode) -> None:
    topics = {f"/{name}": channel for name, channel in episode.channels.items()}
    with file.open("wb") as stream:
        writer = Writer(stream, compression=CompressionType.ZSTD)
        writer.start(profile="", library="sim2real")
        # First, so that even a truncated file has it.
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
        messages = heapq.merge(*(_told(*entry) for entry in topics.items()), key=itemgetter(0))
        for log_time, topic, data in messages:
            writer.add_message(numbers[topic], log_time, data, log_time)
        writer.finish()  # type: ignore[no-untyped-call]


def _note(topic: str, channel: Signal | Video) -> dict[str, object]:
    """The description of a topic in the metadata."""
    note: dict[str, object] = {"name": topic[1:], "stated_hz": channel.stated_hz}
    if isinstance(channel, Video):
        return note | {"film": _film(topic), "frames": len(channel.times)}
    dtype = channel.values.dtype.str
    return note | {"unit": channel.unit, "dtype": dtype, "shape": list(channel.shape)}


def _film(topic: str) -> str:
    return f"{topic[1:]}.mp4"


def _register(writer: Writer, topic: str, channel: Signal | Video) -> int:
    value: dict[str, object] = {"type": "integer", "description": "number of the frame"}
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


def _told(topic: str, channel: Signal | Video) -> Iterator[tuple[int, str, bytes]]:
    """Log time [ns], topic and content of every message of a topic."""
    values = plain(channel.values) if isinstance(channel, Signal) else range(len(channel.times))
    # A log time cannot decrease, be negative or be nan; the message has the exact one.
    logged = (np.clip(np.nan_to_num(channel.times), 0, 9e9) * 1e9).astype(np.int64)
    logged = np.maximum.accumulate(logged)
    for log_time, time, value in zip(logged.tolist(), plain(channel.times), values, strict=True):
        text = json.dumps({"time": time, "value": value}, separators=(",", ":"))
        yield log_time, topic, text.encode()
