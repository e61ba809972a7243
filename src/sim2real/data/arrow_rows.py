"""Episodes as rows of Arrow tables.

An episode is one row of `episodes`, without its samples, and one row of `signals` for each channel.
Samples keep their type: each row uses the one list column that holds it exactly.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from sim2real.data.episode import Episode, Signal
from sim2real.data.provenance import Provenance
from sim2real.data.video import Video
from sim2real.errors import Sim2RealError, explaining

WHEN = pa.timestamp("us", tz="UTC")


def schema(*columns: tuple[str, pa.DataType]) -> pa.Schema:
    """A table's columns; names that share a type are separated by spaces."""
    return pa.schema([(name, kind) for names, kind in columns for name in names.split()])


EPISODES = schema(
    ("id kind outcome task twin twin_version policy robot serial site operator", pa.string()),
    ("seed world", pa.int64()),
    ("engine engine_version commit source", pa.string()),
    ("participants", pa.list_(pa.string())),
    ("parameters", pa.map_(pa.string(), pa.float64())),
    ("parents", pa.list_(pa.string())),
    ("process", pa.string()),
    ("start_s duration_s", pa.float64()),
    ("channels", pa.list_(pa.string())),
    ("samples", pa.int64()),
    ("provenance", pa.string()),
    ("added", WHEN),
)
"""One row per episode; `provenance` is all of it as JSON, other columns are parts of it."""

_LISTS = {
    "f64": pa.large_list(pa.float64()),
    "f32": pa.large_list(pa.float32()),
    "i64": pa.large_list(pa.int64()),
    "u64": pa.large_list(pa.uint64()),
    "raw": pa.large_binary(),
}
_PLACES = {"<f8": "f64", "<f4": "f32", "<i8": "i64", "<u8": "u64"}
"""The list column that holds a type of numbers exactly; small types are raw bytes."""
SIGNALS = schema(
    ("episode channel unit", pa.string()),
    ("stated_hz", pa.float64()),
    ("dtype", pa.string()),
    ("shape", pa.list_(pa.int32())),
    ("times", pa.large_list(pa.float64())),
    *_LISTS.items(),
    ("file", pa.string()),
)
"""One row per channel; `shape` is that of one sample, `dtype` is numpy's name of its type.

A video has the type 'mp4', and `file` is the hash of its content.
"""
VIDEO = "mp4"


def episode_rows(episodes: Sequence[Episode]) -> pa.Table:
    """Rows of `episodes`."""
    added = datetime.now(UTC)
    rows = [_episode_row(episode, added) for episode in episodes]
    with explaining("this provenance cannot be stored", pa.ArrowException, UnicodeError):
        return pa.Table.from_pylist(rows, schema=EPISODES)


def signal_rows(episodes: Iterable[Episode]) -> pa.Table:
    """Rows of `signals`, in the order of the episodes' ids."""
    rows = [
        {"episode": episode.id, "channel": name, **_signal_row(channel)}
        for episode in sorted(episodes, key=lambda episode: episode.id)
        for name, channel in episode.channels.items()
    ]
    with explaining("these channels cannot be stored", pa.ArrowException, UnicodeError):
        arrays = [pa.array([row.get(one.name) for row in rows], one.type) for one in SIGNALS]
    return pa.Table.from_arrays(arrays, schema=SIGNALS)


def _signal_row(channel: Signal | Video) -> dict[str, object]:
    row: dict[str, object] = {
        name: getattr(channel, name) for name in ("unit", "stated_hz", "shape", "times")
    }
    if isinstance(channel, Video):
        return {**row, "dtype": VIDEO, "file": channel.file}
    dtype, flat = channel.values.dtype.str, channel.values.reshape(-1)
    place = _PLACES.get(dtype, "raw")
    return {**row, "dtype": dtype, place: flat.tobytes() if place == "raw" else flat}


def read_episode(
    episode: Mapping[str, str], signals: pa.Table, film: Callable[[str], bytes]
) -> Episode:
    """The episode of one row of `episodes` and its rows of `signals`.

    `film` gives the content of a video file by its name. Data that have changed do not give the
    same id again, and are a `Sim2RealError`.
    """
    try:
        channels: dict[str, Signal | Video] = {}
        for row in range(signals.num_rows):
            channels[signals["channel"][row].as_py()] = read_channel(signals, row, film)
        found = Episode(
            channels=channels,
            provenance=Provenance.from_dict(json.loads(episode["provenance"])),
            outcome=episode["outcome"],
        )
    except (Sim2RealError, ValueError, TypeError) as error:
        raise Sim2RealError(f"episode {episode['id']} is damaged: {error}") from None
    if found.id != episode["id"]:
        raise Sim2RealError(
            f"episode {episode['id']} is damaged: its content now has the id {found.id}"
        )
    return found


def read_channel(signals: pa.Table, row: int, film: Callable[[str], bytes]) -> Signal | Video:
    """The channel of one row of `signals`."""
    times = signals["times"][row].values.to_numpy(zero_copy_only=False)
    unit, stated_hz = signals["unit"][row].as_py(), signals["stated_hz"][row].as_py()
    if signals["dtype"][row].as_py() == VIDEO:
        return Video(times, film(signals["file"][row].as_py()), stated_hz, unit)
    dtype = np.dtype(signals["dtype"][row].as_py())
    shape = tuple(signals["shape"][row].as_py())
    place = _PLACES.get(dtype.str, "raw")
    cell = signals[place][row]
    if place == "raw":
        values = np.frombuffer(cell.as_py(), dtype=dtype)
    else:
        values = cell.values.to_numpy(zero_copy_only=False).astype(dtype, copy=False)
    return Signal(times, values.reshape(len(times), *shape), unit, stated_hz)


def _episode_row(episode: Episode, added: datetime) -> dict[str, object]:
    source = episode.provenance
    parts = {name: getattr(source, name) for name in EPISODES.names if hasattr(source, name)}
    return {
        **parts,
        "id": episode.id,
        "kind": str(source.kind),
        "outcome": episode.outcome,
        "parameters": sorted(source.parameters.items()),
        "parents": list(source.parents),
        "start_s": episode.start_s,
        "duration_s": episode.duration_s,
        "channels": list(episode.channels),
        "samples": sum(len(signal.times) for signal in episode.channels.values()),
        "provenance": source.to_json(),
        "added": added,
    }
