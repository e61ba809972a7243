"""How often a robot will succeed, before it is switched on.

Worlds drawn from a twin's posterior are robots that the real one may be. Each draw is ONE robot
with a success rate of its own; the real robot is one more. So the rates of many draws say what the
real one's may be, and trials of it scatter around its rate besides. An average over all draws would
be known far too well: it is the success of a fleet, not of a robot.

A twin does not know everything that ends an attempt. What is known of that from elsewhere, such as
the packets that a robot's link loses, lowers the rates; and real attempts, once there are some, say
how much else does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from sim2real.arrays import Floats, Ints
from sim2real.errors import Sim2RealError
from sim2real.evaluation.trial import Trial
from sim2real.intervals import check_confidence
from sim2real.plain import PlainData

_FEWEST_DRAWS = 10
_MOST_TRIALS = 10_000
_MEANS, _SPREADS, _RATES = 200, 24, 256
"""Parts that the means and spreads of laws, and the rates of robots, are cut into."""
_UNLIKE = 0.5
"""Robots, among those drawn, that are like none of them, of any rate: few draws do not know the
ends of their range."""
_UNKNOWN = 64
"""Parts that the share of attempts is cut into which something unknown ends."""


@dataclass(frozen=True, kw_only=True)
class Prediction(PlainData):
    """The success rate of one robot that is yet to be tried."""

    mean: float
    median: float
    """Within the interval always; that a robot may be like none of the draws pulls the mean out of
    a narrow one."""
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
    real: tuple[int, int] = (0, 0)
    """Successes and attempts of the real robot that it knows of."""

    def __str__(self) -> str:
        return (
            f"{100 * self.median:.1f} % [{100 * self.low:.1f}, {100 * self.high:.1f}];"
            f" {self.trials} trials will show {100 * self.shown_low:.0f} to"
            f" {100 * self.shown_high:.0f} % ({100 * self.confidence:g} % sure)"
        )


def predict(
    successes: ArrayLike,
    tried: ArrayLike,
    *,
    trials: int,
    ended: ArrayLike = (0.0,),
    real: tuple[int, int] = (0, 0),
    confidence: float = 0.9,
) -> Prediction:
    """What `trials` trials of one real robot will show.

    Draw k of the posterior succeeded in `successes[k]` of `tried[k]` episodes; draws tried once
    are left out. Rates of robots have a Beta law of which mean and spread are not known: all laws
    are taken, each as much as it explains the episodes. So draws that all succeeded do not make a
    robot certain that would fail once in a hundred.

    `ended` (k,) are equally likely shares of attempts that end for a reason which is known and not
    simulated. `real` are successes and attempts of the robot with the same policy: where there are
    any, a further share of attempts may fail for reasons that nobody knows, and they say how large
    it is. So a simulation that always succeeds makes no robot better than its attempts show.
    """
    check_confidence(confidence)
    check_trials(trials)
    won, n = _several(successes, tried)
    lost = np.asarray(ended, dtype=float)
    if lost.ndim != 1 or not len(lost) or not ((lost >= 0) & (lost <= 1)).all():
        raise Sim2RealError("shares of attempts that end otherwise must be numbers from 0 to 1")
    if not 0 <= real[0] <= real[1]:
        raise Sim2RealError(f"{real[0]} successes in {real[1]} real attempts is not a rate")
    draws = len(n)
    ends, middles = _arcs(_RATES)
    like = _lowered(_rates(won, n), 1 - lost)
    chance = (draws * like + _UNLIKE / _RATES) / (draws + _UNLIKE)
    if real[1]:
        chance = _told_by(real, chance, middles)
    tails = np.array([0.5 - confidence / 2, 0.5 + confidence / 2])
    up_to = np.append(0.0, chance.cumsum())
    low = ends[np.searchsorted(up_to, tails[0], side="right") - 1]
    median = middles[min(int(np.searchsorted(up_to, 0.5)), _RATES) - 1]
    high = ends[min(int(np.searchsorted(up_to, tails[1])), _RATES)]
    shown_up_to = special.bdtr(np.arange(trials + 1)[:, None], trials, middles) @ chance
    shown = np.searchsorted(shown_up_to, tails).clip(0, trials) / trials
    mean = float(chance @ middles)
    return Prediction(
        mean=mean,
        median=float(median),
        low=float(low),
        high=float(high),
        confidence=confidence,
        trials=trials,
        shown_low=float(shown[0]),
        shown_high=float(shown[1]),
        draws=draws,
        spread=float(np.sqrt(chance @ (middles - mean) ** 2)),
        real=real,
    )


def _several(successes: ArrayLike, tried: ArrayLike) -> tuple[Floats, Floats]:
    """(draws,) successes and episodes of the draws that were tried several times; too few of them
    are a `Sim2RealError`."""
    won, n = np.asarray(successes, dtype=float), np.asarray(tried, dtype=float)
    if won.shape != n.shape or won.ndim != 1 or not ((won >= 0) & (won <= n)).all():
        raise Sim2RealError("successes and episodes must be two lists, one entry a draw")
    if len(won) < _FEWEST_DRAWS:
        raise Sim2RealError(
            f"{len(won)} draws are too few to predict from; {_FEWEST_DRAWS} at least, each named in"
            " the trials' `unit`"
        )
    several = n > 1
    if several.sum() < _FEWEST_DRAWS:
        raise Sim2RealError(
            f"{len(n) - several.sum()} of {len(n)} draws were tried once only: how robots differ"
            " cannot be told from how trials scatter; evaluate with --each 10 or so"
        )
    return won[several], n[several]


def _told_by(real: tuple[int, int], chance: Floats, middles: Floats) -> Floats:
    """(rates,) chances of rates once the robot's own attempts are known, and that something unknown
    may end them."""
    chance = _lowered(chance, _arcs(_UNKNOWN)[1])
    told = special.xlogy(real[0], middles) + special.xlog1py(real[1] - real[0], -middles)
    chance = chance * np.exp(told - told[chance > 0].max())
    return np.asarray(chance / chance.sum())


def check_trials(trials: int) -> None:
    """Refuse a number of real trials that nobody makes."""
    if not 1 <= trials <= _MOST_TRIALS:
        raise Sim2RealError(f"a prediction is about 1 to {_MOST_TRIALS:,} trials, not {trials}")


def counts_of(trials: Sequence[Trial]) -> tuple[Ints, Ints]:
    """(draws,) successes and episodes of each draw among simulated trials; those that do not say
    which draw made their world are left out."""
    tried = Counter(trial.unit for trial in trials if trial.unit)
    won = Counter(trial.unit for trial in trials if trial.success)
    return np.array([won[unit] for unit in tried]), np.array(list(tried.values()))


def _rates(won: Floats, n: Floats) -> Floats:
    """(rates,) chances of the success rate of one robot more."""
    _, middles = _arcs(_RATES)
    cells, count = np.unique(np.stack([won, n], axis=1), axis=0, return_counts=True)
    lost = cells[:, 1] - cells[:, 0]
    likelihood = special.xlogy(cells[:, :1], middles) + special.xlog1py(lost[:, None], -middles)
    likelihood = np.exp(likelihood - likelihood.max(axis=1, keepdims=True))
    laws = _laws()
    explained = np.log(np.maximum(laws @ likelihood.T, 1e-300)) @ count
    weights = np.exp(explained - explained.max())
    return np.asarray(weights @ laws / weights.sum())


def _lowered(chance: Floats, left: Floats) -> Floats:
    """(rates,) chances of the rate times each of the equally likely shares that are `left`."""
    ends, middles = _arcs(_RATES)
    places = np.searchsorted(ends, np.outer(middles, left), side="right") - 1
    return np.bincount(
        places.clip(0, _RATES - 1).ravel(),
        weights=np.repeat(chance / len(left), len(left)),
        minlength=_RATES,
    ).astype(float)


@lru_cache(maxsize=1)
def _laws() -> Floats:
    """(laws, rates) chances of rates under Beta laws, each as likely as the others beforehand.

    Means have the Beta(1/2, 1/2) prior, which is even along the arc; standard deviations are even
    from none to the largest that the mean allows.
    """
    _, means = _arcs(_MEANS)
    share = (np.arange(_SPREADS) + 0.5) / _SPREADS
    size = 1 / share**2 - 1
    a, b = means[:, None] * size, (1 - means)[:, None] * size
    ends, _ = _arcs(_RATES)
    return np.diff(special.betainc(a.reshape(-1, 1), b.reshape(-1, 1), ends), axis=1)


def _arcs(count: int) -> tuple[Floats, Floats]:
    """Ends and middles of so many equal parts of the arc on which every rate is known as well."""
    arc = np.sin(np.pi / 4 * np.arange(2 * count + 1) / count) ** 2
    return arc[::2], arc[1::2]
