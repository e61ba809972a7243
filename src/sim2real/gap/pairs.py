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

import numpy as np

from sim2real.errors import Sim2RealError
from sim2real.gap.log import Log
from sim2real.gap.replay import Replay, Replayer, lead_periods
from sim2real.gap.segments import log_of, seconds_of
from sim2real.gap.unknowns import best_guess
from sim2real.twin import Twin

_BEFORE = 2
"""Rows before the lead, so that speeds are fitted to readings on both sides of it."""
_LEAD_S = 0.1
"""Time that the twin moves before a segment starts, so that its motion is its own by then [s]."""
_LEAD_GOALS_S = 0.5
"""The same where servos move a goal of their own, which depends on what was sent before [s]."""


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Stretches of logs, real and made, each predicted by the twin's best guess."""

    real: Replay
    """One vector of values; its log is of the stretches, one after the other."""
    made: Replay
    """The same stretches as the twin makes them."""
    recording: np.ndarray
    """(segments,) which of the logs each is from."""
    since_s: np.ndarray
    """(segments,) time from the begin of its recording to that of the segment [s]."""
    command: np.ndarray
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

    def at_start(self, replay: Replay) -> np.ndarray:
        """(segments, numbers) newest readings where segments of one of the two start."""
        found: np.ndarray = replay.log.readings[replay.starts]
        return found


def make_pairs(
    twin: Twin,
    logs: Sequence[Log],
    *,
    horizon_s: float,
    most: int,
    draws: np.ndarray | None = None,
    apart: bool = True,
    seed: int = 0,
    remainder: bool = False,
    threads: int = 0,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> Pairs:
    """Pairs of stretches of `horizon_s`, at most `most` of them, spread evenly over the logs.

    `draws` (n, parameters) are values that the replayer will be asked for too. With `apart` no
    reading is in one segment and in the start of the next: the robot's neighbours would depend on
    each other by it, and those that the twin makes do not. Logs that are too
    short, too uneven or of another robot are a `Sim2RealError`.
    """
    values = best_guess(twin)[None]
    asked = values if draws is None else np.concatenate([values, draws])
    whole = Log.join(logs)
    period = 1.0 / whole.contract.rate_hz
    steps = max(1, round(horizon_s / period))
    lead_s = _LEAD_GOALS_S if _moves_goals(twin) else _LEAD_S
    filled = lead_periods(twin, asked, period)
    between = filled + _BEFORE if apart else 0
    lead = max(filled, math.ceil(lead_s / period - 1e-9))
    rows = _BEFORE + lead + 1 + steps
    seconds = seconds_of(logs)
    maker = Replayer(
        twin,
        whole,
        horizon_s=rows * period,
        stride_s=max((steps + between) * period, seconds / most),
        values=asked,
        chance="all",
        lead_s=lead_s,
        seed=seed,
        remainder=remainder,
        threads=threads,
    )
    made = maker(values, report=_third(report, 0)).predicted[0]
    whole_there = np.isfinite(made).all(axis=(1, 2))
    if not whole_there.any():
        raise Sim2RealError(
            f"twin {twin.name!r} diverges wherever it is started from the recordings: are they of"
            " this robot, and in these units?"
        )
    firsts = maker.starts[whole_there] + 1
    pieces = Log.join([whole.part(slice(first, first + rows)) for first in firsts])
    copy = _as_made(twin, pieces, made[whole_there].reshape(len(pieces.times), -1), period)
    cut = slice(_BEFORE, None)  # the first start of all then lies as deep in its piece as others

    def ready(log: Log) -> tuple[Replayer, np.ndarray]:
        found = Replayer(
            twin,
            log.part(cut),
            horizon_s=steps * period,
            stride_s=rows * period,
            values=asked,
            lead_s=lead_s,
            remainder=remainder,
            threads=threads,
        )
        return found, (found.starts - lead) // rows

    (of_real, known), (of_made, also) = ready(pieces), ready(copy)
    both = np.intersect1d(known, also)
    if not len(both):
        raise Sim2RealError("no stretch of the recordings can be compared with the twin's own")
    of_real = of_real.part(np.flatnonzero(np.isin(known, both)))
    of_made = of_made.part(np.flatnonzero(np.isin(also, both)))
    real, fake = (
        one(values, report=_third(report, k)) for k, one in enumerate((of_real, of_made), 1)
    )
    good = _finite(real) & _finite(fake)
    if not good.any():
        raise Sim2RealError(f"twin {twin.name!r} diverges within {horizon_s:g} s everywhere")
    starts = firsts[both][good] + _BEFORE + lead
    recording = log_of(logs, starts)
    begins = np.cumsum([0, *(len(log.times) for log in logs)])[recording]
    return Pairs(
        real=_some(real, good),
        made=_some(fake, good),
        recording=recording,
        since_s=whole.times[starts] - whole.times[begins],
        command=whole.command[starts[:, None] + np.arange(steps)],
        diverged=int((~whole_there).sum() + (~good).sum()),
        replayer=of_real.part(np.flatnonzero(good)),
    )


def _moves_goals(twin: Twin) -> bool:
    """Whether an actuator goes to what it is sent by a way of its own."""
    place = twin.compile()
    limits = [(a.slew, a.acceleration) for a in place.effects.actuators.values()]
    return bool(place.model.na) or any(math.isfinite(limit) for pair in limits for limit in pair)


def _as_made(twin: Twin, pieces: Log, readings: np.ndarray, period_s: float) -> Log:
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


def _finite(replay: Replay) -> np.ndarray:
    """(segments,) whether the prediction stayed finite."""
    found: np.ndarray = np.isfinite(replay.predicted[0]).all(axis=(1, 2))
    return found


def _some(replay: Replay, segments: np.ndarray) -> Replay:
    return replace(
        replay,
        starts=replay.starts[segments],
        predicted=replay.predicted[:, segments],
        measured=replay.measured[segments],
        start_effects=replay.start_effects[:, segments],
    )


def _third(report: Callable[[int, int], None], place: int) -> Callable[[int, int], None]:
    return lambda done, of: report(place * of + done, 3 * of)
