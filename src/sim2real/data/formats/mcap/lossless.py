"""sim2real's own layout of MCAP files, from which an episode is restored exactly.

The first record is metadata: the provenance, and a description of each topic. Messages are
`{"time": seconds, "value": …}` in JSON. A video is an attachment, and its topic gives the times of
its frames. Floats that JSON does not have are texts: 'NaN', 'Infinity', '-Infinity', or 'NaN:' and
the bits of a nan with a payload.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from mcap.records import Attachment, Metadata

from sim2real.arrays import Array
from sim2real.data.episode import Episode, Signal
from sim2real.data.formats.mcap.decode import decode_json
from sim2real.data.formats.mcap.records import CutOff, McapMessage, Record
from sim2real.data.formats.round_trip import made_again
from sim2real.data.provenance import Provenance
from sim2real.data.video import Video
from sim2real.errors import Sim2RealError, explaining, number_at

OWN = "sim2real"
CUT_OFF = "read up to where the file was cut off"
"""Process of an episode that is the first part of a file."""
_DTYPES = frozenset(
    ["|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8"]
)
_DAMAGE = (KeyError, ValueError, TypeError, OverflowError, AttributeError, RecursionError)
"""What malformed plain data raise."""


def plain(values: Array) -> list[object]:
    """Values as JSON can hold them exactly."""
    if values.dtype.kind != "f" or np.isfinite(values).all():
        return list(values.tolist())
    flat = [_told(value) for value in values.reshape(-1)]
    boxed = np.empty(len(flat), dtype=object)
    boxed[:] = flat
    return list(boxed.reshape(values.shape).tolist())


def _told(value: np.generic) -> object:
    if np.isfinite(value):
        return value.item()
    if np.isinf(value):
        return "-Infinity" if np.signbit(value) else "Infinity"
    bits = value.tobytes()[::-1].hex()
    usual = np.array(np.nan, value.dtype).tobytes()[::-1].hex()
    return "NaN" if bits == usual else f"NaN:{bits}"


def exact(values: list[object], dtype: np.dtype[np.generic], shape: tuple[int, ...]) -> Array:
    """The array that `plain` turned into a list."""
    try:
        return np.array(values, dtype).reshape(len(values), *shape)
    except (ValueError, TypeError):
        boxed = np.array(values, dtype=object).reshape(len(values), *shape)
    found = np.empty(boxed.shape, dtype)
    for index, value in np.ndenumerate(boxed):
        if isinstance(value, str) and value.startswith("NaN:"):
            found[index] = np.frombuffer(bytes.fromhex(value[4:])[::-1], dtype)[0]
        else:
            found[index] = float(value) if isinstance(value, str) else value
    return found


def own_episode(records: Iterable[Record], source: str) -> Episode:
    """The episode that `write_mcap` wrote; of a truncated file, what is left of it."""
    notes: dict[str, str] = {}
    rows: dict[str, list[dict[str, object]]] = {}
    films: dict[str, bytes] = {}
    cut_off = False
    for record in records:
        if isinstance(record, CutOff):
            cut_off = True
        elif isinstance(record, Metadata) and record.name == OWN:
            notes = record.metadata
        elif isinstance(record, Attachment):
            films[record.name] = record.data
        elif isinstance(record, McapMessage):
            rows.setdefault(record.channel.topic, []).append(decode_json(record.data))
    with explaining("its metadata are damaged", *_DAMAGE):
        channels = _channels(json.loads(notes["channels"]), rows, films, cut_off=cut_off)
        about = {**notes, "provenance": json.loads(notes["provenance"])}
        if not cut_off:
            return made_again(about, channels, "its content")
        provenance = replace(
            Provenance.from_dict(about["provenance"]),
            parents=(notes["id"],),
            process=CUT_OFF,
            source=source,
        )
        return Episode(channels, provenance, notes["outcome"])


def _channels(
    notes: dict[str, dict[str, Any]],
    rows: dict[str, list[dict[str, object]]],
    films: dict[str, bytes],
    *,
    cut_off: bool,
) -> dict[str, Signal | Video]:
    channels: dict[str, Signal | Video] = {}
    for topic, entry in notes.items():
        found = rows.get(topic, [])
        times = exact([row["time"] for row in found], np.dtype("<f8"), ()).astype(np.float64)
        stated_hz = number_at(entry["stated_hz"], f"rate of {topic}")
        if "film" in entry:
            if cut_off and (entry["film"] not in films or len(found) != entry["frames"]):
                continue  # a video is there completely or not at all
            channels[entry["name"]] = Video(times, films[entry["film"]], stated_hz)
            continue
        if entry["dtype"] not in _DTYPES:
            raise Sim2RealError(f"topic {topic!r} has an unknown type")
        shape = tuple(int(n) for n in entry["shape"])
        values = exact([row["value"] for row in found], np.dtype(entry["dtype"]), shape)
        channels[entry["name"]] = Signal(times, values, str(entry["unit"]), stated_hz)
    return channels
