"""Values that are no numbers, and values that cannot be."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sim2real.data.check.finding import Finding, Place
from sim2real.data.check.names import Quantity, Role, role
from sim2real.data.check.tracks import MOST_COMPONENTS, growing
from sim2real.data.episode import Episode, Signal

LIMITS = {
    "rad": 1e6, "deg": 1e8, "m": 3e7, "mm": 3e10, "rad/s": 1e5, "deg/s": 1e7, "m/s": 1e4,
    "mm/s": 1e7, "N": 1e7, "N m": 1e7, "Nm": 1e7, "V": 1e6, "A": 1e5, "m/s^2": 1e6,
    "rad/s^2": 1e7, "K": 1e5, "degC": 1e5,
}  # fmt: skip
"""No robot's log reaches these, in the stated unit: a wheel turned for a day, a map's origin."""
LIMIT_OF_ANY = 1e12
"""… and of a number without unit, unless it only grows, as counters and clocks do."""
SPIKE = 10.0
"""A spike leaves and returns with steps this many times larger than any around it."""
PASSES = 4
"""Times that spikes are looked for, each time without those that were found."""
SPIKE_SAMPLES = 3
"""A body cannot be elsewhere for this many samples only."""
EFFORT_SPIKE = 1e5
"""An impact is a spike of a force: one that cannot be is this many times its usual range."""
FLOORS = {"angle": 0.05, "length": 0.01}
"""Smaller spikes do no more harm than noise [rad], [m]; and ten times that a second."""


def bad_samples(signal: Signal, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Which samples are not finite and which are absurd, both (samples, components)."""
    width = int(np.prod(signal.shape)) if signal.shape else 1
    values = signal.values.reshape(len(signal.values), width)
    broken = np.zeros(values.shape, dtype=bool)
    if values.dtype.kind != "f":
        return broken, np.zeros(values.shape, dtype=bool)
    broken = ~np.isfinite(values)
    holds = role(name, signal.unit)
    limit = LIMITS.get(signal.unit.strip(), LIMIT_OF_ANY)
    absurd = np.zeros(values.shape, dtype=bool)
    # Squares of huge numbers overflow: the comparison alone is exact.
    with np.errstate(invalid="ignore"):
        beyond = np.abs(values) > limit
    for component in np.flatnonzero(beyond.any(axis=0)).tolist():
        column = values[~broken[:, component], component]
        if limit != LIMIT_OF_ANY or not (np.diff(column) >= 0).all():
            absurd[:, component] = beyond[:, component] & ~broken[:, component]
    if width <= MOST_COMPONENTS and not holds.command:
        rows = growing(signal.times)
        wrong = broken | absurd
        floor = _floor(holds, name, np.where(wrong, 0, values))
        for component in range(width):
            spots = _spikes(values[:, component], wrong[:, component], rows, floor)
            absurd[spots, component] = True
    return broken, absurd


def _floor(holds: Role, name: str, values: np.ndarray) -> float:
    """Least height of a spike in stated units.

    A position cannot leap; a velocity does within its range, at an impact; a force does beyond.
    """
    if not len(values):
        return 0.0
    state = holds.quantity == Quantity.OTHER and "state" in name
    if holds.quantity == Quantity.POSITION or state:
        return FLOORS.get(holds.dimension, 1e-3) / holds.si
    low, high = np.quantile(values, [0.01, 0.99], axis=0)
    reach = float((high - low).max())
    if holds.quantity == Quantity.VELOCITY:
        return max(10 * FLOORS.get(holds.dimension, 1e-3) / holds.si, reach)
    return EFFORT_SPIKE * reach


def _spikes(column: np.ndarray, wrong: np.ndarray, rows: np.ndarray, floor: float) -> np.ndarray:
    """Rows where a series is elsewhere for a few samples, and back again.

    `floor` is the least height of a spike. One beside another shows when that is taken out.
    """
    rows = rows[~wrong[rows]]
    left = rows
    for _ in range(PASSES):
        more = _spikes_once(column, left, floor)
        if not len(more):
            break
        left = np.setdiff1d(left, more)
    return np.setdiff1d(rows, left)


