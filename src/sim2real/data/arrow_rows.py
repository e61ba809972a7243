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

EPISODES = pa.schema(
    [
        ("id", pa.string()),
        ("kind", pa.string()),
        ("outcome", pa.string()),
        ("task", pa.string()),
        ("twin", pa.string()),
        ("twin_version", pa.string()),
        ("policy", pa.string()),
        ("robot", pa.string()),
        ("serial", pa.string()),
        ("site", pa.string()),
        ("operator", pa.string()),
        ("seed", pa.int64()),
        ("world", pa.int64()),
        ("engine", pa.string()),
        ("engine_version", pa.string()),
        ("commit", pa.string()),
        ("source", pa.string()),
        ("participants", pa.list_(pa.string())),
        ("parameters", pa.map_(pa.string(), pa.float64())),
        ("parents", pa.list_(pa.string())),
        ("process", pa.string()),
        ("start_s", pa.float64()),
        ("duration_s", pa.float64()),
        ("channels", pa.list_(pa.string())),
        ("samples", pa.int64()),
        ("provenance", pa.string()),
        ("added", pa.timestamp("us", tz="UTC")),
    ]
)
"""One row per episode; `provenance` is all of it as JSON, other columns are parts of it."""

_LISTS = {
    "f64": pa.large_list(pa.float64()),
    "f32": pa.large_list(pa.float32()),
    "i64": pa.large_list(pa.int64()),
    "u64": pa.large_list(pa.uint64()),
    "raw": pa.large_binary(),
}
SIGNALS = pa.schema(
    [
        ("episode", pa.string()),
        ("channel", pa.string()),
        ("unit", pa.string()),
        ("stated_hz", pa.float64()),
        ("dtype", pa.string()),
        ("shape", pa.list_(pa.int32())),
        ("times", pa.large_list(pa.float64())),
        *_LISTS.items(),
        ("file", pa.string()),
    ]
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
    columns: dict[str, list[object]] = {name: [] for name in SIGNALS.names}
    for episode in sorted(episodes, key=lambda episode: episode.id):
        for name, channel in episode.channels.items():
            for column in (*_LISTS, "file"):
                columns[column].append(None)
            if isinstance(channel, Video):
                columns["dtype"].append(VIDEO)
                columns["file"][-1] = channel.file
            else:
                columns["dtype"].append(channel.values.dtype.str)
                place = _place(channel.values.dtype)
                flat = channel.values.reshape(-1)
                columns[place][-1] = flat.tobytes() if place == "raw" else flat
            columns["episode"].append(episode.id)
            columns["channel"].append(name)
            columns["unit"].append(channel.unit)
            columns["stated_hz"].append(channel.stated_hz)
            columns["shape"].append(list(channel.shape))
            columns["times"].append(channel.times)
    with explaining("these channels cannot be stored", pa.ArrowException, UnicodeError):
        arrays = [pa.array(columns[entry.name], type=entry.type) for entry in SIGNALS]
    return pa.Table.from_arrays(arrays, schema=SIGNALS)


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
    place = _place(dtype)
    cell = signals[place][row]
    if place == "raw":
        values = np.frombuffer(cell.as_py(), dtype=dtype)
    else:
        values = cell.values.to_numpy(zero_copy_only=False).astype(dtype, copy=False)
    return Signal(times, values.reshape(len(times), *shape), unit, stated_hz)


def _place(dtype: np.dtype[np.generic]) -> str:
    """The list column that holds a type exactly; raw bytes for the small types."""
    kind, size = dtype.kind, dtype.itemsize
    if kind == "f" and size in (4, 8):
        return f"f{8 * size}"
    if kind == "i" and size == 8:
        return "i64"
    if kind == "u" and size == 8:
        return "u64"
    return "raw"


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
