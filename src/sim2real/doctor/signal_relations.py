"""How a logged signal differs from the true one: shifted, swapped, negated, scaled, frozen, …

Both are known exactly, so a relation either explains a row or does not; nothing here is
statistical.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sim2real.arrays import Bools, Floats

_Number = TypeVar("_Number", bound=np.generic)

TOLERANCE = 1e-4
"""Absolute and relative difference up to which numbers are equal: float32 and text round."""
MIN_EXPLAINED = 0.9
"""Share of the rows that a relation must explain."""
LONGEST_SHIFT = 10
"""Longest shift in time to try [periods]."""
DEGREES = 180.0 / np.pi


class RelationKind(StrEnum):
    """What happened to a signal; if several kinds explain it, the first is preferred."""

    ABSENT = "absent"
    """Always zero, or never a number."""
    STUCK = "stuck"
    """One value in the whole log."""
    SHIFTED = "shifted"
    PERMUTED = "permuted"
    NEGATED = "negated"
    DEGREES = "degrees"
    OFFSET = "offset"
    SCALED = "scaled"
    HELD = "held"
    """Repeats its last value where it should change."""
    CLIPPED = "clipped"
    AFFINE = "affine"
    """Scaled and offset."""
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class SignalRelation:
    """What happened to one column."""

    kind: RelationKind
    column: int
    value: float = 0.0
    """Delay in periods, factor, offset, or the column whose values these are."""
    share: float = 0.0
    """Share of the disagreeing rows that it explains."""


def same(one: Floats, other: Floats) -> Bools:
    """Whether numbers are equal, element by element; nan is never equal."""
    size = np.maximum(np.abs(one), np.abs(other))
    return np.abs(one - other) <= TOLERANCE * (1.0 + size)


def broken_columns(logged: Floats, true: Floats, rows: Bools) -> list[int]:
    """Columns that differ in more than one row in a hundred."""
    known = rows[:, None] & np.isfinite(true)
    wrong = (~same(logged, true) & known).sum(axis=0)
    allowed = np.minimum(2, 0.01 * known.sum(axis=0))
    return [int(c) for c in np.flatnonzero(wrong > allowed)]


def relate(logged: Floats, true: Floats, rows: Bools, groups: list[str]) -> list[SignalRelation]:
    """What happened to each broken column of `logged` (rows, columns), compared with `true`.

    `rows` (rows,) bool are those where both are known. Columns of the same group in `groups` could
    have been swapped.
    """
    found = [
        _column(logged, true, rows, column, alike(groups, column))
        for column in broken_columns(logged, true, rows)
    ]
    return _completed(found, logged, true, rows, groups)


def alike(groups: list[str], column: int) -> list[int]:
    """The other columns of a column's group."""
    return [k for k, group in enumerate(groups) if k != column and group == groups[column]]


def _completed(
    found: list[SignalRelation], logged: Floats, true: Floats, rows: Bools, groups: list[str]
) -> list[SignalRelation]:
    """The relations, where columns that look stuck or scaled are read as part of a permutation, if
    there is one: a channel at rest looks like that in another's place."""
    if not any(r.kind is RelationKind.PERMUTED for r in found):
        return found
    resting = (
        RelationKind.ABSENT,
        RelationKind.STUCK,
        RelationKind.HELD,
        RelationKind.OFFSET,
        RelationKind.SCALED,
        RelationKind.NEGATED,
    )

    def completed(relation: SignalRelation) -> SignalRelation:
        column = relation.column
        for j in alike(groups, column):
            share = float(same(logged[rows, column], true[rows, j]).mean())
            if share >= MIN_EXPLAINED:
                return SignalRelation(RelationKind.PERMUTED, column, j, share)
        return relation

    return [completed(r) if r.kind in resting else r for r in found]


def _column(
    logged: Floats, true: Floats, rows: Bools, column: int, group: list[int]
) -> SignalRelation:
    mine, should = logged[:, column], true[:, column]
    known = rows & np.isfinite(should)
    if not np.isfinite(mine[known]).any() or (mine[known] == 0.0).all():
        return SignalRelation(RelationKind.ABSENT, column, share=1.0)
    wrong = known & ~same(mine, should)
    where = np.flatnonzero(wrong)
    window = known & (np.arange(len(mine)) >= where[0]) & (np.arange(len(mine)) <= where[-1])
    if np.ptp(mine[known]) == 0.0 and np.ptp(should[known]) > TOLERANCE and known.sum() > 3:
        return SignalRelation(RelationKind.STUCK, column, value=float(mine[known][0]), share=1.0)

    if window.sum() > 3 and np.ptp(mine[window]) == 0.0 < np.ptp(should[window]) - TOLERANCE:
        return SignalRelation(RelationKind.HELD, column, share=1.0)

    def share(guess: Floats) -> float:
        return float(same(mine[window], guess[window]).mean())

    others = [j for j in group if np.ptp(true[window, j]) > TOLERANCE]
    tried = [
        SignalRelation(kind, column, value, share(guess))
        for kind, value, guess in _exact(true, column, others)
    ]
    offset = float(np.nanmedian(mine[window] - should[window]))
    tried.append(SignalRelation(RelationKind.OFFSET, column, offset, share(should + offset)))
    tried.append(_scaled(mine, should, window, column))
    tried.append(SignalRelation(RelationKind.CLIPPED, column, share=_clipped(mine, should, wrong)))
    tried.append(SignalRelation(RelationKind.HELD, column, share=_held(mine, wrong)))
    tried.append(_affine(mine, should, window, column))
    return best(tried, column)


