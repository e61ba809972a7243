"""Prediction-powered inference: many simulated outcomes make a few real ones go further.

Each real trial has a prediction: how often simulation succeeds under the same condition. Many more
conditions were simulated and never tried. Real success is the mean of the real outcomes, corrected
by how easy the tried conditions were for the simulation,

    success = mean(real) - weight * (mean(predicted) - mean(simulated)),

which is unbiased for any weight, whatever the simulation is worth; the weight that makes it
narrowest is the slope of outcomes on predictions (PPI++ of Angelopoulos, Duchi and Zrnic, 2023). A
simulation that is off by a constant costs nothing, and one that knows nothing gets no weight.

With ten or twenty real trials the normal approximation of that paper misses too often: trials may
agree with their predictions by chance, and success near one leaves no failures to see. So
correlation and slope are estimated with one more pair, spread evenly over success and failure at
one standard deviation below and above the mean prediction, which adds no correlation; and the
interval is Wilson's for the number of trials that would be worth as much without the simulation. It
is Wilson's own where the predictions do not help.

Real trials of one condition are correlated, so conditions are what counts, each with its share of
successes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sim2real.arrays import Floats
from sim2real.errors import Sim2RealError
from sim2real.evaluation.trial import Trial
from sim2real.intervals import Rate, clustered, score_interval, worth_of
from sim2real.plain import PlainData

_CORNERS = 1.0
"""Trials that the four added corners are worth; with less, coverage is too low at ten trials."""
_MIN_REAL = 5
"""Fewest real conditions."""


@dataclass(frozen=True, kw_only=True)
class PoweredRate(PlainData, also=("narrowing",)):
    """Real success from few real and many simulated trials."""

    value: float
    low: float
    high: float
    confidence: float
    weight: float
    """How far the simulation is trusted; 0 for not at all."""
    correlation: float
    """Of outcomes and predictions, shrunk a little towards 0."""
    worth: float
    """Real trials that would be worth as much without the simulation."""
    alone: Rate
    """The rate from the real trials alone, with its Wilson interval; by condition if conditions
    were tried several times."""
    n_simulated: int

    @property
    def narrowing(self) -> float:
        """Width of the interval, relative to that of the real trials alone."""
        return (self.high - self.low) / (self.alone.high - self.alone.low)

    def __str__(self) -> str:
        return (
            f"{100 * self.value:.1f} % [{100 * self.low:.1f}, {100 * self.high:.1f}], worth"
            f" {self.worth:.0f} real trials"
        )


def powered_rate(
    real: ArrayLike,
    predicted: ArrayLike,
    simulated: ArrayLike,
    *,
    tried: ArrayLike | None = None,
    confidence: float = 0.95,
) -> PoweredRate:
    """Real success rate from `real` outcomes (n,), each with its prediction in `predicted` (n,),
    and `simulated` predictions (N,) of other conditions.

    Predictions are success rates from 0 to 1; outcomes are 0 or 1, or the successes in `tried` (n,)
    trials of each condition. The tried conditions must have been chosen in the same way as the
    simulated ones, and no prediction may have been fitted to the real outcomes.
    """
    won = np.asarray(real, dtype=float)
    times = np.ones_like(won) if tried is None else np.asarray(tried, dtype=float)
    y, f, others = won / times, np.asarray(predicted, dtype=float), np.asarray(simulated, float)
    n, many = len(y), len(others)
    if n < _MIN_REAL or many < n:
        raise Sim2RealError(
            f"{n} real and {many} simulated conditions are too few: at least {_MIN_REAL} real ones"
            " and more simulated ones are needed"
        )
    alone = clustered(won, times, confidence=confidence)
    # In standard deviations from the mean of all simulated conditions.
    spread = float(others.std())
    u = (f - others.mean()) / spread if spread > 0 else np.zeros(n)
    slope, r = _with_corners(y, u)
    share = many / (n + many)
    weight = max(0.0, slope) * share
    left = 1.0 - share * r * r if weight > 0 else 1.0
    value = float(np.clip(y.mean() - weight * u.mean(), 0.0, 1.0))
    worth = worth_of(won, times) / left
    low, high = score_interval(value, worth, confidence=confidence)
    return PoweredRate(
        value=value,
        low=low,
        high=high,
        confidence=confidence,
        weight=weight / spread if spread > 0 else 0.0,
        correlation=r,
        worth=worth,
        alone=alone,
        n_simulated=many,
    )


def _with_corners(y: Floats, u: Floats) -> tuple[float, float]:
    """Slope and correlation of outcomes on standardised predictions, corners included."""
    weights = np.append(np.ones(len(y)), [_CORNERS / 4] * 4)
    y, u = np.append(y, [0.0, 0.0, 1.0, 1.0]), np.append(u, [-1.0, 1.0, -1.0, 1.0])
    both = np.cov(y, u, aweights=weights, ddof=0)
    return float(both[0, 1] / both[1, 1]), float(both[0, 1] / np.sqrt(both[0, 0] * both[1, 1]))


def of_trials(
    real: Sequence[Trial], simulated: Sequence[Trial], *, confidence: float = 0.95
) -> PoweredRate:
    """Real success from trials of one policy; a condition's prediction is how often simulation
    succeeded under it.

    Real trials whose condition was not simulated are a `Sim2RealError`: leaving them out would be a
    selection.
    """
    predicted, outcomes = _by_condition(simulated), _by_condition(real)
    missing = [trial.condition for trial in real if trial.condition not in predicted]
    if missing:
        noted = f"{missing[0]!r}" if missing[0] else "none"
        known = f", simulated: {next(iter(predicted))!r}" if predicted else ""
        raise Sim2RealError(
            f"{len(missing)} of {len(real)} real trials have conditions that were not simulated"
            f" (recorded: {noted}{known}); give trials that start alike the same name in the column"
            " `condition` of both files, or in a lake by a label: note 'condition: NAME'"
        )
    return powered_rate(
        [sum(found) for found in outcomes.values()],
        [float(np.mean(predicted[name])) for name in outcomes],
        [float(np.mean(found)) for name, found in predicted.items() if name not in outcomes],
        tried=[len(found) for found in outcomes.values()],
        confidence=confidence,
    )


def _by_condition(trials: Sequence[Trial]) -> dict[str, list[bool]]:
    """Outcomes by condition, of the trials that have one."""
    found: dict[str, list[bool]] = defaultdict(list)
    for trial in trials:
        if trial.condition:
            found[trial.condition].append(trial.success)
    return dict(found)
