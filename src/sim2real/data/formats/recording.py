"""Recordings of our own runs on robots: an Arrow stream that grows while the robot moves.

What ended the run does not matter: whatever was flushed is an episode, and says if it was cut off.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sim2real.data.episode import Episode, Signal
from sim2real.data.formats.file_errors import naming
from sim2real.data.provenance import Provenance
from sim2real.errors import Sim2RealError, explaining, table_at
from sim2real.files import read_json

_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"
"""Last bytes of an Arrow stream that was closed."""
_RECOVERED = "recovered: the recording was cut off"
"""Process of an episode that is the first part of a recording."""
_log = logging.getLogger(__name__)


def read_recordings(path: Path, *, base: Provenance) -> Iterator[Episode]:
    """The episode of one recording, with a warning if it was cut off.

    It knows where it comes from, so `base` adds nothing.
    """
    episode = read_recording(path)
    if episode.provenance.process == _RECOVERED:
        _log.warning("%s is cut off after %.3g s", path, episode.duration_s)
    yield episode


def read_recording(path: Path | str) -> Episode:
    """The episode in a recording, even in one that was cut off; none is a `Sim2RealError`.

    Its outcome is the one in the JSON file beside it, if any. Its provenance is completed from
    there by why it was stopped, which nobody knew when the recording began; files that earlier
    versions wrote do not say that there, so that their episodes keep their ids.
    """
    path = Path(path)
    outcome, stopped = _told_beside(path.with_suffix(".json"))
    batches, cut = [], False
    with explaining(
        f"{path} is not a recording", pa.ArrowException, OSError, ValueError, KeyError, TypeError
    ):
        with path.open("rb") as file:
            reader = pa.ipc.open_stream(file)
            schema = reader.schema
            try:
                for batch in reader:
                    batches.append(batch)
            except (pa.ArrowException, OSError):
                cut = True
            cut = cut or not path.read_bytes().endswith(_END)
        units = table_at(json.loads(schema.metadata[b"units"]), f"{path}: units")
        source = Provenance.from_dict(json.loads(schema.metadata[b"provenance"]))
        channels = _channels(pa.Table.from_batches(batches, schema=schema), units)
    if not channels:
        raise Sim2RealError(f"{path} contains no control period")
    if cut:
        source = replace(source, process=_RECOVERED)
    if stopped:
        source = replace(source, stopped=stopped)
    with naming(path):
        return Episode(channels=channels, provenance=source, outcome=outcome)


def _told_beside(path: Path) -> tuple[str, str]:
    """Outcome of a recording, and why it was stopped, as the file beside it says; else empty."""
    if not path.is_file():
        return "", ""
    told = table_at(read_json(path), str(path))
    source = table_at(told.get("provenance", {}), f"{path}: provenance")
    return str(told.get("outcome", "")), str(source.get("stopped", ""))


def _channels(table: pa.Table, units: Mapping[str, Any]) -> dict[str, Signal]:
    times = table["time"].to_numpy()
    channels = {}
    for name, unit in units.items():
        rows = [np.asarray(row, float) for row in table[name].to_pylist()]
        width = max((len(row) for row in rows), default=0)
        whole = [k for k, row in enumerate(rows) if len(row) == width and width]
        if whole:
            channels[name] = Signal(times[whole], np.stack([rows[k] for k in whole]), str(unit))
    return channels