def _exact(
    signals: Floats, column: int, others: list[int], *, undone: bool = False
) -> Iterator[tuple[RelationKind, float, Floats]]:
    """Relations without a number to fit: (kind, value, the column with it, or with it undone)."""
    series = signals[:, column]
    for periods in [k for n in range(1, LONGEST_SHIFT + 1) for k in (n, -n)]:
        yield RelationKind.SHIFTED, periods, shifted(series, -periods if undone else periods)
    for j in others:
        yield RelationKind.PERMUTED, j, signals[:, j]
    yield RelationKind.NEGATED, -1.0, -series
    for s in (DEGREES, 1.0 / DEGREES):
        yield RelationKind.DEGREES, s, series / s if undone else s * series


def best(tried: list[SignalRelation], column: int) -> SignalRelation:
    """The relation that explains the most; of those within two percent of it, the first."""
    top = max((r.share for r in tried), default=0.0)
    if top < MIN_EXPLAINED:
        return SignalRelation(RelationKind.UNKNOWN, column)
    return next(r for r in tried if r.share >= top - 0.02)


def shifted(series: NDArray[_Number], periods: int) -> NDArray[_Number]:
    """The signal `periods` later; its first (or last) value is repeated."""
    places = np.clip(np.arange(len(series)) - periods, 0, len(series) - 1)
    return series[places]


def _scaled(mine: Floats, should: Floats, window: Bools, column: int) -> SignalRelation:
    large = window & (np.abs(should) > 1e-3) & np.isfinite(mine)
    if not large.any():
        return SignalRelation(RelationKind.SCALED, column, 1.0, 0.0)
    factor = float(np.median(mine[large] / should[large]))
    share = float(same(mine[window], factor * should[window]).mean())
    kind = RelationKind.SCALED
    if min(abs(factor * DEGREES - 1.0), abs(factor / DEGREES - 1.0)) < 0.01:
        kind = RelationKind.DEGREES
    return SignalRelation(kind, column, factor, share)


def _affine(mine: Floats, should: Floats, window: Bools, column: int) -> SignalRelation:
    use = window & np.isfinite(mine)
    if use.sum() < 4 or np.ptp(should[use]) < 1e-3:
        return SignalRelation(RelationKind.AFFINE, column)
    slope, level = np.polyfit(should[use], mine[use], 1)
    share = float(same(mine[window], slope * should[window] + level).mean())
    return SignalRelation(RelationKind.AFFINE, column, float(slope), share)


def _held(mine: Floats, wrong: Bools) -> float:
    """Share of the wrong rows that repeat the row before, or suddenly are zero."""
    before = shifted(mine, 1)
    repeats = (mine == before) | (mine == 0.0) | ~np.isfinite(mine)
    # The first of several wrong rows may hold any value.
    begins = wrong & ~np.concatenate([[False], wrong[:-1]])
    use = wrong & ~(begins & ~repeats)
    return float(repeats[use].mean()) if use.sum() > 1 else 0.0


def _clipped(mine: Floats, should: Floats, wrong: Bools) -> float:
    """Share of the wrong rows that are at the largest or smallest value."""
    above = wrong & (should > mine) & (mine >= np.nanmax(mine) - TOLERANCE)
    below = wrong & (should < mine) & (mine <= np.nanmin(mine) + TOLERANCE)
    return float((above | below).sum() / max(1, wrong.sum()))


def search(
    logged: Floats,
    column: int,
    group: list[int],
    error: Callable[[Floats], Floats],
    wrong: Bools,
) -> SignalRelation:
    """What happened to a column of which only a function is observed.

    `error` gives, for a guess of the true column (rows,), how far the function is from what was
    observed (rows,); `wrong` are the rows where it is off for the logged column.
    """
    mine = logged[:, column]
    where = np.flatnonzero(wrong)
    window = np.zeros(len(mine), dtype=bool)
    window[where[0] : where[-1] + 1] = True
    window &= np.isfinite(mine)
    if (mine[window] == 0.0).all():
        return SignalRelation(RelationKind.ABSENT, column, share=1.0)

    def share(guess: Floats) -> float:
        return float((error(guess)[window] <= 2 * TOLERANCE).mean())

    def total(guess: Floats) -> float:
        return float(np.minimum(np.nan_to_num(error(guess)[window], nan=1.0), 0.1).sum())

    tried = [
        SignalRelation(kind, column, value, share(guess))
        for kind, value, guess in _exact(logged, column, group, undone=True)
    ]
    reach = max(np.pi, float(np.nanmax(np.abs(mine))))
    offset = _minimum(lambda d: total(mine - d), np.linspace(-reach, reach, 161))
    tried.append(SignalRelation(RelationKind.OFFSET, column, offset, share(mine - offset)))
    factors = np.exp(np.linspace(np.log(0.05), np.log(20.0), 241))
    factor = _minimum(lambda s: total(mine / s), factors)
    tried.append(SignalRelation(RelationKind.SCALED, column, factor, share(mine / factor)))
    tried.append(SignalRelation(RelationKind.HELD, column, share=_held(mine, wrong)))
    return best(tried, column)


def _minimum(cost: Callable[[float], float], grid: Floats) -> float:
    """Where a cost is smallest: on a grid, then on finer and finer ones around the best point."""
    for _ in range(6):
        costs = [cost(float(x)) for x in grid]
        k = int(np.argmin(costs))
        low, high = grid[max(0, k - 1)], grid[min(len(grid) - 1, k + 1)]
        grid = np.linspace(low, high, 21)
    return float(grid[10])
