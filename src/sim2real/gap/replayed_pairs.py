"""Every segment of a log twice: as the robot produced it, and as the twin would have.

From the robot's measured state the twin moves on under the same commands, with all its randomness
(noise, rounding, jitter, loss), and is recorded like the robot. Both recordings are then treated
alike: a state is measured from the readings, and the twin without randomness predicts what follows.

If the twin is right, the two segments of a pair are exchangeable. The tests of the gap rest on
that, and the errors on simulated segments are the floor: the error that randomness alone causes,
whatever the noise, the delays or the way speeds are measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from sim2real.arrays import Bools, Floats, Ints
from sim2real.contract import SensorSpec
from sim2real.errors import Sim2RealError
from sim2real.logs import ControlLog
from sim2real.replay import Replay, Replayer, lead_periods, log_of, seconds_of
from sim2real.twin import Twin

_BEFORE = 2
"""Rows before the lead, so that speeds are fitted to readings on both sides of its first row."""
_LEAD_S = 0.1
"""Time that the twin moves before a segment, so that the motion is its own at the start [s]."""
_LEAD_GOALS_S = 0.5
"""The same for servos with internal targets, which depend on earlier commands [s]."""


@dataclass(frozen=True, kw_only=True)
class ReplayedPairs:
    """Real and simulated segments, each predicted by the twin's best guess."""

    real: Replay
    """With one vector of values; its log is the excerpts, one after the other."""
    simulated: Replay
    """The same for the twin's own segments."""
    recording: Ints
    """(segments,) index of the log that each is from."""
    since_s: Floats
    """(segments,) time from the start of its recording to its start [s]."""
    command: Floats
    """(segments, periods, commands) what was sent."""
    diverged: int
    """Segments left out because the twin diverged."""
    replayer: Replayer
    """Makes `real`, for the same segments."""

    @property
    def steps(self) -> int:
        """Periods of a segment."""
        return int(self.real.measured.shape[1])

    @property
    def horizon_s(self) -> float:
        """Length of a segment [s]."""
        return self.steps * self.real.period_s

    @property
    def sensors(self) -> list[tuple[SensorSpec, slice]]:
        """The sensors with any reading, and the columns of their numbers."""
        columns = self.real.log.columns()
        return [(spec, part) for spec, part in columns if self.real.valid[..., part].any()]

    def at_start(self, replay: Replay) -> Floats:
        """(segments, numbers) newest readings at the starts of real or simulated segments."""
        return replay.log.readings[replay.starts]


@dataclass(frozen=True)
class _Shape:
    """Layout of an excerpt of a log: rows before, a lead, a segment."""

    period_s: float
    steps: int
    """Periods of the segment."""
    lead_s: float
    filled: int
    """Periods that fill the twin's delays."""
    lead: int
    """Periods of the lead, no fewer than those."""

    @property
    def rows(self) -> int:
        """Of an excerpt."""
        return _BEFORE + self.lead + 1 + self.steps

    @classmethod
    def of(cls, twin: Twin, log: ControlLog, values: Floats, horizon_s: float) -> _Shape:
        """The shape for segments of a log, predicted with values (n, parameters)."""
        period_s = 1.0 / log.contract.rate_hz
        lead_s = _LEAD_GOALS_S if _moves_goals(twin) else _LEAD_S
        filled = lead_periods(twin, values, period_s)
        steps = max(1, round(horizon_s / period_s))
        return cls(
            period_s, steps, lead_s, filled, max(filled, math.ceil(lead_s / period_s - 1e-9))
        )


@dataclass(frozen=True)
class _Excerpts:
    """Excerpts, one after the other, from the robot and from the twin."""

    real: ControlLog
    simulated: ControlLog
    firsts: Ints
    """(excerpts,) row of the whole log that each starts with."""
    diverged: int


