"""Channels whose values freeze while the robot moves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from sim2real.arrays import Bools, Ints
from sim2real.data.check.channel_roles import ChannelQuantity
from sim2real.data.check.log_fault import LogFault
from sim2real.data.check.related_channels import CommandPositionPair, PositionVelocityPair
from sim2real.data.check.scalar_series import ScalarSeries, by_channel, labelled

CONTEXT = 30
"""Samples on each side of a span that show what is usual there."""
MIN_JUMP = 5.0
"""The step at the end of a frozen span is this many times larger than those around it."""
MIN_CORRELATION = 0.9
"""Least correlation of a command and a position for one to be evidence about the other."""
MAX_JUMP_ERROR = 0.3
"""Share of a jump by which the integral of the velocity may differ from it."""
MIN_PARTNER_TRAVEL = 0.3
"""The related channel moves if its travel is this share of its usual travel."""
MIN_AWAKE_CORRELATION = 0.95
"""Least correlation of a position and its velocity, outside rest, for the same."""
MAX_GAP = 3.0
"""Longest gap, in steps, across which samples are evidence."""
MIN_NOISE_RATIO = 1e-6
"""Noise below this share of the channel's largest value is floating-point rounding."""

Run = tuple[int, int]
"""First and last sample of a span of equal values."""


def runs_of(same: Bools) -> Ints:
    """First and last sample of each span in which every step is marked, (runs, 2)."""
    edges = np.diff(np.r_[0, same.astype(np.int8), 0])
    return np.stack([np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)], axis=1)


def check_frozen(
    all_series: list[ScalarSeries],
    motions: list[PositionVelocityPair],
    followings: list[CommandPositionPair],
    clipped: set[str],
    shortest: int,
) -> Iterator[LogFault]:
    """Spans of at least `shortest` equal values in measured channels that should move.

    Channels that are `clipped` may rest at their bounds.
    """
    found: dict[tuple[str, int, int], list[tuple[ScalarSeries, str]]] = {}
    partners = _partners(motions)
    commands = {id(pair.position): pair for pair in followings}
    for series in all_series:
        if series.role.driven or series.role.quantity == ChannelQuantity.TIME:
            continue
        bounds = (series.values.min(), series.values.max()) if series.channel in clipped else ()
        pairs = partners.get(id(series), [])
        for run, why in _frozen(series, pairs, commands.get(id(series)), shortest):
            if series.values[run[0]] in bounds:
                continue
            if _is_top(series, run):
                yield _cut_off(series, run, why)
                continue
            rows = (int(series.index[run[0]]), int(series.index[run[1]]))
            found.setdefault((series.channel, *rows), []).append((series, why))
    yield from _dead(all_series)
    groups = by_channel(all_series)
    for (channel, first, last), ones in found.items():
        if len(ones) == len(groups[channel]):
            yield _fault(ones[0][0], None, first, last, ones[0][1])
        else:
            for series, why in ones:
                yield _fault(series, series.component, first, last, why)


def _is_top(series: ScalarSeries, run: Run) -> bool:
    """Whether a span is a curve cut off at the sensor's range, rather than a frozen value.

    It lies at the channel's extreme, and the curve leaves it as smoothly as it came; a frozen value
    lies anywhere, or ends with a jump.
    """
    first, last = run
    value = series.values[first]
    if value not in (series.values.min(), series.values.max()):
        return False
    if first < 3 or last + 4 > len(series.values):
        return False
    around = np.abs(np.r_[series.steps[first - 3 : first], series.steps[last : last + 3]])
    onward = float(np.median(around[around > 0])) if (around > 0).any() else 0.0
    ends = max(abs(float(series.steps[first - 1])), abs(float(series.steps[last])))
    return 0.0 < ends <= MIN_JUMP * max(onward, series.quantum)


def _cut_off(series: ScalarSeries, run: Run, why: str) -> LogFault:
    first, last = (int(series.index[k]) for k in run)
    frozen = _fault(series, series.component, first, last, why)
    return replace(
        frozen,
        kind="clipped",
        message=f"{series.label} is flat at its extreme {series.values[run[0]]:.6g} for"
        f" {frozen.span.count} samples: {why}",
        remedy="the values beyond are lost: leave this span out, or widen the range",
        repairable=False,
        samples=(),
    )


def _dead(all_series: list[ScalarSeries]) -> Iterator[LogFault]:
    """Whole position channels that never change while their velocities or commands do."""
    groups = by_channel(all_series)
    for ones in groups.values():
        mine = ones[0].role
        if mine.quantity != ChannelQuantity.POSITION or mine.driven:
            continue
        if any((series.steps != 0).any() for series in ones):
            continue
        ends = int(ones[0].index[0]), int(ones[0].index[-1])
        for others in groups.values():
            role = others[0].role
            if len(others) != len(ones):
                continue
            if (
                role.quantity == ChannelQuantity.VELOCITY
                and not role.driven
                and role.stem == mine.stem
            ):
                travel = max(_travel(series) for series in others)
                if travel > 0:
                    why = f"{others[0].channel} shows {travel:.3g} of travel"
                    yield _fault(ones[0], None, *ends, why)
                    break
            elif role.command and role.dimension == mine.dimension and role.joint == mine.joint:
                asked = max(series.span for series in others)
                if asked > 0:
                    # A drive that is off looks the same: a warning only.
                    why = f"{others[0].channel} commands {asked:.3g} of motion"
                    yield replace(_fault(ones[0], None, *ends, why), severity="warning")
                    break


