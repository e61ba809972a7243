"""Segments of logs: where they may start, which of many to use, and which log each belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from sim2real.arrays import Floats, Ints
from sim2real.errors import Sim2RealError

if TYPE_CHECKING:
    from sim2real.logs import ControlLog
    from sim2real.replay.measured_states import MeasuredStates

UNEVEN = 0.25
"""Largest error of the time between rows, in periods; segments with larger ones are left out."""
GAP = 3
"""Most periods without new readings that a measured state may be interpolated over."""
_MIN_RECORDINGS = 5
"""Fewest recordings to resample; with fewer, segments are resampled instead."""


@dataclass(frozen=True, kw_only=True)
class Segments:
    """Stretches of a log on even control periods, each with a measured state that it starts from.

    This is what is replayed, whatever for: commands to send, states to start from, readings to
    compare with.
    """

    log: ControlLog
    states: MeasuredStates
    period_s: float
    starts: Ints
    """(segments,) row of the log that each segment starts from."""
    lengths: Ints
    """(segments,) periods of each."""
    lead: int
    """Periods before each start along which worlds are led, so that delayed signals are known."""

    @classmethod
    def cut(
        cls,
        log: ControlLog,
        states: MeasuredStates,
        period_s: float,
        *,
        horizon_s: float,
        stride_s: float | None = None,
        lead: int = 0,
    ) -> Self:
        """Segments of `horizon_s`, one every `stride_s`, by default end to end."""
        steps = max(1, round(horizon_s / period_s))
        stride = max(1, round((stride_s or steps * period_s) / period_s))
        starts = starts_of(log, states, period_s, steps=steps, lead=lead, stride=stride)
        lengths = np.full(len(starts), steps)
        return cls(
            log=log, states=states, period_s=period_s, starts=starts, lengths=lengths, lead=lead
        )

    @classmethod
    def whole(
        cls, log: ControlLog, states: MeasuredStates, period_s: float, *, horizon_s: float
    ) -> Self:
        """One segment per recording, from its first row on, of `horizon_s` or up to its end."""
        starts, lengths = recordings_of(log, states, period_s)
        lengths = np.minimum(lengths, max(1, round(horizon_s / period_s)))
        return cls(
            log=log, states=states, period_s=period_s, starts=starts, lengths=lengths, lead=0
        )

    @property
    def steps(self) -> int:
        """Periods of the longest segment."""
        return int(self.lengths.max())

    @cached_property
    def measured(self) -> Floats:
        """(segments, steps, numbers) readings after the start; nan where there is no new one."""
        ahead = np.arange(1, self.steps + 1)
        rows = np.minimum(self.starts[:, None] + ahead, len(self.log.times) - 1)
        there = (ahead <= self.lengths[:, None])[..., None]
        widths = [spec.width for spec in self.log.contract.sensors]
        fresh = np.repeat(self.log.fresh, widths, axis=1)[rows]
        return np.where(there & fresh, self.log.readings[rows], np.nan)

    def stated(self, names: Sequence[str]) -> dict[int, Floats]:
        """(segments,) values of parameters that the log states, by their place in `names`."""
        places = {name: k for k, name in enumerate(names)}
        return {
            places[name]: values[self.starts]
            for name, values in self.log.known.items()
            if name in places
        }

    def part(self, chosen: Ints) -> Self:
        """Some of the segments."""
        return replace(self, starts=self.starts[chosen], lengths=self.lengths[chosen])


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
    return place if len(names) >= _MIN_RECORDINGS else np.arange(len(recording))


def seconds_of(logs: Sequence[ControlLog]) -> float:
    """Total time of the logs [s]."""
    return sum(float(np.ptp(log.times)) for log in logs if len(log.times))
