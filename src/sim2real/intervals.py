"""Intervals and tests for success rates; no rate is shown without one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from scipy import special, stats

from sim2real.arrays import Floats, Ints
from sim2real.errors import Sim2RealError
from sim2real.plain import PlainData


@dataclass(frozen=True)
class Rate(PlainData, also=("value",)):
    """A success rate with its interval."""

    successes: int
    n: int
    low: float
    high: float
    confidence: float

    @property
    def value(self) -> float:
        """The share of successes."""
        return self.successes / self.n

    def __str__(self) -> str:
        return (
            f"{100 * self.value:.1f} % [{100 * self.low:.1f}, {100 * self.high:.1f}] (n = {self.n})"
        )


def wilson(successes: int, n: int, *, confidence: float = 0.95) -> Rate:
    """The rate of `successes` in `n` trials with its Wilson score interval.

    Its coverage is right on average: a little below `confidence` at some rates, a little above it
    at others.
    """
    return _rate(successes, n, confidence, "wilson")


def clopper_pearson(successes: int, n: int, *, confidence: float = 0.95) -> Rate:
    """The rate with its Clopper-Pearson interval: it covers at least `confidence` at any rate, and
    is wider for it."""
    return _rate(successes, n, confidence, "exact")


@lru_cache(maxsize=4096)
def _rate(successes: int, n: int, confidence: float, method: Literal["wilson", "exact"]) -> Rate:
    if n < 1 or not 0 <= successes <= n:
        raise Sim2RealError(f"{successes} successes in {n} trials is not a rate")
    check_confidence(confidence)
    interval = stats.binomtest(successes, n).proportion_ci(confidence, method=method)
    return Rate(successes, n, float(interval.low), float(interval.high), confidence)


def check_confidence(confidence: float) -> None:
    """Refuse a confidence that is not between 0 and 1."""
    if not 0 < confidence < 1:
        raise Sim2RealError(f"a confidence of {confidence} is not between 0 and 1")


def score_interval(rate: float, n: float, *, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's interval for a rate measured in `n` trials; `n` need not be whole."""
    z2 = float(special.ndtri(0.5 + confidence / 2)) ** 2
    middle = (rate + z2 / (2 * n)) / (1 + z2 / n)
    half = math.sqrt(z2 * (rate * (1 - rate) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    return max(0.0, middle - half), min(1.0, middle + half)


def clustered(won: Floats | Ints, n: Floats | Ints, *, confidence: float = 0.95) -> Rate:
    """The rate of trials in clusters (k,), such as those of one robot or of one draw.

    Trials of a cluster are alike, so the interval is Wilson's for the effective number of
    independent trials: at least one a cluster, and at most as many as there are.
    """
    check_confidence(confidence)
    rate = float(won.sum() / n.sum())
    low, high = score_interval(rate, worth_of(won, n), confidence=confidence)
    return Rate(int(won.sum()), int(n.sum()), low, high, confidence)


def worth_of(won: Floats | Ints, n: Floats | Ints) -> float:
    """Effective number of independent trials among trials in clusters (k,)."""
    clusters, total = len(n), float(n.sum())
    rate = float(won.sum()) / total
    away = won - rate * n
    spread = float((away**2).sum()) * clusters / max(clusters - 1, 1) / total**2
    return float(
        np.clip(rate * (1 - rate) / spread if spread > 0 else 0.0, min(clusters, total), total)
    )


@dataclass(frozen=True)
class Difference(PlainData):
    """By how much the second of two rates is higher than the first."""

    value: float
    low: float
    high: float
    confidence: float

    def __str__(self) -> str:
        return f"{100 * self.value:+.1f} [{100 * self.low:+.1f}, {100 * self.high:+.1f}] points"


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values corrected for their number (Holm)."""
    order = np.argsort(p_values, kind="stable")
    found, largest = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[place]))
        found[place] = largest
    return found


def unpaired_difference(first: Rate, second: Rate) -> Difference:
    """Newcombe's interval for the difference of two independent rates, from their intervals."""
    value = second.value - first.value
    low = math.hypot(second.value - second.low, first.high - first.value)
    high = math.hypot(second.high - second.value, first.value - first.low)
    return Difference(value, value - low, value + high, first.confidence)