def make_pairs(
    twin: Twin,
    logs: Sequence[ControlLog],
    *,
    horizon_s: float,
    most: int,
    draws: Floats | None = None,
    apart: bool = True,
    seed: int = 0,
    remainder: bool = False,
    threads: int = 0,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> ReplayedPairs:
    """At most `most` pairs of segments of `horizon_s`, spread evenly over the logs.

    `draws` (n, parameters) are values that the replayer will be asked for, too. With `apart` no
    reading of a segment is used for the start of the next: real neighbours would then be correlated
    and simulated ones not. Logs that are too short, too uneven or of another robot are a
    `Sim2RealError`.
    """
    values = twin.best_guess()[None]
    asked = values if draws is None else np.concatenate([values, draws])
    whole = ControlLog.join(logs)
    shape = _Shape.of(twin, whole, asked, horizon_s)
    make = partial(
        Replayer, twin, values=asked, lead_s=shape.lead_s, remainder=remainder, threads=threads
    )
    stride = (shape.steps + (shape.filled + _BEFORE if apart else 0)) * shape.period_s
    maker = make(
        whole, horizon_s=shape.rows * shape.period_s,
        stride_s=max(stride, seconds_of(logs) / most), randomness="all", seed=seed,
    )  # fmt: skip
    excerpts = _excerpts(whole, maker, shape, maker(values, report=part_of(report, 0, 3)))
    of_real, of_fake, both = _ready(make, excerpts, shape)
    real, fake = (
        one(values, report=part_of(report, k, 3)) for k, one in enumerate((of_real, of_fake), 1)
    )
    good = _finite(real) & _finite(fake)
    if not good.any():
        raise Sim2RealError(f"twin {twin.name!r} diverges within {horizon_s:g} s in all segments")
    starts = excerpts.firsts[both][good] + _BEFORE + shape.lead
    recording = log_of(logs, starts)
    begins = np.cumsum([0, *(len(log.times) for log in logs)])[recording]
    return ReplayedPairs(
        real=_some(real, good),
        simulated=_some(fake, good),
        recording=recording,
        since_s=whole.times[starts] - whole.times[begins],
        command=whole.command[starts[:, None] + np.arange(shape.steps)],
        diverged=excerpts.diverged + int((~good).sum()),
        replayer=of_real.part(np.flatnonzero(good)),
    )


def _excerpts(whole: ControlLog, maker: Replayer, shape: _Shape, made: Replay) -> _Excerpts:
    """The excerpts in which the twin did not diverge; `made` is what it did in all of them."""
    there = np.isfinite(made.predicted[0]).all(axis=(1, 2))
    if not there.any():
        raise Sim2RealError(
            f"twin {maker.twin.name!r} diverges from every start in the recordings: are they of"
            " this robot, and in the units that the twin expects?"
        )
    firsts = maker.starts[there] + 1
    excerpts = ControlLog.join([whole.part(slice(first, first + shape.rows)) for first in firsts])
    readings = made.predicted[0][there].reshape(len(excerpts.times), -1)
    copy = _as_made(maker.twin, excerpts, readings, shape.period_s)
    return _Excerpts(excerpts, copy, firsts, int((~there).sum()))


def _ready(
    make: Callable[..., Replayer], excerpts: _Excerpts, shape: _Shape
) -> tuple[Replayer, Replayer, Ints]:
    """Replayers of the real and the simulated segments, and which of the excerpts have both."""
    cut = slice(_BEFORE, None)  # the first start then lies as deep in its excerpt as the others
    replayers = [
        make(
            log.part(cut),
            horizon_s=shape.steps * shape.period_s,
            stride_s=shape.rows * shape.period_s,
        )
        for log in (excerpts.real, excerpts.simulated)
    ]
    places = [(found.starts - shape.lead) // shape.rows for found in replayers]
    both = np.intersect1d(places[0], places[1])
    if not len(both):
        raise Sim2RealError("no segment of the recordings can be compared with the twin's own")
    real, fake = (
        found.part(np.flatnonzero(np.isin(mine, both)))
        for found, mine in zip(replayers, places, strict=True)
    )
    return real, fake, both


def _moves_goals(twin: Twin) -> bool:
    """Whether an actuator has an internal target that moves to its command."""
    place = twin.compile()
    limits = [(a.slew, a.acceleration) for a in place.effects.actuators.values()]
    return bool(place.model.na) or any(math.isfinite(limit) for pair in limits for limit in pair)


def _as_made(twin: Twin, excerpts: ControlLog, readings: Floats, period_s: float) -> ControlLog:
    """The log of the excerpts with the twin's readings wherever the robot's log has readings."""
    fresh = excerpts.fresh.copy()
    effects = twin.compile().effects.sensors
    for column, spec in enumerate(excerpts.contract.sensors):
        mine = effects.get(spec.name)
        if mine is not None and mine.period > 1.5 * period_s:
            # The twin reads a slow sensor at its own times, which show in its readings.
            fresh[:, column] = fresh[:, column].any()
    known = np.isfinite(excerpts.readings)
    return replace(excerpts, readings=np.where(known, readings, np.nan), fresh=fresh)


def _finite(replay: Replay) -> Bools:
    """(segments,) whether the prediction stayed finite."""
    return np.asarray(np.isfinite(replay.predicted[0]).all(axis=(1, 2)))


def _some(replay: Replay, segments: Bools) -> Replay:
    return replace(
        replay,
        starts=replay.starts[segments],
        predicted=replay.predicted[:, segments],
        measured=replay.measured[segments],
        start_effects=replay.start_effects[:, segments],
    )


def part_of(
    report: Callable[[int, int], None], place: int, parts: int
) -> Callable[[int, int], None]:
    """Reports part number `place` of several equal parts."""
    return lambda done, of: report(place * of + done, parts * of)
