"""Clocks that run at the wrong rate, as the motion of the robot shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from sim2real.arrays import Floats
from sim2real.data.check.lags import best_lag, changes, travelled
from sim2real.data.check.log_fault import LogFault
from sim2real.data.check.related_channels import CommandPositionPair, PositionVelocityPair
from sim2real.data.check.scalar_series import ScalarSeries
from sim2real.data.check.wrong_units import FACTORS, MAX_ERROR
from sim2real.units import counted

MIN_SLOPE_ERROR = 0.1
"""Velocities from drives are right within 3 %, coarse or heavily filtered ones within 9 %."""
MAX_SPREAD = 0.05
"""All joints share the clock: their slopes must agree this well, or the clock is not to blame."""
LAG_WINDOWS = 10
"""Pieces of an episode in which the lag is measured."""
MIN_LAG_GROWTH_S = 0.003
"""Smaller growth of a lag does no harm [s]."""
MIN_DRIFT_GAIN = 1.5
"""Undoing a drift must lower the unexplained part of the response by this factor.

A servo's lag changes with the frequency of its command. A fixed filter explains that, so one is
fitted with and without the drift before the two are compared.
"""


def check_clock_rate(motions: list[PositionVelocityPair]) -> Iterator[LogFault]:
    """Positions that change more or less than their velocities predict, in all joints alike."""
    slopes: list[tuple[float, PositionVelocityPair]] = []
    witnesses: list[float] = []
    for motion in motions:
        if not motion.confirmed or not (motion.units_known or not motion.named):
            continue
        narrow, wide = motion.slope(1), motion.slope(3)
        witnesses.append(narrow[0] * motion.si)
        speed = float(np.sqrt(np.mean(motion.grid[2] ** 2)))
        coarse = speed < 5 * motion.velocity.quantum
        if min(narrow[1], wide[1]) < 0.97 or coarse or abs(narrow[0] / wide[0] - 1) > MAX_SPREAD:
            continue
        # Both a delay and a filter make a velocity late: the explanation closer to 1 counts.
        either = (wide[0] * motion.si, motion.slope_of_filtered() * motion.si)
        slopes.append((min(either, key=lambda ratio: abs(ratio - 1)), motion))
    if not slopes:
        return
    ratios = np.array([ratio for ratio, _ in slopes])
    middle = float(np.median(ratios))
    if np.abs(ratios / middle - 1).max() > MAX_SPREAD or abs(middle - 1) < MIN_SLOPE_ERROR:
        return
    # Pairs too coarse for an estimate may still contradict it.
    if np.abs(np.array(witnesses) / middle - 1).max() > 3 * MAX_SPREAD:
        return
    motion = slopes[0][1]
    milli = motion.step_s > 0.5 and abs(middle * 1e3 - 1) < MAX_ERROR
    known = [f for size in FACTORS.values() for factor in size for f in (factor, 1 / factor)]
    if not milli and (
        not 0.2 < middle < 5 or any(abs(middle / factor - 1) < MAX_ERROR for factor in known)
    ):
        return
    joints = len({m.position.label for _, m in slopes})
    yield LogFault(
        kind="time-rate",
        # A single joint may just as well have a wrong scale.
        severity="error" if joints > 1 else "warning",
        channel=motion.position.channel,
        span=motion.position.span_of(None),
        message=f"positions change {middle:.4g} times as much as velocities and time stamps"
        f" predict, in {counted(joints, 'joint')}"
        f" ({motion.position.label}, {motion.velocity.label}, …):"
        f" a second of time stamps lasts {middle:.4g} s",
        remedy="stretch the time stamps by that factor, or correct the scale that is wrong in both",
        repairable=True,
        amount=middle,
    )


@dataclass(frozen=True)
class LagDrift:
    """How fast the lag between two channels grows."""

    cause: ScalarSeries
    response: ScalarSeries
    rate: float
    """Growth of the lag [s/s]; 0 for a steady lag."""
    span_s: float


def lag_drifts(
    motions: list[PositionVelocityPair], followings: list[CommandPositionPair]
) -> list[LagDrift]:
    """How fast the lags between related channels grow, where that can be measured."""
    found: list[LagDrift] = []
    for motion in motions:
        if motion.lag is not None and (motion.named or motion.confirmed):
            times, position, velocity = motion.grid
            half = max(2, motion.half // 4)
            drift = _drift(
                times[half:-half], changes(position, half),
                travelled(velocity, motion.step_s, half), floor=0.9,
            )  # fmt: skip
            if drift is not None:
                found.append(LagDrift(motion.position, motion.velocity, drift, _span(times)))
    for pair in followings:
        times, command, position = pair.grid
        half = max(1, int(0.01 / pair.step_s))
        drift = _drift(
            times[half:-half], changes(command, half), changes(position, half), floor=0.8
        )
        if drift is not None:
            found.append(LagDrift(pair.command, pair.position, drift, _span(times)))
    return found


def check_clock_drift(found: list[LagDrift], sharing: Mapping[str, int]) -> Iterator[LogFault]:
    """Channels whose lag against related ones grows during the episode.

    `sharing` is the number of channels with the same time stamps, by channel.
    """
    steady = {d.cause.channel for d in found if d.rate == 0}
    steady |= {d.response.channel for d in found if d.rate == 0}
    rates: dict[tuple[str, str], list[LagDrift]] = {}
    for drift_ in found:
        if drift_.rate:
            rates.setdefault((drift_.cause.channel, drift_.response.channel), []).append(drift_)
    # A clock has one rate: where joints disagree, it is not the clock.
    rates = {
        pair: ones
        for pair, ones in rates.items()
        if np.ptp([one.rate for one in ones]) <= 0.5 * abs(np.median([one.rate for one in ones]))
    }
    told: set[str] = set()
    for pair, ones in rates.items():
        wrong = _wrong(pair, list(rates), steady, sharing)
        if told & set(pair):
            continue
        told.add(wrong)
        one, rate = ones[0], float(np.median([one.rate for one in ones]))
        cause, response = pair
        # The response at t is the cause at t (1 - rate).
        runs = 1 / (1 - rate) if wrong == response else 1 - rate
        right = cause if wrong == response else response
        yield LogFault(
            kind="clock-drift",
            channel=wrong,
            span=(one.response if wrong == response else one.cause).span_of(None),
            message=f"its lag against {right} changes by {1e3 * (runs - 1) * one.span_s:+.4g} ms"
            f" in {one.span_s:.4g} s: its clock runs {1e6 * (runs - 1):+.4g} ppm off",
            remedy="stamp both channels with one clock, or scale the stamps of the wrong one",
            repairable=True,
            amount=runs,
        )


def _wrong(
    pair: tuple[str, str],
    drifting: list[tuple[str, str]],
    steady: set[str],
    sharing: Mapping[str, int],
) -> str:
    """Which channel of a pair has the wrong clock.

    The one that drifts against more channels; else the one that agrees with no other channel; else
    the one whose time stamps fewer channels share; else the response.
    """
    cause, response = pair

    def guilt(name: str) -> tuple[int, bool, int]:
        votes = sum(name in other for other in drifting)
        return votes, name not in steady, -sharing.get(name, 1)

    return cause if guilt(cause) > guilt(response) else response


def _span(times: Floats) -> float:
    return float(times[-1] - times[0])


def _drift(times: Floats, cause: Floats, response: Floats, *, floor: float) -> float | None:
    """Growth of the lag [s/s], 0 where it is steady, None where it cannot be measured."""
    step = float(times[1] - times[0])
    first = _growth(times, cause, response, floor)
    if first is None or first[0] == 0:
        return None if first is None else 0.0
    rate = first[0]
    straight = cause
    for _ in range(2):  # what is left once it is undone can be measured more exactly
        straight = np.interp(times - rate * (times - times.mean()), times, cause)
        rest = _growth(times, straight, response, floor)
        rate += rest[1] if rest is not None else 0.0
    better = _unexplained(cause, response, step) / max(
        _unexplained(straight, response, step), 1e-12
    )
    return rate if better > MIN_DRIFT_GAIN else 0.0


def _growth(
    times: Floats, cause: Floats, response: Floats, floor: float
) -> tuple[float, float] | None:
    """Growth of the lag [s/s], 0 unless it is clear; and its best estimate. None if unknown."""
    size = len(times) // LAG_WINDOWS
    if size < 40:
        return None
    step = float(times[1] - times[0])
    centres, lags = [], []
    usual = (float(cause.std()), float(response.std()))
    for begin in range(0, len(times) - size + 1, size):
        x, y = cause[begin : begin + size], response[begin : begin + size]
        if x.std() <= 0.1 * usual[0] or y.std() <= 0.1 * usual[1]:
            continue
        lag = best_lag(x, y, step, min(1.0, 0.3 * size * step))
        if lag.correlation > floor and abs(lag.lag_s) < abs(lag.lags_s[0]) - step:
            centres.append(float(times[begin + size // 2]))
            lags.append(lag.lag_s)
    if len(lags) < 6:
        return None
    at, lag_s = np.array(centres), np.array(lags)
    upper = np.triu_indices(len(at), 1)
    rate = float(np.median((lag_s[:, None] - lag_s)[upper] / (at[:, None] - at)[upper]))
    line = lag_s - rate * (at - at.mean())
    off = float(np.median(np.abs(line - np.median(line))))
    grown = abs(rate) * float(at[-1] - at[0])
    clear = grown > max(2 * step, 8 * off, MIN_LAG_GROWTH_S)
    return (rate if clear else 0.0), rate


def _unexplained(cause: Floats, response: Floats, step: float) -> float:
    """Share of the response that the best fixed filter of the cause does not explain."""
    reach = min(int(0.6 / step), len(cause) // 4)
    steps = np.unique(np.round(np.geomspace(1, max(reach, 2), 14)).astype(int))
    taps = np.r_[-steps[: len(steps) // 2], 0, steps]
    keep = slice(reach, len(cause) - reach, max(1, len(cause) // 8192))
    rows = np.arange(len(cause))[keep]
    if len(rows) < 4 * len(taps):
        return 1.0
    shifted = np.stack([cause[rows - tap] for tap in taps], axis=1)
    wanted = response[rows] - response[rows].mean()
    columns = shifted - shifted.mean(axis=0)
    # A small ridge: neighbouring taps of a smooth series are nearly equal.
    gram = columns.T @ columns
    gram[np.diag_indices_from(gram)] += 1e-6 * np.trace(gram) / len(gram)
    fit = columns @ np.linalg.solve(gram, columns.T @ wanted)
    return float(np.sum((wanted - fit) ** 2) / max(float(wanted @ wanted), 1e-300))
