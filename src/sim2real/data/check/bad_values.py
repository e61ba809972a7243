"""Values that are not finite, and values that are physically impossible."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from sim2real.arrays import Array, Bools, Floats, Ints
from sim2real.data.check.channel_roles import ChannelQuantity, ChannelRole, role
from sim2real.data.check.log_fault import FaultSpan, LogFault
from sim2real.data.check.scalar_series import MAX_COMPONENTS, increasing
from sim2real.data.episode import Signal

MAX_BY_UNIT = {
    "rad": 1e6, "deg": 1e8, "m": 3e7, "mm": 3e10, "rad/s": 1e5, "deg/s": 1e7, "m/s": 1e4,
    "mm/s": 1e7, "N": 1e7, "N m": 1e7, "Nm": 1e7, "V": 1e6, "A": 1e5, "m/s^2": 1e6,
    "rad/s^2": 1e7, "K": 1e5, "degC": 1e5,
}  # fmt: skip
"""No robot's log exceeds these, by stated unit: a wheel that turns for a day, a map's origin."""
MAX_WITHOUT_UNIT = 1e12
"""The limit of numbers without a unit, unless they only increase, as counters and clocks do."""
MIN_SPIKE_RATIO = 10.0
"""A spike begins and ends with steps this many times larger than any around it."""
MAX_SPIKE_PASSES = 4
"""Passes of the search for spikes, each without those already found."""
MAX_SPIKE_SAMPLES = 3
"""Longest spike: no body moves away and back in so short a time."""
MIN_EFFORT_SPIKE_RATIO = 1e5
"""Impacts are spikes of a force too: an impossible one is this many times the usual range."""
MIN_SPIKE_HEIGHT = {"angle": 0.05, "length": 0.01}
"""Smaller spikes do no more harm than noise [rad or m]; ten times this for velocities."""


def bad_samples(signal: Signal, name: str) -> tuple[Bools, Bools]:
    """Which samples are not finite and which are impossible, both (samples, components)."""
    width = math.prod(signal.shape)
    values = signal.values.reshape(len(signal.values), width)
    absurd = np.zeros(values.shape, dtype=bool)
    if values.dtype.kind != "f":
        return np.zeros(values.shape, dtype=bool), absurd
    broken = ~np.isfinite(values)
    holds = role(name, signal.unit)
    limit = MAX_BY_UNIT.get(signal.unit.strip(), MAX_WITHOUT_UNIT)
    # Squares of huge numbers overflow: the comparison alone is exact.
    with np.errstate(invalid="ignore"):
        beyond = np.abs(values) > limit
    for component in np.flatnonzero(beyond.any(axis=0)).tolist():
        column = values[~broken[:, component], component]
        if limit != MAX_WITHOUT_UNIT or not (np.diff(column) >= 0).all():
            absurd[:, component] = beyond[:, component] & ~broken[:, component]
    if width <= MAX_COMPONENTS and not holds.command:
        rows = increasing(signal.times)
        wrong = broken | absurd
        floor = _floor(holds, name, np.where(wrong, 0, values))
        for component in range(width):
            spots = _spikes(values[:, component], wrong[:, component], rows, floor)
            absurd[spots, component] = True
    return broken, absurd


def _floor(holds: ChannelRole, name: str, values: Floats) -> float:
    """Least height of a spike in stated units.

    A position cannot jump; a velocity may within its range, at an impact; a force may beyond it.
    """
    if not len(values):
        return 0.0
    state = holds.quantity == ChannelQuantity.OTHER and "state" in name
    if holds.quantity == ChannelQuantity.POSITION or state:
        return MIN_SPIKE_HEIGHT.get(holds.dimension, 1e-3) / holds.si
    low, high = np.quantile(values, [0.01, 0.99], axis=0)
    reach = float((high - low).max())
    if holds.quantity == ChannelQuantity.VELOCITY:
        return max(10 * MIN_SPIKE_HEIGHT.get(holds.dimension, 1e-3) / holds.si, reach)
    return MIN_EFFORT_SPIKE_RATIO * reach


def _spikes(column: Array, wrong: Bools, rows: Ints, floor: float) -> Ints:
    """Rows of spikes at least `floor` high; one beside another shows when that is taken out."""
    rows = rows[~wrong[rows]]
    left = rows
    for _ in range(MAX_SPIKE_PASSES):
        more = _spikes_once(column, left, floor)
        if not len(more):
            break
        left = np.setdiff1d(left, more)
    return np.setdiff1d(rows, left)


def _spikes_once(column: Array, rows: Ints, floor: float) -> Ints:
    if len(rows) < 30:
        return rows[:0]
    values = column[rows].astype(np.float64)
    steps = np.abs(np.diff(values))
    # A series at rest that flickers by one quantum has no spikes.
    quantum = float(steps[steps > 0].min(initial=np.inf))
    floor = max(floor, MIN_SPIKE_RATIO * quantum, MIN_SPIKE_RATIO * float(np.quantile(steps, 0.9)))
    found: set[int] = set()
    for start in np.flatnonzero(steps > floor):
        found.update(range(*_spike_at(values, steps, int(start) + 1)))
    return rows[sorted(found)]


def _spike_at(values: Floats, steps: Floats, first: int) -> tuple[int, int]:
    """Start and end of a spike that begins at `first`; an empty range where there is none."""
    before = values[first - 1]
    out = values[first] - before
    turn = min(abs(abs(out) - full) / full for full in (2 * np.pi, 360.0))
    if turn < 0.05 and abs(values[first]) < 361.0:
        return (0, 0)  # an angle that flickers where it wraps
    for end in range(first + 1, min(first + MAX_SPIKE_SAMPLES, len(values) - 1) + 1):
        back = values[end] - values[end - 1]
        if back * out >= 0 or abs(back) < 0.5 * abs(out):
            continue
        around = np.r_[steps[max(first - 16, 0) : first - 1], steps[end : end + 15]]
        calm = around[around < 0.5 * abs(out)]  # other spikes nearby do not count
        if len(calm) < 0.6 * len(around):
            return (0, 0)  # it jumps all the time
        apart = float(np.min(np.abs(values[first:end] - before)))
        returned = abs(values[end] - before) < 0.3 * apart
        if returned and apart > MIN_SPIKE_RATIO * float(calm.max(initial=0.0)):
            return (first, end)
    return (0, 0)


def check_values(name: str, signal: Signal, broken: Bools, absurd: Bools) -> Iterator[LogFault]:
    """Faults for the samples that `bad_samples` marked."""
    values = signal.values.reshape(broken.shape) if len(broken) else broken
    if broken.any():
        nans = int(np.isnan(values[broken]).sum())
        kinds = f"{nans} NaN, {int(broken.sum()) - nans} infinite"
        yield _fault(
            "not-finite",
            name,
            signal,
            broken,
            f"{int(broken.sum())} of {broken.size} values are not finite ({kinds})",
            "interpolate single ones; drop longer spans",
        )
    if absurd.any():
        worst = float(np.abs(values[absurd].astype(np.float64)).max())
        good = values[~absurd & ~broken].astype(np.float64)
        usual = f"within ±{np.abs(good).max():.4g}" if len(good) else "none left"
        yield _fault(
            "absurd",
            name,
            signal,
            absurd,
            f"{int(absurd.sum())} of {absurd.size} values are impossible: up to {worst:.4g} "
            f"{signal.unit or '(no unit)'}, the others {usual}",
            "interpolate single spikes; discard a simulation that diverged",
        )


def _fault(
    kind: str, name: str, signal: Signal, marks: Bools, message: str, remedy: str
) -> LogFault:
    rows = np.flatnonzero(marks.any(axis=1))
    columns = np.flatnonzero(marks.any(axis=0))
    one = signal.shape and len(columns) == 1
    first, last = int(rows[0]), int(rows[-1])
    where = f"component {columns[0]}: " if one else ""
    return LogFault(
        kind=kind,
        channel=name,
        span=FaultSpan.of(signal.times, first, last, len(rows), int(columns[0]) if one else None),
        message=where + message,
        remedy=remedy,
        # With more than half of the samples gone there is too little to interpolate between.
        repairable=len(rows) <= len(signal.times) // 2,
        samples=tuple(int(row) for row in rows),
    )
