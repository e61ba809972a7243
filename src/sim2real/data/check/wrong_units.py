"""Values in another unit than stated: degrees in a radian channel, millimetres in a metre one."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from sim2real.data.check.channel_roles import ChannelQuantity
from sim2real.data.check.log_fault import LogFault
from sim2real.data.check.related_channels import CommandPositionPair, PositionVelocityPair
from sim2real.data.check.scalar_series import ScalarSeries, by_channel, labelled
from sim2real.units import si_unit

_NAMES = {
    "angle": {"deg": "degrees", "rpm": "rpm", "rev": "turns"},
    "length": {"mm": "millimetres", "cm": "centimetres"},
}
FACTORS = {
    dimension: {1 / si_unit(unit).factor: name for unit, name in names.items()}
    for dimension, names in _NAMES.items()
}
"""How many of another unit make one SI unit; both ways are looked for."""
MAX_ERROR = 0.08
"""Largest relative error of a measured factor: velocities are right within 3 %."""
MAX_SERVO_ERROR = 0.4
"""The tolerance for a command and its position: a servo may follow only part of the range."""
MIN_CORRELATION = 0.9
"""Least correlation of a command and its position for their ratio to count."""
MAX_TRAVEL_RAD, MAX_SPEED_RAD_S = 30.0, 20.0
"""5 turns back and forth at 200 rpm: no arm's joint does that, but in degrees all exceed it."""
MAX_SPEED_M_S = 50.0
"""180 km/h: faster than any robot, but slow in mm/s."""


Judged = tuple[ScalarSeries, ScalarSeries, float, str]
"""A series, what it was compared with, and the factor and unit it is off by; 1 and '' for none."""


def check_units(
    all_series: list[ScalarSeries],
    motions: list[PositionVelocityPair],
    followings: list[CommandPositionPair],
) -> Iterator[LogFault]:
    """Channels whose values are off by the factor between two units."""
    judged: dict[str, list[Judged]] = {}
    for motion in motions:
        # Steps of more than half a second are really milliseconds: a fault of the clock.
        if motion.confirmed and motion.units_known and motion.step_s < 0.5:
            ratio, correlation = motion.slope()
            if correlation > 0.9:
                _judge(judged, motion.position, motion.velocity, ratio * motion.si, MAX_ERROR)
    sure = set(judged)
    wrong_already = {name for name, ones in judged.items() if any(one[3] for one in ones)}
    for pair in followings:
        if pair.position.channel not in wrong_already and _follows(pair):
            one, other = pair.position.role, pair.command.role
            ratio = pair.slope()[0] * one.si / other.si
            _judge(judged, pair.position, pair.command, ratio, MAX_SERVO_ERROR)
    groups = by_channel(all_series)
    told: set[str] = set()
    for channel, ones in judged.items():
        wrong = [one for one in ones if one[3]]
        # Joints that agree stand for the whole channel, also for those that did not move.
        whole = len(wrong) == len(ones) and len(wrong) >= min(2, len(groups[channel]))
        for series, partner, factor, unit in wrong[:1] if whole else wrong:
            told |= {channel, partner.channel}
            component = None if whole else series.component
            yield _fault(series, component, factor, unit, f"against {partner.channel}")
    for series in all_series:
        unit = "" if series.channel in told | sure else _by_range(series)
        if unit:
            factor = next(f for f, name in FACTORS[series.role.dimension].items() if name == unit)
            yield _fault(series, series.component, factor, unit, "")


def _judge(
    judged: dict[str, list[Judged]],
    one: ScalarSeries,
    other: ScalarSeries,
    ratio: float,
    near: float,
) -> None:
    """Adds a verdict on both series, from the ratio `one / other` in SI."""
    wrong = _at_fault(one, other, ratio, near)
    for series, partner in ((one, other), (other, one)):
        off = wrong if wrong and wrong[0] is series else (series, 1.0, "")
        judged.setdefault(series.channel, []).append((series, partner, off[1], off[2]))


