"""Two policies tried under the same conditions.

What both do alike at a condition says nothing about which is better, so only pairs in which one
succeeds and the other fails count. That is worth many trials where conditions decide much.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from sim2real.evaluate.intervals import Difference, check_confidence
from sim2real.evaluate.trial import Trial

_RESAMPLES = 10_000
MANY = 40_000
"""Product of two numbers of trials beyond which the chi-squared test is as good as an exact one."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Outcomes of two policies, pair by pair, in the order they were made."""

    first: np.ndarray
    """(pairs,) bool: the first policy succeeded."""
    second: np.ndarray
    """(pairs,) bool: the second policy succeeded."""
    conditions: np.ndarray
    """(pairs,) number of the condition that both began in."""

    def __len__(self) -> int:
        return len(self.first)

    @property
    def wins(self) -> tuple[int, int]:
        """Pairs in which only the first, and only the second, succeeded."""
        return int((self.first & ~self.second).sum()), int((self.second & ~self.first).sum())


def matched(first: Sequence[Trial], second: Sequence[Trial]) -> Pairs:
    """Trials of the same condition paired, in the order of the first policy's trials.

    Where a condition was tried several times, the k-th trials go together; what has no partner is
    left out.
    """
    waiting: dict[str, list[bool]] = defaultdict(list)
    for trial in reversed(second):
        if trial.condition:
            waiting[trial.condition].append(trial.success)
    numbers: dict[str, int] = {}
    rows = []
    for trial in first:
        if waiting.get(trial.condition):
            number = numbers.setdefault(trial.condition, len(numbers))
            rows.append((trial.success, waiting[trial.condition].pop(), number))
    return _pairs(rows)


def in_order(first: Sequence[Trial], second: Sequence[Trial]) -> Pairs:
    """The k-th trials of both paired, as if each pair were a condition of its own."""
    return _pairs(
        (a.success, b.success, k) for k, (a, b) in enumerate(zip(first, second, strict=False))
    )


def _pairs(rows: Iterable[tuple[bool, bool, int]]) -> Pairs:
    table = np.array(list(rows), dtype=int).reshape(-1, 3)
    return Pairs(table[:, 0].astype(bool), table[:, 1].astype(bool), table[:, 2])


def mcnemar(pairs: Pairs) -> float:
    """Two-sided p-value of McNemar's exact test that neither policy is better.

    If both succeed equally often at every condition, each pair they differ in is a fair coin.
    """
    only_first, only_second = pairs.wins
    if only_first + only_second == 0:
        return 1.0
    return float(stats.binomtest(only_second, only_first + only_second).pvalue)


def paired_difference(pairs: Pairs, *, confidence: float = 0.95, seed: int = 0) -> Difference:
    """Success of the second minus the first, with a bootstrap interval over conditions.

    Among few pairs, some outcome may not have been seen yet, and resampling never shows what was
    not seen. So half a pair of each of the four outcomes is added before resampling (Agresti and
    Min's remedy): the interval of twenty pairs without a difference is not a point.
    """
    check_confidence(confidence)
    count = int(pairs.conditions.max()) + 1
    sums = np.bincount(pairs.conditions, pairs.second.astype(float) - pairs.first, minlength=count)
    sizes = np.bincount(pairs.conditions, minlength=count).astype(float)
    sums = np.append(sums, [0.0, 0.0, 1.0, -1.0])
    sizes = np.append(sizes, [1.0] * 4)
    weights = np.append(np.ones(count), [0.5] * 4) / (count + 2)
    # Conditions with the same outcome are one cell: a draw then costs no more for many conditions.
    cells, where = np.unique(np.stack([sums, sizes], axis=1), axis=0, return_inverse=True)
    chances = np.bincount(where.ravel(), weights)
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(count + 2, chances / chances.sum(), size=_RESAMPLES)
    found = (drawn @ cells[:, 0]) / (drawn @ cells[:, 1])
    low, high = np.quantile(found, [0.5 - confidence / 2, 0.5 + confidence / 2])
    value = float(pairs.second.mean() - pairs.first.mean())
    return Difference(value, min(value, float(low)), max(value, float(high)), confidence)


def unpaired_p(successes: tuple[int, int], n: tuple[int, int]) -> float:
    """Two-sided p-value that two independent rates are the same: Barnard's exact test, or for
    many trials, where the two agree, the chi-squared test."""
    table = np.array([successes, (n[0] - successes[0], n[1] - successes[1])])
    if (table.sum(axis=1) == 0).any():
        return 1.0
    if n[0] * n[1] > MANY:
        return float(stats.chi2_contingency(table, correction=False).pvalue)
    return float(stats.barnard_exact(table).pvalue)
