"""Values that are frozen while they should move."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from sim2real.data.check.finding import Finding, Place
from sim2real.data.check.names import Quantity
from sim2real.data.check.pairs import Following, Motion
from sim2real.data.check.tracks import Track

SHORTEST = 8
"""Fewest repeats in a row: a value that fails less often is not worth the doubt."""
BESIDE = 30
"""Samples on each side that tell what is usual there."""
JUMP = 5.0
"""A frozen value returns with a step this many times larger than those around it."""
FOLLOWS = 0.9
"""Correlation that a command and a position need before one speaks about the other."""
LEAP_NEAR = 0.3
"""Share of a leap by which the travel of its velocity may differ from it."""
MOVING = 0.3
"""The partner moves if its travel is this share of its usual travel."""
AWAKE = 0.95
"""Correlation that a position and its velocity need outside of rest to speak about each other."""
GAP = 3.0
"""Steps of the partner without a sample, within which it says nothing."""
ROUNDING = 1e-6
"""Noise below this share of the channel's largest value is a float's rounding, not a sensor's."""

Run = tuple[int, int]
"""First and last sample of a stretch of equal values."""


def runs_of(same: np.ndarray) -> np.ndarray:
    """First and last sample of each stretch in which every step is marked, (runs, 2)."""
    edges = np.diff(np.r_[0, same.astype(np.int8), 0])
    return np.stack([np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)], axis=1)


def check_stuck(
    tracks: list[Track], motions: list[Motion], followings: list[Following], clipped: set[str]
) -> Iterator[Finding]:
    """Frozen stretches of measured channels; `clipped` ones are frozen at their bounds anyway."""
    found: dict[tuple[str, int, int], list[tuple[Track, str]]] = {}
    partners = _partners(motions)
    commands = {id(pair.position): pair for pair in followings}
    for track in tracks:
        if track.role.driven or track.role.quantity == Quantity.TIME:
            continue
        bounds = (track.values.min(), track.values.max()) if track.channel in clipped else ()
        for run, why in _frozen(track, partners.get(id(track), []), commands.get(id(track))):
            if track.values[run[0]] in bounds:
                continue
            if _is_top(track, run):
                yield _cut_off(track, run, why)
                continue
            rows = (int(track.index[run[0]]), int(track.index[run[1]]))
            found.setdefault((track.channel, *rows), []).append((track, why))
    yield from _dead(tracks)
    width = {track.channel: 0 for track in tracks}
    for track in tracks:
        width[track.channel] += 1
    for (channel, first, last), ones in found.items():
        if len(ones) == width[channel]:
            yield _finding(ones[0][0], None, first, last, ones[0][1])
        else:
            for track, why in ones:
                yield _finding(track, track.component, first, last, why)


def _is_top(track: Track, run: Run) -> bool:
    """Whether a stretch is a curve cut off at a sensor's range, rather than a frozen value.

    It lies at the channel's own extreme, and the curve goes on from it as it came: a value that
    was frozen is somewhere between, or returns with a leap.
    """
    first, last = run
    value = track.values[first]
    if value not in (track.values.min(), track.values.max()):
        return False
    if first < 3 or last + 4 > len(track.values):
        return False
    around = np.abs(np.r_[track.steps[first - 3 : first], track.steps[last : last + 3]])
    onward = float(np.median(around[around > 0])) if (around > 0).any() else 0.0
    ends = max(abs(float(track.steps[first - 1])), abs(float(track.steps[last])))
    return 0.0 < ends <= JUMP * max(onward, track.quantum)


def _cut_off(track: Track, run: Run, why: str) -> Finding:
    first, last = (int(track.index[k]) for k in run)
    frozen = _finding(track, track.component, first, last, why)
    return replace(
        frozen,
        kind="clipped",
        message=f"{track.label} is flat at its extreme {track.values[run[0]]:.6g} for"
        f" {frozen.place.count} samples: {why}",
        remedy="the values beyond are lost: leave this stretch out, or record with more range",
        repairable=False,
        samples=(),
    )


def _dead(tracks: list[Track]) -> Iterator[Finding]:
    """Whole channels of positions that never change while their velocities or commands do."""
    groups: dict[str, list[Track]] = {}
    for track in tracks:
        groups.setdefault(track.channel, []).append(track)
    for ones in groups.values():
        mine = ones[0].role
        if mine.quantity != Quantity.POSITION or mine.driven:
            continue
        if any((track.steps != 0).any() for track in ones):
            continue
        ends = int(ones[0].index[0]), int(ones[0].index[-1])
        for others in groups.values():
            role = others[0].role
            if len(others) != len(ones):
                continue
            if role.quantity == Quantity.VELOCITY and not role.driven and role.stem == mine.stem:
                travel = max(_travel(track) for track in others)
                if travel > 0:
                    why = f"{others[0].channel} tells of {travel:.3g} travelled"
                    yield _finding(ones[0], None, *ends, why)
                    break
            elif role.command and role.dimension == mine.dimension and role.joint == mine.joint:
                asked = max(track.span for track in others)
                if asked > 0:
                    # A drive that is off looks the same: know it, but it may be so.
                    why = f"{others[0].channel} asks for {asked:.3g} of motion"
                    yield replace(_finding(ones[0], None, *ends, why), severity="warning")
                    break


