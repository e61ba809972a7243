"""How often a robot will succeed, before it is switched on.

Worlds drawn from a twin's posterior are robots that the real one may be. Each draw is ONE robot
with its own success rate, and the real robot is one more. So the rates of many draws give the
distribution of the real one's rate, and its trials scatter around that rate. An average over all
draws would look far too certain: it is the success of a fleet, not of a robot.

A twin does not contain everything that ends a trial. Known other causes, such as packets that the
robot's link loses, lower the rates; real trials, once there are some, show how much else does.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from sim2real.arrays import Floats
from sim2real.errors import Sim2RealError
from sim2real.intervals import check_confidence
from sim2real.plain import PlainData

_MIN_DRAWS = 10
"""Fewest draws with several episodes each."""
_MAX_TRIALS = 10_000
"""Most real trials to predict."""
_MEANS, _SPREADS, _RATES = 200, 24, 256
"""Grid points of the distributions' means and spreads, and of the robots' rates."""
_WEIGHT_OF_ANY_RATE = 0.5
"""Weight, in draws, of a robot unlike all of them: few draws miss the ends of the range."""
_ENDED_SHARES = 64
"""Grid points of the share of trials that unknown causes end."""


@dataclass(frozen=True, kw_only=True)
class Prediction(PlainData):
    """The success rate of one robot that is yet to be tried."""

    mean: float
    median: float
    """Always within the interval, unlike the mean: the weight of a robot unlike all draws may pull
    the mean out of a narrow interval."""
    low: float
    """Lower end of the interval of the robot's success rate."""
    high: float
    confidence: float
    trials: int
    """Number of real trials that are predicted."""
    shown_low: float
    """Lower end of the interval of the rate that those trials will show."""
    shown_high: float
    draws: int
    spread: float
    """Standard deviation of the success rate from robot to robot."""
    real: tuple[int, int] = (0, 0)
    """Successes and trials of the real robot that it uses."""

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
    are left out. Robots' rates follow a Beta distribution with unknown mean and spread: the result
    averages over all of them, each weighted by how well it explains the episodes. So draws that all
    succeeded do not promise a robot that always succeeds.

    `ended` (k,) are equally likely shares of trials that end for a known reason that is not
    simulated. `real` are successes and trials of the robot with the same policy; if there are any,
    a further share of trials may fail for unknown reasons, and they show how large it is. So a
    simulation that always succeeds makes no robot better than its trials show.
    """
    check_confidence(confidence)
    check_trials(trials)
    won, n = _several(successes, tried)
    lost = np.asarray(ended, dtype=float)
    if lost.ndim != 1 or not len(lost) or not ((lost >= 0) & (lost <= 1)).all():
        raise Sim2RealError("`ended` must be a list of shares of trials, each from 0 to 1")
    if not 0 <= real[0] <= real[1]:
        raise Sim2RealError(f"{real[0]} successes in {real[1]} real trials is not a rate")
    draws = len(n)
    ends, middles = _arcs(_RATES)
    like = _lowered(_rates(won, n), 1 - lost)
    chance = (draws * like + _WEIGHT_OF_ANY_RATE / _RATES) / (draws + _WEIGHT_OF_ANY_RATE)
    if real[1]:
        chance = _given(real, chance, middles)
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
        raise Sim2RealError("successes and episodes must be two lists, one entry per draw")
    if len(won) < _MIN_DRAWS:
        raise Sim2RealError(
            f"{len(won)} draws are too few to predict from: at least {_MIN_DRAWS} are needed,"
            " each named in the trials' `unit`"
        )
    several = n > 1
    if several.sum() < _MIN_DRAWS:
        raise Sim2RealError(
            f"{len(n) - several.sum()} of {len(n)} draws were tried only once, which cannot"
            " separate differences between robots from chance; evaluate with --each 10 or more"
        )
    return won[several], n[several]


def _given(real: tuple[int, int], chance: Floats, middles: Floats) -> Floats:
    """(rates,) probabilities given the robot's own trials, some of which unknown causes may end."""
    chance = _lowered(chance, _arcs(_ENDED_SHARES)[1])
    logs = special.xlogy(real[0], middles) + special.xlog1py(real[1] - real[0], -middles)
    chance = chance * np.exp(logs - logs[chance > 0].max())
    return np.asarray(chance / chance.sum())


def check_trials(trials: int) -> None:
    """Refuse an impractical number of real trials."""
    if not 1 <= trials <= _MAX_TRIALS:
        raise Sim2RealError(f"--trials must be from 1 to {_MAX_TRIALS:,}, not {trials}")


def _rates(won: Floats, n: Floats) -> Floats:
    """(rates,) probabilities of the success rate of one more robot."""
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
    """(rates,) probabilities of the rate times each of the equally likely shares `left`."""
    ends, middles = _arcs(_RATES)
    places = np.searchsorted(ends, np.outer(middles, left), side="right") - 1
    return np.bincount(
        places.clip(0, _RATES - 1).ravel(),
        weights=np.repeat(chance / len(left), len(left)),
        minlength=_RATES,
    ).astype(float)


@lru_cache(maxsize=1)
def _laws() -> Floats:
    """(laws, rates) probabilities of rates under Beta distributions, all equally likely a priori.

    Means have the Beta(1/2, 1/2) prior, which is uniform along the arc; standard deviations are
    uniform from 0 to the largest that the mean allows.
    """
    _, means = _arcs(_MEANS)
    share = (np.arange(_SPREADS) + 0.5) / _SPREADS
    size = 1 / share**2 - 1
    a, b = means[:, None] * size, (1 - means)[:, None] * size
    ends, _ = _arcs(_RATES)
    return np.diff(special.betainc(a.reshape(-1, 1), b.reshape(-1, 1), ends), axis=1)


def _arcs(count: int) -> tuple[Floats, Floats]:
    """Ends and middles of `count` equal parts of the arcsine scale of rates."""
    arc = np.sin(np.pi / 4 * np.arange(2 * count + 1) / count) ** 2
    return arc[::2], arc[1::2]
