"""Is B better than A? Everything there is to say from two sets of trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sim2real.errors import Sim2RealError
from sim2real.evaluate.intervals import Difference, Rate, unpaired_difference, wilson
from sim2real.evaluate.paired import (
    Pairs,
    in_order,
    matched,
    mcnemar,
    paired_difference,
    unpaired_p,
)
from sim2real.evaluate.sequential import SequentialTest, Verdict
from sim2real.evaluate.trial import Trial

_MATCHED_ENOUGH = 0.8
"""Share of the smaller set that must have partners; a few left over do not make it unpaired."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two policies side by side."""

    first: Rate
    second: Rate
    paired: bool
    """Whether trials share conditions and were compared pair by pair."""
    pairs: int
    """Pairs that were compared: of one condition, or in the order of the trials."""
    wins: tuple[int, int]
    """Pairs in which only A, and only B, succeeded."""
    unmatched: tuple[int, int]
    """Trials of A and B without a partner."""
    difference: Difference
    """Success of B minus A: paired bootstrap, or Newcombe's interval."""
    p_value: float
    """That neither is better, as if these were all trials ever: McNemar, or Barnard."""
    sequential: Verdict
    """What may be said by one who looks after every trial."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "first": self.first.to_dict(),
            "second": self.second.to_dict(),
            "paired": self.paired,
            "pairs": self.pairs,
            "wins": list(self.wins),
            "unmatched": list(self.unmatched),
            "difference": self.difference.to_dict(),
            "p_value": self.p_value,
            "sequential": {**asdict(self.sequential), "says": str(self.sequential)},
        }


def compare(
    first: Sequence[Trial],
    second: Sequence[Trial],
    *,
    confidence: float = 0.95,
    most: int | None = None,
    by_order: bool = False,
    seed: int = 0,
) -> Comparison:
    """Compare two policies: pair by pair where their conditions match, else as independent.

    `most` is the number of trials of each after which no more are made, where that was planned.
    `by_order` says that the k-th trials of both began alike.
    """
    for name, trials in (("A", first), ("B", second)):
        if not trials:
            raise Sim2RealError(f"{name} has no trial that was judged")
    if len({trial.source for trial in (*first, *second)}) > 1:
        raise Sim2RealError(
            "trials of simulation and of robots are not compared with each other; say which to take"
        )
    pairs = in_order(first, second) if by_order else matched(first, second)
    fewer = min(len(first), len(second))
    paired = by_order or len(pairs) >= max(1.0, _MATCHED_ENOUGH * fewer)
    rates = [
        wilson(sum(t.success for t in trials), len(trials), confidence=confidence)
        for trials in (first, second)
    ]
    if paired:
        p_value = mcnemar(pairs)
        difference = paired_difference(pairs, confidence=confidence, seed=seed)
    else:
        pairs = in_order(first, second)
        p_value = unpaired_p((rates[0].successes, rates[1].successes), (rates[0].n, rates[1].n))
        difference = unpaired_difference(*rates)
    test = SequentialTest(alpha=1 - confidence, most=most)
    return Comparison(
        first=rates[0],
        second=rates[1],
        paired=paired,
        pairs=len(pairs),
        wins=pairs.wins,
        unmatched=_unmatched(pairs, first, second),
        difference=difference,
        p_value=p_value,
        sequential=test.read(pairs, seed=seed),
    )


def _unmatched(pairs: Pairs, first: Sequence[Trial], second: Sequence[Trial]) -> tuple[int, int]:
    return len(first) - len(pairs), len(second) - len(pairs)