def _travel(velocity: Track) -> float:
    """How far a velocity goes beyond its mean and its noise; 0 where it is only noise."""
    path = np.cumsum(velocity.values - velocity.values.mean()) * velocity.step_s
    noise = float(np.sqrt(np.mean(np.diff(velocity.values, 2) ** 2) / 6))
    found = float(np.ptp(path))
    return found if found > 20 * noise * velocity.step_s * np.sqrt(len(path)) else 0.0


def _partners(motions: list[Motion]) -> dict[int, list[Motion]]:
    """Pairs that may speak about a track, by the track."""
    shown = {(m.position.channel, m.velocity.channel) for m in motions if _together(m)}
    found: dict[int, list[Motion]] = {}
    for motion in motions:
        # A value frozen all along confirms nothing; its neighbours in the channel do.
        named = motion.named and (motion.position.channel, motion.velocity.channel) in shown
        if _together(motion) or named:
            found.setdefault(id(motion.position), []).append(motion)
            found.setdefault(id(motion.velocity), []).append(motion)
    return found


def _together(motion: Motion) -> bool:
    return motion.confirmed or motion.awake[1] > AWAKE


def _frozen(
    track: Track, motions: list[Motion], command: Following | None
) -> Iterator[tuple[Run, str]]:
    """Frozen stretches of a track, and how each shows."""
    same = track.steps == 0
    if not same.any():
        return
    runs = runs_of(same)
    lengths = runs[:, 1] - runs[:, 0]
    # A slow sensor in a fast log repeats every value; only what is far longer can be frozen.
    others = np.sort(lengths)[: max(len(lengths) - max(3, len(lengths) // 20), 1)]
    usual = float(others[-1]) if len(lengths) > 20 else 1.0
    for (first, last), length in zip(runs, lengths, strict=True):
        if length < SHORTEST:
            continue
        run, why = (int(first), int(last)), ""
        if length >= 5 * usual:
            why = _by_noise(track, run) or _by_jump(track, run)
            why = why or (_by_command(track, command, run) if command else "")
        for motion in motions:
            why = why or told_by_partner(track, motion, run)
        if why:
            yield run, why


def _by_noise(track: Track, run: Run) -> str:
    """The value carries noise before and after, and none within."""
    first, last = run
    if track.values[first] == 0.0:
        return ""  # many sensors report an exact zero below a threshold
    sides = [track.values[max(first - BESIDE, 0) : first], track.values[last + 1 :][:BESIDE]]
    sides = [side for side in sides if len(side) >= 12]
    # The samples that a repair bridged are straight lines, not noise.
    if not sides or track.bad[max(first - BESIDE, 0) : last + BESIDE].any():
        return ""
    levels = []
    for side in sides:
        steps = np.diff(side)
        bends = np.diff(steps, 1)
        spread = float(np.sqrt(np.mean(bends**2) / 6))
        turns = float(bends[1:] @ bends[:-1]) / max(float(bends @ bends), 1e-300)
        # White noise turns at -2/3; motion is positive. Quantised rest is no noise.
        noisy = turns < -0.3 and np.mean(steps == 0) < 0.05
        if not noisy or spread < max(3 * track.quantum, ROUNDING * track.scale):
            return ""
        levels.append(spread)
    return f"its noise of {np.mean(levels):.3g} is gone"


def _by_jump(track: Track, run: Run) -> str:
    """The value returns with a leap, where the series moves smoothly before and after."""
    first, last = run
    if track.role.quantity in (Quantity.EFFORT, Quantity.VELOCITY):
        return ""  # these leap by themselves: contacts, dead zones
    if track.values[first] == 0.0 or last + 13 > len(track.values) or first < 12:
        return ""
    if track.times[last + 1] - track.times[last] > GAP * track.step_s:
        return ""  # after a gap the value may be anywhere
    leap = abs(float(track.steps[last]))
    before, after = track.steps[first - 12 : first], track.steps[last + 1 : last + 12]
    moving = min(np.mean(before != 0), np.mean(after != 0)) >= 0.5
    around = float(np.abs(np.r_[before, after]).max())
    large = leap > max(JUMP * around, JUMP * track.quantum, 0.005 * track.span)
    return (
        f"it returns with a leap of {leap:.3g}, {leap / around:.0f} steps"
        if (moving and large)
        else ""
    )


def _by_command(track: Track, pair: Following, run: Run) -> str:
    """The value returns with just the leap that its command made meanwhile."""
    first, last = run
    lag = pair.lag
    if lag is None or lag.correlation < FOLLOWS or lag.lag_s < 0 or last + 3 > len(track.values):
        return ""
    if track.times[last + 1] - track.times[last] > GAP * track.step_s or first < 3:
        return ""
    leap = float(track.steps[last])
    around = np.abs(np.r_[track.steps[first - 3 : first], track.steps[last + 1 : last + 3]])
    asked = np.interp(
        track.times[[first, last + 1]] - lag.lag_s, pair.command.times, pair.command.values
    )
    due = float(asked[1] - asked[0]) * pair.slope()[0]
    large = abs(leap) > max(2 * float(around.max()), JUMP * track.quantum, 0.02 * track.span)
    # A joint that friction or a stop held comes back by moving, not at once.
    return (
        f"it leaps by {leap:.3g} where its command had gone {due:.3g}"
        if (large and abs(leap - due) < 0.5 * abs(leap))
        else ""
    )


def told_by_partner(track: Track, motion: Motion, run: Run) -> str:
    """The position rests while its velocity tells of travel, or the other way round."""
    centre, told, moved, window_s = motion.travel
    is_position = track is motion.position
    late = motion.lag.lag_s if motion.lag is not None and motion.lag.correlation > 0.5 else 0.0
    delay = 0.0 if is_position else late
    margin = 0.5 * window_s + abs(late) * 0.5 + motion.step_s
    first = np.searchsorted(centre, track.times[run[0]] - delay + margin)
    end = np.searchsorted(centre, track.times[run[1]] - delay - margin)
    if end - first < 3:
        return ""
    partner = motion.velocity if is_position else motion.position
    low, high = np.searchsorted(partner.times, track.times[list(run)])
    if np.diff(partner.times[max(low - 1, 0) : high + 1]).max(initial=0) > GAP * partner.step_s:
        return ""  # what bridges a gap is no witness
    inside = slice(int(first), int(end))
    slope, match = motion.awake
    ratio = slope if match > AWAKE else 1.0 / motion.si
    travel = told * ratio if is_position else moved
    expected = 0.0 if is_position else track.values[run[0]] * window_s * ratio
    if is_position:
        leapt = _leap_due(track, motion, run, late, ratio)
        if leapt:
            return leapt
    # The median: a spike of the partner is no motion.
    gone = float(np.median(np.abs(travel[inside] - expected)))
    usual = float(np.mean(np.abs(travel)))
    fine = 5 * motion.position.quantum
    if not is_position:
        fine = max(fine, 3 * motion.velocity.quantum * window_s * abs(ratio))
    if gone <= max(MOVING * usual, fine):
        return ""
    return f"{partner.label} tells of {gone / window_s:.3g} per second there"


def _leap_due(track: Track, motion: Motion, run: Run, late: float, ratio: float) -> str:
    """A position that leaps at the end of a rest by what its velocity travelled meanwhile."""
    first, last = run
    if last + 3 >= len(track.values):
        return ""
    leap, speed = float(track.steps[last]), motion.velocity
    steps = np.diff(speed.times) * 0.5 * (speed.values[1:] + speed.values[:-1])
    path = np.r_[0.0, np.cumsum(steps)]
    # Only what was travelled before the last step: a joint that starts to move leaps by that one.
    ends = np.interp(track.times[[first, last]] + late, speed.times, path)
    due = float(ends[1] - ends[0]) * ratio
    after = float(np.abs(track.steps[last + 1 : last + 3]).max())
    large = abs(leap) > max(3 * after, 2 * JUMP * track.quantum, 0.02 * track.span)
    if not large or abs(leap - due) > LEAP_NEAR * abs(leap):
        return ""
    return f"it leaps by {leap:.3g} where {speed.label} had travelled {due:.3g}"


def _finding(track: Track, component: int | None, first: int, last: int, why: str) -> Finding:
    start, end = np.searchsorted(track.index, [first, last])
    start_s, end_s = float(track.times[start]), float(track.times[end])
    count = last - first + 1
    name = track.channel if component is None else f"{track.channel}[{component}]"
    return Finding(
        kind="stuck",
        severity="error",
        channel=track.channel,
        place=Place(
            component=component, start_s=start_s, end_s=end_s, first=first, last=last, count=count
        ),
        message=f"{name} is frozen at {track.values[start]:.6g} for {count} samples "
        f"({end_s - start_s:.4g} s from {start_s:.4g} s): {why}",
        remedy="leave these samples out; look for a lost connection or a buffer that was not read",
        repairable=count <= len(track.values) // 2,
        # The first one was still measured: the others repeat it.
        samples=tuple(range(first + 1, last + 1)),
    )
