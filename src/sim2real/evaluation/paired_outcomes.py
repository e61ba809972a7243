"""Two policies tried under the same conditions.

Pairs in which both succeed or both fail say nothing about which policy is better, so only the
others count. If conditions matter much, this saves many trials.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from sim2real.arrays import Bools, Floats, Ints
from sim2real.evaluation.trial import Trial
from sim2real.intervals import Difference, check_confidence

_RESAMPLES = 10_000
MAX_FOR_BARNARD = 40_000
"""Product of the two numbers of trials beyond which Barnard's test takes too long."""
MIN_EXPECTED = 5
"""Fewest expected successes and failures of both for the chi-squared test."""


@dataclass(frozen=True, eq=False)
class PairedOutcomes:
    """Outcomes of two policies, pair by pair, in the order they were made."""

    first: Bools
    """(pairs,) bool: the first policy succeeded."""
    second: Bools
    """(pairs,) bool: the second policy succeeded."""
    conditions: Ints
    """(pairs,) index of the condition that both started in, or of the robot or draw they share."""

    def __len__(self) -> int:
        return len(self.first)

    @property
    def wins(self) -> tuple[int, int]:
        """Pairs in which only the first, and only the second, succeeded."""
        return int((self.first & ~self.second).sum()), int((self.second & ~self.first).sum())


def matched(
    first: Sequence[Trial], second: Sequence[Trial], *, by_unit: bool = False
) -> PairedOutcomes:
    """Trials of the same condition, paired, in the order of the first policy's trials.

    If a condition was tried several times, the k-th trials of both are a pair; trials without a
    partner are left out. With `by_unit`, pairs of one robot or draw share an index.
    """
    waiting: dict[str, list[Trial]] = defaultdict(list)
    for trial in reversed(second):
        if trial.condition:
            waiting[trial.condition].append(trial)
    both = [(t, waiting[t.condition].pop()) for t in first if waiting.get(t.condition)]
    return _pairs(both, _pair_units(both) if by_unit else [a.condition for a, _ in both])


def matched_units(first: Sequence[Trial], second: Sequence[Trial]) -> PairedOutcomes:
    """Trials of the same robot or draw, paired in their order, with its index."""
    named = [[replace(t, condition=t.unit) for t in trials] for trials in (first, second)]
    return matched(*named, by_unit=True)


def in_order(
    first: Sequence[Trial], second: Sequence[Trial], *, by_unit: bool = False
) -> PairedOutcomes:
    """The k-th trials of both, paired, each pair as its own condition.

    With `by_unit`, pairs of one robot or draw share an index.
    """
    both = list(zip(first, second, strict=False))
    return _pairs(both, _pair_units(both) if by_unit else range(len(both)))


def unit_counts(trials: Sequence[Trial]) -> tuple[Ints, Ints]:
    """(units,) successes and trials of each robot or draw, in order of appearance."""
    units = _units(trials)
    tried = Counter(units)
    won = Counter(unit for unit, trial in zip(units, trials, strict=True) if trial.success)
    return np.array([won[unit] for unit in tried]), np.array(list(tried.values()))


def _units(trials: Iterable[Trial]) -> list[str]:
    """Names of robots or draws; a trial without one counts as its own."""
    return [trial.unit or f"trial {k}" for k, trial in enumerate(trials)]


def _pair_units(both: Sequence[tuple[Trial, Trial]]) -> list[str]:
    return _units(a if a.unit else b for a, b in both)


def _pairs(both: Sequence[tuple[Trial, Trial]], conditions: Iterable[Hashable]) -> PairedOutcomes:
    numbers: dict[Hashable, int] = {}
    return PairedOutcomes(
        np.array([a.success for a, _ in both], dtype=bool),
        np.array([b.success for _, b in both], dtype=bool),
        np.array([numbers.setdefault(c, len(numbers)) for c in conditions], dtype=int),
    )


def mcnemar(pairs: PairedOutcomes) -> float:
    """Two-sided p-value of McNemar's exact test that neither policy is better.

    If both succeed equally often under every condition, each pair in which they differ is a toss of
    a fair coin.
    """
    only_first, only_second = pairs.wins
    if only_first + only_second == 0:
        return 1.0
    return float(stats.binomtest(only_second, only_first + only_second).pvalue)


def paired_difference(
    pairs: PairedOutcomes, *, confidence: float = 0.95, seed: int = 0
) -> Difference:
    """Success of the second minus the first, with a bootstrap interval over conditions.

    Few pairs may lack some outcome, and resampling never shows an outcome that was not seen. So
    half a pair of each of the four outcomes is added before resampling (Agresti and Min): twenty
    pairs without a difference still have an interval. Where pairs of a condition are correlated,
    the half is of as many pairs as are worth an independent one.
    """
    check_confidence(confidence)
    sums, sizes = by_condition(pairs)
    count, alike = len(sums), _alike(pairs)
    sums = np.append(sums, [0.0, 0.0, alike, -alike])
    sizes = np.append(sizes, [alike] * 4)
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


def votes(differences: Floats) -> PairedOutcomes:
    """One pair per robot or draw, won by the first policy if the difference of success (units,) is
    negative, by the second if it is positive, and by neither if it is 0."""
    return PairedOutcomes(differences < 0, differences > 0, np.arange(len(differences)))


def by_condition(pairs: PairedOutcomes) -> tuple[Floats, Floats]:
    """(conditions,) wins of the second minus those of the first, and pairs."""
    ahead = pairs.second.astype(float) - pairs.first
    wins, sizes = np.bincount(pairs.conditions, ahead), np.bincount(pairs.conditions)
    return wins.astype(float), sizes.astype(float)


def _alike(pairs: PairedOutcomes) -> float:
    """Pairs of one condition that are worth an independent pair: 1 if pairs are independent, all of
    a condition if no two of them differ."""
    sums, sizes = by_condition(pairs)
    ahead = pairs.second.astype(float) - pairs.first
    alone = float(ahead.var()) * len(pairs)
    together = float(((sums - ahead.mean() * sizes) ** 2).sum()) * len(sums) / max(len(sums) - 1, 1)
    most = float(sizes.mean())
    return min(max(together / alone, 1.0), most) if alone > 0 else most


def unpaired_p(successes: tuple[int, int], n: tuple[int, int]) -> tuple[float, str]:
    """Two-sided p-value that two independent rates are equal, and the name of its test.

    Barnard's exact test; for many trials, which take it too long, the chi-squared test if enough
    successes and failures of both are expected, else Fisher's exact test.
    """
    table = np.array([successes, (n[0] - successes[0], n[1] - successes[1])])
    if (table.sum(axis=1) == 0).any():
        return 1.0, "Barnard"
    if n[0] * n[1] <= MAX_FOR_BARNARD:
        return float(stats.barnard_exact(table).pvalue), "Barnard"
    if stats.contingency.expected_freq(table).min() >= MIN_EXPECTED:
        return float(stats.chi2_contingency(table, correction=False).pvalue), "chi-squared"
    return float(stats.fisher_exact(table).pvalue), "Fisher"
