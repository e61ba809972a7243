"""Numbers of a sensor in a few segments: as measured, and as a twin predicts them, old and new."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sim2real.arrays import Floats
from sim2real.replay.segments import spread_evenly

if TYPE_CHECKING:
    from sim2real.replay.replayer import Replay

_SEGMENTS = 6
"""Segments that are shown, one after the other."""


@dataclass(frozen=True, kw_only=True)
class ReplayedNumber:
    """One number of a sensor in a few segments."""

    name: str
    unit: str
    period_s: float
    measured: Floats
    """(segments, periods); nan where there is no reading."""
    before: Floats
    after: Floats
    """(segments, periods) as predicted from the measured state at the start."""


@dataclass(frozen=True, kw_only=True)
class ReplayedNumbers:
    """The liveliest numbers of all sensors."""

    shown: tuple[ReplayedNumber, ...] = ()
    omitted: int = 0
    """Numbers with readings that are not shown."""


def replayed_numbers(before: Replay, after: Replay, *, most: int = 8) -> ReplayedNumbers:
    """At most `most` numbers of two replays of one log, by the best guesses of two twins."""
    segments = spread_evenly(len(before.starts), _SEGMENTS)
    specs = {spec.name: spec for spec in before.log.contract.sensors}
    shown = []
    for sensor, component in numbers_shown(before, most):
        column = before.column(sensor).start + component
        shown.append(
            ReplayedNumber(
                name=specs[sensor].numbers[component],
                unit=specs[sensor].unit,
                period_s=before.period_s,
                measured=before.measured[segments, :, column],
                before=before.predicted[0, segments, :, column],
                after=after.predicted[0, segments, :, column],
            )
        )
    seen = int(np.isfinite(before.measured).any(axis=(0, 1)).sum())
    return ReplayedNumbers(shown=tuple(shown), omitted=seen - len(shown))


def numbers_shown(replay: Replay, most: int) -> Sequence[tuple[str, int]]:
    """(sensor, component) of at most `most` numbers; each sensor's liveliest come first."""
    order = []
    for spec, columns in replay.log.columns():
        part = replay.measured[..., columns].reshape(-1, spec.width)
        seen = np.any(np.isfinite(part), axis=0)
        spread = np.where(seen, np.nanstd(np.where(seen, part, 0.0), axis=0), -1.0)
        ranked = [int(c) for c in np.argsort(-spread) if seen[c]]
        order += [(place, spec.name, component) for place, component in enumerate(ranked)]
    return [(name, component) for _, name, component in sorted(order, key=lambda o: o[0])[:most]]