def _at_fault(
    large: ScalarSeries, small: ScalarSeries, ratio: float, near: float
) -> tuple[ScalarSeries, float, str] | None:
    """Which of two is in another unit, if `large / small` is off by a known factor."""
    dimension = large.role.dimension or small.role.dimension or "angle"
    for factor, other in FACTORS[dimension].items():
        if near == MAX_SERVO_ERROR and factor < 20:
            continue  # a weak servo follows with a fraction of its command
        for size, ones in ((ratio, (large, small)), (1 / ratio if ratio else 0.0, (small, large))):
            if 1 - near < size / factor < 1 / (1 - near):
                # Too large by the factor: the first is in the smaller unit though stated in SI,
                # or the second is in SI though stated in the smaller unit.
                if math.isclose(ones[0].role.si, 1.0):
                    return ones[0], factor, other
                return ones[1], 1 / factor, "SI units"
    return None


def _follows(pair: CommandPositionPair) -> bool:
    """Whether a command and a position have the same dimension and move together."""
    lag = pair.lag
    same = pair.position.role.dimension == pair.command.role.dimension
    return same and lag is not None and lag.correlation > 0.7 and pair.slope()[1] > MIN_CORRELATION


def _by_range(series: ScalarSeries) -> str:
    """The unit that the range and speed of a lone position suggest, '' for the stated one."""
    holds = series.role
    if (
        holds.quantity != ChannelQuantity.POSITION
        or holds.si != 1.0
        or holds.turning
        or series.bad.any()
    ):
        return ""
    speeds = np.abs(series.steps) / np.diff(series.times)
    moving = speeds[speeds > 0]
    if len(moving) < 20:
        return ""
    # Over windows of several samples, so that noise and quantisation are not speed.
    wide = max(2, min(len(series.values) // 20, round(0.1 / series.step_s)))
    travel = np.abs(series.values[wide:] - series.values[:-wide])
    fast = float(np.quantile(travel / (series.times[wide:] - series.times[:-wide]), 0.95))
    length = float(np.abs(series.steps).sum())
    returns = abs(series.values[-1] - series.values[0]) < 0.5 * length
    if holds.dimension == "length":
        return "millimetres" if fast > MAX_SPEED_M_S and returns else ""
    if holds.dimension != "angle" or not returns:
        return ""
    if _lattice_of_degrees(series):
        return "degrees"
    bounded = float(np.abs(series.values).max()) < 400
    wide_swing = series.span > MAX_TRAVEL_RAD and fast > MAX_SPEED_RAD_S and bounded
    return "degrees" if wide_swing and _reversals(series) >= 2 else ""


def _lattice_of_degrees(series: ScalarSeries) -> bool:
    """Whether the values are encoder counts of 360 degrees, and could not be of 2 pi."""
    if series.quantum == 0 or series.span < 2 * math.pi or series.still < 0.01:
        return False
    counts = 360 / series.quantum
    power = math.log2(counts)
    # 9 to 16 bits: in radians this quantum would mean a few counts a turn.
    return 9 <= round(power) <= 16 and abs(counts / 2 ** round(power) - 1) < 2e-3


def _reversals(series: ScalarSeries) -> int:
    """How often the series reverses after more than two turns."""
    level, away, turned = float(series.values[0]), 0, 0
    for value in series.values[:: max(1, len(series.values) // 2000)].tolist():
        if (away >= 0 and value > level) or (away <= 0 and value < level):
            level, away = value, (1 if value > level else -1) if away == 0 else away
        elif abs(value - level) > 4 * math.pi:
            level, away, turned = value, -away, turned + 1
    return turned


def _fault(
    series: ScalarSeries, component: int | None, factor: float, other: str, why: str
) -> LogFault:
    name = labelled(series.channel, component)
    low, high = float(series.values.min()), float(series.values.max())
    measured = f"a factor of {factor:.4g} {why}" if why else f"{low:.4g} to {high:.4g}"
    return LogFault(
        kind="unit",
        severity="error" if why else "warning",
        channel=series.channel,
        span=series.span_of(component),
        message=f"{name} is stated in {series.unit or 'no unit'} but seems to hold {other}: "
        f"{measured}",
        remedy=f"divide by {factor:.6g}, or state the unit it has",
        repairable=True,
        amount=factor,
    )
