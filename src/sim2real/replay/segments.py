"""Segments of logs: where they may start, which of many to use, and which log each belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sim2real.arrays import Ints
from sim2real.errors import Sim2RealError

if TYPE_CHECKING:
    from sim2real.logs import ControlLog
    from sim2real.replay.measured_states import MeasuredStates

UNEVEN = 0.25
"""Largest lateness of a row, in periods; segments with later rows are left out."""
GAP = 3
"""Most periods without new readings that a measured state may be interpolated over."""
_FEW = 5
"""Of fewer recordings than this, segments are resampled instead."""


def starts_of(
    log: ControlLog, states: MeasuredStates, period_s: float, *, steps: int, lead: int, stride: int
) -> Ints:
    """Rows where segments can start, because everything around them is known and even."""
    rows = len(log.times)
    if rows < lead + steps + 1:
        raise Sim2RealError(
            f"episode {log.episode} has {rows} periods, and a segment needs {lead + steps + 1}:"
            " choose a shorter horizon"
        )
    even = np.abs(np.diff(log.times) - period_s) < UNEVEN * period_s
    sent = np.all(np.isfinite(log.command), axis=1)[:-1]
    # No segment starts from the last states, and their delayed readings may be missing.
    known = states.known(log.times, GAP * period_s)[:-1]
    candidates = np.arange(lead, rows - steps, stride)
    span = candidates[:, None] + np.arange(-lead, steps)
    before = candidates[:, None] + np.arange(-lead, 1)
    good = even[span].all(axis=1) & sent[span].all(axis=1) & known[before].all(axis=1)
    if not good.any():
        why = "commands" if not sent[span].all(axis=1).any() else "even, gapless readings"
        raise Sim2RealError(
            f"episode {log.episode} has no part of {(lead + steps) * period_s:.3g} s with {why}"
        )
    return np.asarray(candidates[good])


def recordings_of(log: ControlLog, states: MeasuredStates, period_s: float) -> tuple[Ints, Ints]:
    """(first row, rows that follow) of every recording whose first state is known."""
    pauses = np.abs(np.diff(log.times) - period_s) >= UNEVEN * period_s
    starts = np.concatenate([[0], np.flatnonzero(pauses) + 1])
    lengths = np.diff(np.append(starts, len(log.times))) - 1
    good = (lengths > 0) & states.known(log.times[starts], GAP * period_s)
    if not good.any():
        raise Sim2RealError(f"episode {log.episode} has no recording whose first state is known")
    return starts[good], lengths[good]


def spread_evenly(count: int, most: int) -> Ints:
    """Indices of at most `most` of `count` things, spread evenly."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int))


def log_of(logs: Sequence[ControlLog], rows: Ints) -> Ints:
    """Index of the log, of several joined ones, that each row belongs to."""
    ends = np.cumsum([len(log.times) for log in logs])
    return np.searchsorted(ends, rows, side="right")


def clusters_of(recording: Ints) -> Ints:
    """(segments,) cluster of each for resampling: its recording, or itself with few recordings."""
    names, place = np.unique(recording, return_inverse=True)
    return place if len(names) >= _FEW else np.arange(len(recording))


def seconds_of(logs: Sequence[ControlLog]) -> float:
    """Total time of the logs [s]."""
    return sum(float(np.ptp(log.times)) for log in logs if len(log.times))
