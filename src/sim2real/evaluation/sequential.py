"""Comparing two policies while trials come in: stop as soon as the result is clear.

Whoever looks at a p-value after every trial, and stops when it is small, almost surely finds a
difference some day even where there is none. This test may be read after every pair.

Only pairs in which one policy succeeds and the other fails count. If B is not better than A, it
wins each of those with probability at most 1/2, whatever came before. The evidence for B is how
much likelier the wins so far are if B wins more than half, averaged over how much more, than if it
wins half. In the latter case it is a martingale that starts at 1, so by Ville's inequality it ever
reaches 1/a with probability at most a. A and B have half of `alpha` each. With a planned last pair,
the boundary that is crossed with probability a within the plan is found exactly, by counting paths;
it is lower than Ville's, so decisions come sooner. Fewer deciding pairs than pairs, or a B that is
worse, only make crossing rarer.

Trials that do not share conditions may be paired in their order: B wins more of the deciding pairs
if and only if it succeeds more often.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import special, stats

from sim2real.arrays import Floats, Ints
from sim2real.errors import Sim2RealError
from sim2real.evaluation.paired_outcomes import PairedOutcomes
from sim2real.plain import PlainData

_SHAPE = 2.0
"""Shape of the Beta distribution, cut at half, that evidence is averaged over: it needs the fewest
trials at differences of 20 to 30 points."""
_MAX_PLANNED = 2_000
"""Most pairs in a plan."""
_FORECAST_PAIRS = 500
"""Pairs to forecast if there is no plan."""
_FUTURES = 500
"""Simulated futures of a forecast."""


@dataclass(frozen=True, kw_only=True)
class SequentialTest:
    """A boundary that evidence crosses with probability at most `alpha` if neither is better."""

    alpha: float = 0.05
    """Probability of ever calling a policy better when neither is; half for each."""
    most: int | None = None
    """Pairs in the plan; None for no end."""

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise Sim2RealError(f"an error rate of {self.alpha} is not between 0 and 1")
        if self.most is not None and not 1 <= self.most <= _MAX_PLANNED:
            raise Sim2RealError(f"a plan is for 1 to {_MAX_PLANNED} pairs, not {self.most}")

    def needed(self, deciding: int) -> Ints:
        """(deciding + 1,) wins that show that a policy is better, by number of deciding pairs."""
        level = math.log(2 / self.alpha)
        if self.most is not None:
            level = _exact_level(self.alpha / 2, self.most)
        return _needed(level, deciding)

    def read(self, pairs: PairedOutcomes, *, seed: int = 0) -> SequentialVerdict:
        """The verdict after these pairs, taken in their order."""
        if self.most is not None and len(pairs) > self.most:
            raise more_than_planned(len(pairs), self.most)
        decided = self.decision(pairs)
        if decided is not None:
            return SequentialVerdict(better=decided[0], pairs=decided[1], done=True)
        if self.most is not None and len(pairs) >= self.most:
            return SequentialVerdict(pairs=len(pairs), done=True)
        chance, more = self._forecast(pairs, np.random.default_rng(seed))
        return SequentialVerdict(
            pairs=len(pairs), chance=chance, more=more, ahead=self._left(pairs)
        )

    def decision(self, pairs: PairedOutcomes) -> tuple[str, int] | None:
        """('A' or 'B', the pair after which it was clear); None before that."""
        first = np.cumsum(pairs.first & ~pairs.second)
        second = np.cumsum(pairs.second & ~pairs.first)
        needed = self.needed(len(pairs))[first + second]
        crossed = np.flatnonzero((first >= needed) | (second >= needed))
        if not len(crossed):
            return None
        at = int(crossed[0])
        return ("A" if first[at] >= needed[at] else "B"), at + 1

    def _left(self, pairs: PairedOutcomes) -> int:
        return _FORECAST_PAIRS if self.most is None else self.most - len(pairs)

    def _forecast(
        self, pairs: PairedOutcomes, rng: np.random.Generator
    ) -> tuple[float, int | None]:
        """Probability of a decision, and the pairs after which half of the futures have one."""
        wins = pairs.wins
        left = self._left(pairs)
        seen = np.array([wins[0], wins[1], len(pairs) - sum(wins)]) + 0.5
        chances = rng.dirichlet(seen, size=_FUTURES)
        u = rng.random((_FUTURES, left))
        won_a = u < chances[:, :1]
        won_b = ~won_a & (u < chances[:, :1] + chances[:, 1:2])
        a, b = wins[0] + won_a.cumsum(axis=1), wins[1] + won_b.cumsum(axis=1)
        needed = self.needed(len(pairs) + left)[a + b]
        crossed = (a >= needed) | (b >= needed)
        decided = crossed.any(axis=1)
        after = np.sort(np.where(decided, crossed.argmax(axis=1) + 1, left + 1))
        middle = int(after[_FUTURES // 2])
        return float(decided.mean()), middle if middle <= left else None

    def operating(self, first_only: float, second_only: float) -> tuple[float, float]:
        """(probability of a decision for the second, mean pairs) of a test with a plan. Exact.

        `first_only` and `second_only` are the probabilities that either wins a pair.
        """
        if self.most is None:
            raise Sim2RealError("a test without a plan has no power: set `most`")
        deciding = first_only + second_only
        if deciding <= 0:
            return 0.0, float(self.most)
        up, down = _stopped(self.needed(self.most), second_only / deciding, both=True)
        steps = np.arange(self.most + 1)
        share = stats.binom.pmf(steps[None, :], steps[:, None], deciding)  # (pairs, deciding)
        going = 1.0 - share @ (up + down)
        return float(share[-1] @ up), float(going[:-1].sum())


@dataclass(frozen=True, kw_only=True)
class SequentialVerdict(PlainData, also=("says=__str__",)):
    """Where a sequential comparison stands."""

    pairs: int
    """Pairs until the decision, or so far."""
    better: str = ""
    """'A' or 'B'; '' if it is not clear."""
    done: bool = False
    """Whether to stop."""
    chance: float | None = None
    """Probability of a decision within `ahead` more pairs, if they go on like those so far."""
    ahead: int = 0
    """Pairs left in the plan, or in the forecast without one."""
    more: int | None = None
    """Pairs until half of the futures have a decision; None if more than `ahead`."""
    counted: str = "pairs"
    """What counts as a pair: 'pairs' of trials, or all trials of one of the 'draws' or 'robots'."""

    def __str__(self) -> str:
        if self.better:
            return f"stop: {self.better} is better, clear after {self.pairs} {self.counted}"
        if self.done:
            return f"stop: no difference shown in the {self.pairs} {self.counted} planned"
        what = "trials of each" if self.counted == "pairs" else self.counted
        if self.more is None:
            return (
                f"go on only if it matters: the probability of a decision within {self.ahead} more"
                f" {what} is {100 * (self.chance or 0.0):.0f} %"
            )
        return f"go on: about {self.more} more {what}"


def more_than_planned(pairs: int, most: int) -> Sim2RealError:
    """The error of going on beyond the plan."""
    return Sim2RealError(
        f"{pairs} pairs are more than the {most} planned; the error rate holds for the plan"
    )


@lru_cache(maxsize=256)
def _needed(level: float, deciding: int) -> Ints:
    """(deciding + 1,) fewest wins with that much evidence; more than all pairs if none suffice."""
    found = np.empty(deciding + 1, dtype=int)
    low = 0
    for m in range(deciding + 1):
        # One more pair never lowers the wins needed, and raises them by at most one.
        while low <= m and _log_evidence(low, m) < level:
            low += 1
        found[m] = low
    return found


@lru_cache(maxsize=200_000)
def _log_evidence(wins: int, deciding: int) -> float:
    """Log of the martingale after so many wins in so many deciding pairs."""
    a, b = _SHAPE + wins, _SHAPE + deciding - wins
    found = math.log(2) + special.betaln(a, b) - special.betaln(_SHAPE, _SHAPE)
    return float(found + stats.beta.logsf(0.5, a, b) + deciding * math.log(2))


def _stopped(needed: Ints, chance: float, *, both: bool) -> tuple[Floats, Floats]:
    """(deciding + 1,) probabilities that the second, and the first, was called better by then.

    Unless `both` may be, only the second is ever called better.
    """
    most = len(needed) - 1
    up, down = np.zeros(most + 1), np.zeros(most + 1)
    alive = np.ones(1)  # by wins of the second
    for m in range(1, most + 1):
        moved = np.zeros(m + 1)
        moved[1:] += chance * alive
        moved[:-1] += (1 - chance) * alive
        up[m] = up[m - 1] + moved[needed[m] :].sum()
        moved[needed[m] :] = 0.0
        lost = max(0, m - int(needed[m]) + 1) if both else 0
        down[m] = down[m - 1] + moved[:lost].sum()
        moved[:lost] = 0.0
        alive = moved
    return up, down


@lru_cache(maxsize=64)
def _exact_level(alpha: float, most: int) -> float:
    """Lowest evidence that one side reaches within `most` fair pairs with probability `alpha`."""
    low, high = 0.0, math.log(1 / alpha)
    for _ in range(14):
        middle = (low + high) / 2
        crossed = crossing_chance(_needed(middle, most))
        low, high = (low, middle) if crossed <= alpha else (middle, high)
    return high


def crossing_chance(needed: Ints) -> float:
    """Probability that one side of a fair game crosses, whatever the other side does."""
    return float(_stopped(needed, 0.5, both=False)[0][-1])