def _travel(velocity: ScalarSeries) -> float:
    """How far a velocity travels about its mean; 0 where it is only noise."""
    path = np.cumsum(velocity.values - velocity.values.mean()) * velocity.step_s
    noise = float(np.sqrt(np.mean(np.diff(velocity.values, 2) ** 2) / 6))
    found = float(np.ptp(path))
    return found if found > 20 * noise * velocity.step_s * np.sqrt(len(path)) else 0.0


def _partners(motions: list[PositionVelocityPair]) -> dict[int, list[PositionVelocityPair]]:
    """Pairs that say something about a series, by its id."""
    shown = {(m.position.channel, m.velocity.channel) for m in motions if _together(m)}
    found: dict[int, list[PositionVelocityPair]] = {}
    for motion in motions:
        # A value that is always frozen confirms no pair; its neighbours in the channel do.
        named = motion.named and (motion.position.channel, motion.velocity.channel) in shown
        if _together(motion) or named:
            found.setdefault(id(motion.position), []).append(motion)
            found.setdefault(id(motion.velocity), []).append(motion)
    return found


def _together(motion: PositionVelocityPair) -> bool:
    return motion.confirmed or motion.awake[1] > MIN_AWAKE_CORRELATION


def _frozen(
    series: ScalarSeries,
    motions: list[PositionVelocityPair],
    command: CommandPositionPair | None,
    shortest: int,
) -> Iterator[tuple[Run, str]]:
    """Frozen spans of a series, and the evidence for each."""
    same = series.steps == 0
    if not same.any():
        return
    runs = runs_of(same)
    lengths = runs[:, 1] - runs[:, 0]
    # A slow sensor in a fast log repeats every value; only far longer spans can be frozen.
    others = np.sort(lengths)[: max(len(lengths) - max(3, len(lengths) // 20), 1)]
    usual = float(others[-1]) if len(lengths) > 20 else 1.0
    for (first, last), length in zip(runs, lengths, strict=True):
        if length < shortest:
            continue
        run, why = (int(first), int(last)), ""
        if length >= 5 * usual:
            why = _by_noise(series, run) or _by_jump(series, run)
            why = why or (_by_command(series, command, run) if command else "")
        for motion in motions:
            why = why or told_by_partner(series, motion, run)
        if why:
            yield run, why


def _by_noise(series: ScalarSeries, run: Run) -> str:
    """There is noise before and after, and none within."""
    first, last = run
    if series.values[first] == 0.0:
        return ""  # many sensors report an exact zero below a threshold
    sides = [series.values[max(first - CONTEXT, 0) : first], series.values[last + 1 :][:CONTEXT]]
    sides = [side for side in sides if len(side) >= 12]
    # Interpolated samples are straight lines, not noise.
    if not sides or series.bad[max(first - CONTEXT, 0) : last + CONTEXT].any():
        return ""
    levels = []
    for side in sides:
        steps = np.diff(side)
        bends = np.diff(steps, 1)
        spread = float(np.sqrt(np.mean(bends**2) / 6))
        turns = float(bends[1:] @ bends[:-1]) / max(float(bends @ bends), 1e-300)
        # White noise gives -2/3, motion a positive number. Quantised rest is no noise.
        noisy = turns < -0.3 and np.mean(steps == 0) < 0.05
        if not noisy or spread < max(3 * series.quantum, MIN_NOISE_RATIO * series.scale):
            return ""
        levels.append(spread)
    return f"its noise of {np.mean(levels):.3g} disappears"


def _by_jump(series: ScalarSeries, run: Run) -> str:
    """The span ends with a jump, while the series moves smoothly before and after."""
    first, last = run
    if series.role.quantity in (ChannelQuantity.EFFORT, ChannelQuantity.VELOCITY):
        return ""  # these jump by themselves: contacts, dead zones
    if series.values[first] == 0.0 or last + 13 > len(series.values) or first < 12:
        return ""
    if series.times[last + 1] - series.times[last] > MAX_GAP * series.step_s:
        return ""  # after a gap the value may be anywhere
    leap = abs(float(series.steps[last]))
    before, after = series.steps[first - 12 : first], series.steps[last + 1 : last + 12]
    moving = min(np.mean(before != 0), np.mean(after != 0)) >= 0.5
    around = float(np.abs(np.r_[before, after]).max())
    large = leap > max(MIN_JUMP * around, MIN_JUMP * series.quantum, 0.005 * series.span)
    return (
        f"it ends with a jump of {leap:.3g}, {leap / around:.0f} times a usual step"
        if (moving and large)
        else ""
    )


def _by_command(series: ScalarSeries, pair: CommandPositionPair, run: Run) -> str:
    """The span ends with a jump as large as its command's change meanwhile."""
    first, last = run
    lag = pair.lag
    if lag is None or lag.correlation < MIN_CORRELATION or lag.lag_s < 0:
        return ""
    if first < 3 or last + 3 > len(series.values):
        return ""
    if series.times[last + 1] - series.times[last] > MAX_GAP * series.step_s:
        return ""
    leap = float(series.steps[last])
    around = np.abs(np.r_[series.steps[first - 3 : first], series.steps[last + 1 : last + 3]])
    asked = np.interp(
        series.times[[first, last + 1]] - lag.lag_s, pair.command.times, pair.command.values
    )
    due = float(asked[1] - asked[0]) * pair.slope()[0]
    large = abs(leap) > max(2 * float(around.max()), MIN_JUMP * series.quantum, 0.02 * series.span)
    # A joint that friction or a stop held comes back by moving, not at once.
    return (
        f"it ends with a jump of {leap:.3g}, and its command has changed by {due:.3g}"
        if (large and abs(leap - due) < 0.5 * abs(leap))
        else ""
    )


def told_by_partner(series: ScalarSeries, motion: PositionVelocityPair, run: Run) -> str:
    """The position rests while its velocity shows motion, or the other way round."""
    centre, told, moved, window_s = motion.travel
    is_position = series is motion.position
    late = motion.lag.lag_s if motion.lag is not None and motion.lag.correlation > 0.5 else 0.0
    delay = 0.0 if is_position else late
    margin = 0.5 * window_s + abs(late) * 0.5 + motion.step_s
    first = np.searchsorted(centre, series.times[run[0]] - delay + margin)
    end = np.searchsorted(centre, series.times[run[1]] - delay - margin)
    if end - first < 3:
        return ""
    partner = motion.velocity if is_position else motion.position
    low, high = np.searchsorted(partner.times, series.times[list(run)])
    gaps_s = np.diff(partner.times[max(low - 1, 0) : high + 1])
    if gaps_s.max(initial=0) > MAX_GAP * partner.step_s:
        return ""  # interpolation across a gap is no evidence
    inside = slice(int(first), int(end))
    slope, match = motion.awake
    ratio = slope if match > MIN_AWAKE_CORRELATION else 1.0 / motion.si
    travel = told * ratio if is_position else moved
    expected = 0.0 if is_position else series.values[run[0]] * window_s * ratio
    if is_position:
        leapt = _leap_due(series, motion, run, late, ratio)
        if leapt:
            return leapt
    # The median: a spike is no motion.
    gone = float(np.median(np.abs(travel[inside] - expected)))
    usual = float(np.mean(np.abs(travel)))
    fine = 5 * motion.position.quantum
    if not is_position:
        fine = max(fine, 3 * motion.velocity.quantum * window_s * abs(ratio))
    if gone <= max(MIN_PARTNER_TRAVEL * usual, fine):
        return ""
    return f"{partner.label} shows {gone / window_s:.3g} per second meanwhile"


def _leap_due(
    series: ScalarSeries, motion: PositionVelocityPair, run: Run, late: float, ratio: float
) -> str:
    """A position that jumps at the end of a span by the integral of its velocity."""
    first, last = run
    if last + 3 >= len(series.values):
        return ""
    leap, speed = float(series.steps[last]), motion.velocity
    steps = np.diff(speed.times) * 0.5 * (speed.values[1:] + speed.values[:-1])
    path = np.r_[0.0, np.cumsum(steps)]
    # Without the last step, by which a joint that starts to move jumps anyway.
    ends = np.interp(series.times[[first, last]] + late, speed.times, path)
    due = float(ends[1] - ends[0]) * ratio
    after = float(np.abs(series.steps[last + 1 : last + 3]).max())
    large = abs(leap) > max(3 * after, 2 * MIN_JUMP * series.quantum, 0.02 * series.span)
    if not large or abs(leap - due) > MAX_JUMP_ERROR * abs(leap):
        return ""
    return f"it ends with a jump of {leap:.3g}, and {speed.label} has travelled {due:.3g}"


def _fault(
    series: ScalarSeries, component: int | None, first: int, last: int, why: str
) -> LogFault:
    start, end = np.searchsorted(series.index, [first, last])
    count = last - first + 1
    span = series.span_of(component, int(start), int(end), count)
    return LogFault(
        kind="stuck",
        channel=series.channel,
        span=span,
        message=f"{labelled(series.channel, component)} is frozen at {series.values[start]:.6g} "
        f"for {count} samples "
        f"({span.end_s - span.start_s:.4g} s from {span.start_s:.4g} s): {why}",
        remedy="leave these samples out; look for a lost connection or a stale buffer",
        repairable=count <= len(series.values) // 2,
        # The first sample was still measured; the others repeat it.
        samples=tuple(range(first + 1, last + 1)),
    )
