"""How often a robot will succeed, before it is switched on.

Worlds drawn from a twin's posterior are robots that the real one may be. Each draw is ONE robot
with a success rate of its own; the real robot is one more. So the rates of many draws say what the
real one's may be, and trials of it scatter around its rate besides. An average over all draws would
be known far too well: it is the success of a fleet, not of a robot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special, stats

from sim2real.errors import Sim2RealError
from sim2real.evaluate.intervals import check_confidence
from sim2real.evaluate.trial import Trial

_FEWEST_DRAWS = 10


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """The success rate of one robot that is yet to be tried."""

    mean: float
    low: float
    """Lower end of the interval of the robot's success rate."""
    high: float
    confidence: float
    trials: int
    """Real trials that `shown` is about."""
    shown_low: float
    """Lower end of the interval of the rate that so many trials will show."""
    shown_high: float
    draws: int
    spread: float
    """Standard deviation of the success rate from robot to robot."""

    def __str__(self) -> str:
        return (
            f"{100 * self.mean:.1f} % [{100 * self.low:.1f}, {100 * self.high:.1f}];"
            f" {self.trials} trials will show {100 * self.shown_low:.0f} to"
            f" {100 * self.shown_high:.0f} % ({100 * self.confidence:g} % sure)"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def predict(
    successes: ArrayLike, tried: ArrayLike, *, trials: int, confidence: float = 0.9
) -> Prediction:
    """What `trials` trials of one real robot will show.

    Draw k of the posterior succeeded in `successes[k]` of `tried[k]` episodes. A draw's few
    episodes scatter too: its rate has the Beta distribution that a beta-binomial law, fitted to all
    draws, and its own episodes leave. The prediction is the mixture of those over the draws, so no
    shape is assumed where episodes are many.
    """
    check_confidence(confidence)
    won, n = np.asarray(successes, dtype=float), np.asarray(tried, dtype=float)
    if won.shape != n.shape or won.ndim != 1 or (won < 0).any() or (won > n).any():
        raise Sim2RealError("successes and episodes must be two lists, one entry a draw")
    if len(won) < _FEWEST_DRAWS:
        raise Sim2RealError(
            f"{len(won)} draws are too few to predict from; {_FEWEST_DRAWS} at least"
        )
    if n.min() < 2:
        raise Sim2RealError(
            "a draw was tried once only: how robots differ cannot be told from how trials scatter;"
            " evaluate with --each 10 or so"
        )
    if trials < 1:
        raise Sim2RealError(f"a prediction is about at least 1 trial, not {trials}")
    a, b = _beta_binomial(won, n)
    seen = (a + won, b + n - won)
    # One robot more, like none of those drawn: few draws do not know the ends of their range.
    shape = (np.append(seen[0], 0.5), np.append(seen[1], 0.5))
    tails = np.array([0.5 - confidence / 2, 0.5 + confidence / 2])
    low, high = (
        optimize.brentq(lambda rate, t=tail: special.betainc(*shape, rate).mean() - t, 0.0, 1.0)
        for tail in tails
    )
    counts = np.arange(trials + 1)
    log_chance = special.betaln(shape[0] + counts[:, None], shape[1] + trials - counts[:, None])
    chance = np.exp(log_chance - special.betaln(*shape)).mean(axis=1)
    up_to = (special.binom(trials, counts) * chance).cumsum()
    shown = np.searchsorted(up_to, tails).clip(0, trials) / trials
    mean = float(stats.beta.mean(*seen).mean())
    second = float((stats.beta.var(*seen) + stats.beta.mean(*seen) ** 2).mean())
    return Prediction(
        mean=mean,
        low=float(low),
        high=float(high),
        confidence=confidence,
        trials=trials,
        shown_low=float(shown[0]),
        shown_high=float(shown[1]),
        draws=len(won),
        spread=float(np.sqrt(max(0.0, second - mean**2))),
    )


def counts_of(trials: Sequence[Trial]) -> tuple[np.ndarray, np.ndarray]:
    """(draws,) successes and episodes of each draw among simulated trials."""
    tried = Counter(trial.unit for trial in trials)
    won = Counter(trial.unit for trial in trials if trial.success)
    return np.array([won[unit] for unit in tried]), np.array(list(tried.values()))


def _beta_binomial(won: np.ndarray, n: np.ndarray) -> tuple[float, float]:
    """Shape of the Beta law of rates that makes these counts likeliest."""

    def unlikelihood(x: np.ndarray) -> float:
        mean, size = special.expit(x[0]), np.exp(x[1])
        a, b = mean * size, (1 - mean) * size
        likelihood = special.betaln(a + won, b + n - won) - special.betaln(a, b)
        # A weak pull to sizes near 10: draws that all succeed say nothing about the spread.
        return float(-likelihood.sum() + 0.5 * ((x[1] - np.log(10.0)) / 2.0) ** 2)

    begin = (won.sum() + 0.5) / (n.sum() + 1.0)
    found = optimize.minimize(
        unlikelihood,
        np.array([special.logit(begin), np.log(10.0)]),
        method="L-BFGS-B",
        bounds=[(-12.0, 12.0), (np.log(0.05), np.log(1e4))],
    )
    mean, size = special.expit(found.x[0]), np.exp(found.x[1])
    return float(mean * size), float((1 - mean) * size)
