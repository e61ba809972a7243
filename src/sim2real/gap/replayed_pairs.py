"""Every stretch of a log twice: as the robot made it, and as the twin would have made it.

From the robot's measured state the twin moves on under the same commands, with all its chance
(noise, rounding, jitter, loss), and is recorded as the robot was. Both recordings then go the same
way: a state is measured from their readings, and the twin without its chance predicts what follows.

If the twin is right, the two of a pair could be exchanged and nobody would notice. That is what the
tests of the gap rest on, and the errors of the made stretches are the floor: what chance alone
makes of the errors, whatever noise, delay or way of measuring speeds there is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from sim2real.arrays import Bools, Floats, Ints
from sim2real.errors import Sim2RealError
from sim2real.logs import ControlLog
from sim2real.replay import Replay, Replayer, best_guess, lead_periods, log_of, seconds_of
from sim2real.twin import Twin

_BEFORE = 2
"""Rows before the lead, so that speeds are fitted to readings on both sides of it."""
_LEAD_S = 0.1
"""Time that the twin moves before a segment starts, so that its motion is its own by then [s]."""
_LEAD_GOALS_S = 0.5
"""The same where servos move a goal of their own, which depends on what was sent before [s]."""


@dataclass(frozen=True, kw_only=True)
class ReplayedPairs:
    """Stretches of logs, real and made, each predicted by the twin's best guess."""

    real: Replay
    """One vector of values; its log is of the stretches, one after the other."""
    made: Replay
    """The same stretches as the twin makes them."""
    recording: Ints
    """(segments,) which of the logs each is from."""
    since_s: Floats
    """(segments,) time from the begin of its recording to that of the segment [s]."""
    command: Floats
    """(segments, periods, commands) what was sent."""
    diverged: int
    """Stretches left out because the twin diverged in them."""
    replayer: Replayer
    """What `real` was made with, of the same segments."""

    @property
    def steps(self) -> int:
        """Periods of a segment."""
        return int(self.real.measured.shape[1])

    @property
    def horizon_s(self) -> float:
        """Length of a segment [s]."""
        return self.steps * self.real.period_s

    def seen(self, sensor: str) -> bool:
        """Whether any segment has a reading of the sensor."""
        return bool(self.real.valid[..., self.real.column(sensor)].any())

    def at_start(self, replay: Replay) -> Floats:
        """(segments, numbers) newest readings where segments of one of the two start."""
        return replay.log.readings[replay.starts]


@dataclass(frozen=True)
class _Shape:
    """How a stretch is laid out: rows before, a lead, a segment."""

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
        """Of a whole stretch."""
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
class _Pieces:
    """Stretches, one after the other, as the robot made them and as the twin does."""

    real: ControlLog
    made: ControlLog
    firsts: Ints
    """(stretches,) row of the whole log that each begins with."""
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
    """Pairs of stretches of `horizon_s`, at most `most` of them, spread evenly over the logs.

    `draws` (n, parameters) are values that the replayer will be asked for too. With `apart` no
    reading is in one segment and in the start of the next: the robot's neighbours would depend on
    each other by it, and those that the twin makes do not. Logs that are too
    short, too uneven or of another robot are a `Sim2RealError`.
    """
    values = best_guess(twin)[None]
    asked = values if draws is None else np.concatenate([values, draws])
    whole = ControlLog.join(logs)
    shape = _Shape.of(twin, whole, asked, horizon_s)
    make = partial(
        Replayer, twin, values=asked, lead_s=shape.lead_s, remainder=remainder, threads=threads
    )
    stride = (shape.steps + (shape.filled + _BEFORE if apart else 0)) * shape.period_s
    maker = make(
        whole, horizon_s=shape.rows * shape.period_s,
        stride_s=max(stride, seconds_of(logs) / most), chance="all", seed=seed,
    )  # fmt: skip
    pieces = _pieces(whole, maker, shape, maker(values, report=_third(report, 0)))
    of_real, of_made, both = _ready(make, pieces, shape)
    real, fake = (
        one(values, report=_third(report, k)) for k, one in enumerate((of_real, of_made), 1)
    )
    good = _finite(real) & _finite(fake)
    if not good.any():
        raise Sim2RealError(f"twin {twin.name!r} diverges within {horizon_s:g} s everywhere")
    starts = pieces.firsts[both][good] + _BEFORE + shape.lead
    recording = log_of(logs, starts)
    begins = np.cumsum([0, *(len(log.times) for log in logs)])[recording]
    return ReplayedPairs(
        real=_some(real, good),
        made=_some(fake, good),
        recording=recording,
        since_s=whole.times[starts] - whole.times[begins],
        command=whole.command[starts[:, None] + np.arange(shape.steps)],
        diverged=pieces.diverged + int((~good).sum()),
        replayer=of_real.part(np.flatnonzero(good)),
    )


def _pieces(whole: ControlLog, maker: Replayer, shape: _Shape, made: Replay) -> _Pieces:
    """The stretches that the twin came through, from what it made of all of them."""
    there = np.isfinite(made.predicted[0]).all(axis=(1, 2))
    if not there.any():
        raise Sim2RealError(
            f"twin {maker.twin.name!r} diverges wherever it is started from the recordings: are"
            " they of this robot, and in these units?"
        )
    firsts = maker.starts[there] + 1
    pieces = ControlLog.join([whole.part(slice(first, first + shape.rows)) for first in firsts])
    readings = made.predicted[0][there].reshape(len(pieces.times), -1)
    copy = _as_made(maker.twin, pieces, readings, shape.period_s)
    return _Pieces(pieces, copy, firsts, int((~there).sum()))


def _ready(
    make: Callable[..., Replayer], pieces: _Pieces, shape: _Shape
) -> tuple[Replayer, Replayer, Ints]:
    """Replayers of the real and the made segments, and which of the stretches have both."""
    cut = slice(_BEFORE, None)  # the first start of all then lies as deep in its piece as others
    replayers = [
        make(
            log.part(cut),
            horizon_s=shape.steps * shape.period_s,
            stride_s=shape.rows * shape.period_s,
        )
        for log in (pieces.real, pieces.made)
    ]
    places = [(found.starts - shape.lead) // shape.rows for found in replayers]
    both = np.intersect1d(places[0], places[1])
    if not len(both):
        raise Sim2RealError("no stretch of the recordings can be compared with the twin's own")
    real, made = (
        found.part(np.flatnonzero(np.isin(mine, both)))
        for found, mine in zip(replayers, places, strict=True)
    )
    return real, made, both


def _moves_goals(twin: Twin) -> bool:
    """Whether an actuator goes to what it is sent by a way of its own."""
    place = twin.compile()
    limits = [(a.slew, a.acceleration) for a in place.effects.actuators.values()]
    return bool(place.model.na) or any(math.isfinite(limit) for pair in limits for limit in pair)


def _as_made(twin: Twin, pieces: ControlLog, readings: Floats, period_s: float) -> ControlLog:
    """The log of the pieces with the twin's readings, where the robot's log has some."""
    fresh = pieces.fresh.copy()
    effects = twin.compile().effects.sensors
    for column, spec in enumerate(pieces.contract.sensors):
        mine = effects.get(spec.name)
        if mine is not None and mine.period > 1.5 * period_s:
            # A slow sensor of the twin is read at times of its own, which its readings show.
            fresh[:, column] = fresh[:, column].any()
    known = np.isfinite(pieces.readings)
    return replace(pieces, readings=np.where(known, readings, np.nan), fresh=fresh)


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


def _third(report: Callable[[int, int], None], place: int) -> Callable[[int, int], None]:
    return lambda done, of: report(place * of + done, 3 * of)
