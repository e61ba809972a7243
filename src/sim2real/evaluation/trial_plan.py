"""How many trials it takes to show a difference, planned before the first."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy import stats

from sim2real.errors import Sim2RealError
from sim2real.evaluation.paired_outcomes import MAX_FOR_BARNARD, MIN_EXPECTED
from sim2real.evaluation.sequential import SequentialTest
from sim2real.results import Result

MAX_TRIALS = 2_000
"""Most trials of a practical plan."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TrialPlan(Result, kind="power"):
    """Trials of each of two policies, by kind of comparison; None for more than `MAX_TRIALS`."""

    unpaired: int | None
    """Under independent conditions, in one go (the test of `unpaired_p`)."""
    paired: int | None
    """Under the same conditions, in one go (McNemar's test)."""
    sequential: float | None
    """Under the same conditions, stopping when the result is clear: on average."""
    sequential_most: int | None
    """The same, at most."""
    sequential_equal: float | None
    """The same on average if there is no difference, when nearly all of them are made."""
    power: float
    """Least probability of showing the difference."""
    alpha: float

    def sentences(self) -> Iterator[str]:
        """The plan, a line each."""
        many = f"more than {MAX_TRIALS}"
        average = "" if self.sequential is None else f"{self.sequential:.0f} on average, "
        power = f"{100 * self.power:g} %"
        yield f"trials of each policy to show the difference with a probability of {power}:"
        yield f"  {self.unpaired or many} under independent conditions"
        yield f"  {self.paired or many} under the same conditions, pair by pair"
        yield (
            f"  {average}{self.sequential_most or many} at most, under the same conditions,"
            " stopping when it is clear"
        )


def plan_trials(
    first: float,
    second: float,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    correlation: float = 0.0,
) -> TrialPlan:
    """Trials needed to show the difference between success rates `first` and `second`.

    `correlation` is that of the two outcomes under the same condition: 0 if conditions do not
    matter, near 1 if they decide everything. Two-sided at `alpha`. All numbers are exact. If every
    kind of comparison takes more than `MAX_TRIALS` trials, that is a `Sim2RealError`.
    """
    for name, value in (("power", power), ("alpha", alpha)):
        if not 0 < value < 1:
            raise Sim2RealError(f"{name} {value} is not between 0 and 1")
    only_first, only_second = discordant(first, second, correlation)
    if first == second:
        raise Sim2RealError(f"{first} and {second} are the same: there is no difference to show")

    def sequential(n: int) -> float:
        return SequentialTest(alpha=alpha, most=n).operating(*chances)[0]

    chances = (only_first, only_second) if second > first else (only_second, only_first)
    paired = _smallest(lambda n: paired_power(n, *chances, alpha=alpha), power)
    unpaired = _smallest(lambda n: unpaired_power(n, first, second, alpha=alpha), power)
    most = _smallest(sequential, power)
    if unpaired is None and paired is None and most is None:
        raise Sim2RealError(
            f"this takes more than {MAX_TRIALS} trials; plan for a larger difference or less power"
        )
    test = None if most is None else SequentialTest(alpha=alpha, most=most)
    same = sum(chances) / 2
    return TrialPlan(
        unpaired=unpaired,
        paired=paired,
        sequential=test.operating(*chances)[1] if test else None,
        sequential_most=most,
        sequential_equal=test.operating(same, same)[1] if test else None,
        power=power,
        alpha=alpha,
    )


def discordant(first: float, second: float, correlation: float = 0.0) -> tuple[float, float]:
    """Probabilities that only the first, and only the second, of a pair succeeds."""
    for value in (first, second):
        if not 0 <= value <= 1:
            raise Sim2RealError(f"a success rate of {value} is not between 0 and 1")
    if not -1 <= correlation <= 1:
        raise Sim2RealError(f"a correlation of {correlation} is not between -1 and 1")
    both = first * second + correlation * math.sqrt(first * (1 - first) * second * (1 - second))
    # Two different rates cannot agree perfectly: take the nearest possible.
    both = min(max(both, 0.0, first + second - 1), first, second)
    return first - both, second - both


def paired_power(n: int, only_first: float, only_second: float, *, alpha: float = 0.05) -> float:
    """Probability that McNemar's exact test of `n` pairs shows that the second is better."""
    deciding = only_first + only_second
    if deciding <= 0:
        return 0.0
    m = np.arange(n + 1)
    # Two-sided at 1/2: both tails have half of alpha.
    needed = stats.binom.isf(alpha / 2, m, 0.5) + 1
    shown = stats.binom.sf(needed - 1, m, only_second / deciding)
    return float(stats.binom.pmf(m, n, deciding) @ shown)


def unpaired_power(n: int, first: float, second: float, *, alpha: float = 0.05) -> float:
    """Probability that the test of `unpaired_p`, with `n` trials each, shows a difference.

    Tables enter the rejection region in the order of their pooled z, as long as its probability
    stays below `alpha` at every common rate.
    """
    if n * n > MAX_FOR_BARNARD:
        return _power_of_many(n, first, second, alpha)
    k = np.arange(n + 1)
    pooled = (k[:, None] + k[None, :]) / (2 * n)
    spread = np.sqrt(np.maximum(pooled * (1 - pooled), 1e-300) * 2 / n)
    z = np.round(np.abs(k[:, None] - k[None, :]) / n / spread, 9)
    chance = np.outer(stats.binom.pmf(k, n, first), stats.binom.pmf(k, n, second))
    _, which = np.unique(-z.ravel(), return_inverse=True)
    worst = np.zeros(int(which.max()) + 1)
    for common in np.linspace(0.01, 0.5, 50):  # above a half it is the same, mirrored
        pmf = stats.binom.pmf(k, n, common)
        mass = np.bincount(which.ravel(), np.outer(pmf, pmf).ravel())
        worst = np.maximum(worst, mass.cumsum())
    return float(chance.ravel()[(worst <= alpha)[which.ravel()]].sum())


def _power_of_many(n: int, first: float, second: float, alpha: float) -> float:
    """The same for the chi-squared test, and for Fisher's where expected counts are small."""
    k = np.arange(n + 1)
    a, b = k[:, None], k[None, :]
    both = a + b
    spread = np.sqrt(np.maximum(both * (2 * n - both), 1e-300) / (2 * n))
    shown = np.abs(a - b) >= stats.norm.isf(alpha / 2) * spread
    few = np.minimum(both, 2 * n - both) < 2 * MIN_EXPECTED
    x, total = np.minimum(a, b)[few], both[few]
    shown[few] = 2 * stats.hypergeom.cdf(x, 2 * n, n, total) <= alpha
    chance = np.outer(stats.binom.pmf(k, n, first), stats.binom.pmf(k, n, second))
    return float(chance[shown].sum())


def _smallest(reached: Callable[[int], float], power: float) -> int | None:
    """The smallest size with that power, as if power only grew; None beyond `MAX_TRIALS`."""
    low, high = 1, 2
    while reached(high) < power:
        if high == MAX_TRIALS:
            return None
        low, high = high, min(2 * high, MAX_TRIALS)
    return low + 1 + bisect_left(range(low + 1, high), power, key=reached)