def _spikes_once(column: np.ndarray, rows: np.ndarray, floor: float) -> np.ndarray:
    if len(rows) < 30:
        return rows[:0]
    values = column[rows].astype(np.float64)
    steps = np.abs(np.diff(values))
    # A series at rest that flickers by its resolution has no spikes.
    quantum = float(steps[steps > 0].min(initial=np.inf))
    floor = max(floor, SPIKE * quantum, SPIKE * float(np.quantile(steps, 0.9)))
    found: set[int] = set()
    for start in np.flatnonzero(steps > floor):
        found.update(range(*_spike_at(values, steps, int(start) + 1)))
    return rows[sorted(found)]


def _spike_at(values: np.ndarray, steps: np.ndarray, first: int) -> tuple[int, int]:
    """First and end of a spike that begins at `first`; an empty range where there is none."""
    before = values[first - 1]
    out = values[first] - before
    turn = min(abs(abs(out) - full) / full for full in (2 * np.pi, 360.0))
    if turn < 0.05 and abs(values[first]) < 361.0:
        return (0, 0)  # an angle that flickers at its seam
    for end in range(first + 1, min(first + SPIKE_SAMPLES, len(values) - 1) + 1):
        back = values[end] - values[end - 1]
        if back * out >= 0 or abs(back) < 0.5 * abs(out):
            continue
        around = np.r_[steps[max(first - 16, 0) : first - 1], steps[end : end + 15]]
        calm = around[around < 0.5 * abs(out)]  # another spike near by is no measure
        if len(calm) < 0.6 * len(around):
            return (0, 0)  # it leaps all the time
        apart = float(np.min(np.abs(values[first:end] - before)))
        returned = abs(values[end] - before) < 0.3 * apart
        if returned and apart > SPIKE * float(calm.max(initial=0.0)):
            return (first, end)
    return (0, 0)


def check_values(
    name: str, signal: Signal, broken: np.ndarray, absurd: np.ndarray
) -> Iterator[Finding]:
    """Findings on the samples that were marked."""
    values = signal.values.reshape(broken.shape) if len(broken) else broken
    if broken.any():
        nans = int(np.isnan(values[broken]).sum())
        kinds = f"{nans} NaN, {int(broken.sum()) - nans} infinite"
        yield _finding(
            "not-finite",
            name,
            signal,
            broken,
            f"{int(broken.sum())} of {broken.size} values are not finite ({kinds})",
            "interpolate single ones, drop longer stretches",
        )
    if absurd.any():
        worst = float(np.abs(values[absurd].astype(np.float64)).max())
        good = values[~absurd & ~broken].astype(np.float64)
        usual = f"within ±{np.abs(good).max():.4g}" if len(good) else "none left"
        yield _finding(
            "absurd",
            name,
            signal,
            absurd,
            f"{int(absurd.sum())} of {absurd.size} values cannot be: up to {worst:.4g} "
            f"{signal.unit or '(no unit)'}, the others {usual}",
            "interpolate single spikes; a simulation that exploded is not to be used",
        )


def _finding(
    kind: str, name: str, signal: Signal, marks: np.ndarray, message: str, remedy: str
) -> Finding:
    rows = np.flatnonzero(marks.any(axis=1))
    columns = np.flatnonzero(marks.any(axis=0))
    one = signal.shape and len(columns) == 1
    first, last = int(rows[0]), int(rows[-1])
    stamp = np.nan_to_num(signal.times[[first, last]], posinf=0.0, neginf=0.0)
    where = f"component {columns[0]}: " if one else ""
    return Finding(
        kind=kind,
        severity="error",
        channel=name,
        place=Place(
            component=int(columns[0]) if one else None,
            start_s=float(stamp[0]),
            end_s=float(stamp[1]),
            first=first,
            last=last,
            count=len(rows),
        ),
        message=where + message,
        remedy=remedy,
        # With more than half of the samples gone there is nothing to interpolate between.
        repairable=len(rows) <= len(signal.times) // 2,
        samples=tuple(int(row) for row in rows),
    )


def all_bad_samples(episode: Episode) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The marks of every numeric channel."""
    return {name: bad_samples(signal, name) for name, signal in episode.signals.items()}
