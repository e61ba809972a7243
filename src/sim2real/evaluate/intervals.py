"""Intervals and tests for success rates; no rate is shown without one."""

from __future__ import annotations

from dataclasses import dataclass

from scipy import stats

from sim2real.errors import Sim2RealError


@dataclass(frozen=True)
class Rate:
    """A success rate with its Wilson interval."""

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

    def to_dict(self) -> dict[str, float | int]:
        """Plain data for JSON."""
        return {
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "n": self.n,
            "successes": self.successes,
            "confidence": self.confidence,
        }


def wilson(successes: int, n: int, *, confidence: float = 0.95) -> Rate:
    """The rate of `successes` in `n` trials with its Wilson score interval."""
    if n < 1 or not 0 <= successes <= n:
        raise Sim2RealError(f"{successes} successes in {n} trials is not a rate")
    if not 0 < confidence < 1:
        raise Sim2RealError(f"a confidence of {confidence} is not between 0 and 1")
    interval = stats.binomtest(successes, n).proportion_ci(confidence, method="wilson")
    return Rate(successes, n, float(interval.low), float(interval.high), confidence)
