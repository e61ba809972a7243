"""The posterior of a fit.

It is a Gaussian around the optimum (Laplace), corrected in three ways. Where the twin does not
explain the logs, residuals are correlated, and the Gaussian is widened by how much more the
segments disagree than independent noise allows. Derivatives over small steps mistake the roughness
of a simulation for information, so the cost is evaluated over steps as long as the Gaussian is
wide, along its own axes, and corrects its mean and widths. And draws from it are simulated: if
their weights are uneven, the posterior is not Gaussian and becomes the weighted draws themselves,
improved in a few rounds, if enough of them count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sim2real.arrays import Floats
from sim2real.identification.most_probable import Fit, costs_of
from sim2real.params import Empirical, GaussianPosterior, JointDistribution
from sim2real.replay import LeastSquares, Unknowns

_STEP = 1.5
"""Steps along the axes of the Gaussian, in its standard deviations."""
_MAX_WIDENING = 25.0
"""Largest factor by which such a step may widen a variance."""
_MAX_CORRECTIONS = 5
"""Most rounds of such steps, each from where the one before led."""
_MIN_DECREASE = 0.2
"""Decrease of the cost that is worth another round."""
_CHECK_DRAWS = 40
"""Draws that check the Gaussian."""
_DRAWS = 128
_MAX_ROUNDS = 2
"""Rounds of draws, if the check fails."""
_MIN_GAUSSIAN_SHARE = 0.5
"""Share of effective draws above which the Gaussian is accepted."""
_MIN_EFFECTIVE_SHARE = 0.2
"""Share of effective draws that ends the rounds."""
_MIN_EFFECTIVE_DRAWS = 60
"""Fewest effective draws of a posterior; with fewer the Gaussian is kept."""


@dataclass(frozen=True, kw_only=True)
class Posterior:
    """The joint distribution of the fitted parameters, given the logs."""

    distribution: JointDistribution
    discrepancy: float
    """Factor by which the variance was widened because the twin does not explain the logs; >= 1."""
    effective: float
    """Share of effective draws when the Gaussian was checked; nan if it was not."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the fitted parameters."""
        return self.distribution.names

    @property
    def mean(self) -> Floats:
        """(fitted,) in the parameters' units."""
        return self.distribution.moments()[0]

    @property
    def covariance(self) -> Floats:
        """(fitted, fitted)."""
        return self.distribution.moments()[1]

    @property
    def std(self) -> Floats:
        """(fitted,) standard deviations."""
        return np.sqrt(np.diag(self.covariance))


def gaussian(unknowns: Unknowns, mean: Floats, covariance: Floats) -> GaussianPosterior:
    """A Gaussian between the bounds of the unknowns, in their units."""
    low, high = (unknowns.values(edge) for edge in unknowns.bounds)
    return GaussianPosterior(
        names=unknowns.names,
        mean=tuple(mean.tolist()),
        covariance=rows_of(0.5 * (covariance + covariance.T)),
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
    )


def posterior_of(
    fit: Fit,
    *,
    check: bool = True,
    seed: int = 0,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> Posterior:
    """The posterior of a fit; with `check`, simulated draws test whether it is Gaussian."""
    problem, information = fit.problem, fit.information()
    discrepancy = discrepancy_of(fit)
    covariance = np.asarray(np.linalg.inv(information / discrepancy + np.eye(len(fit.x))), float)
    x, effective, improved = fit.x, float("nan"), None
    if check:
        x, covariance = _corrected(problem, x, covariance, discrepancy)
        sampler = _Sampler(problem, discrepancy, np.random.default_rng(seed))
        _, _, effective = sampler.round(x, covariance, count=_CHECK_DRAWS, tails=np.inf)
        report(1, 1 + _MAX_ROUNDS)
        if effective < _MIN_GAUSSIAN_SHARE:
            improved = sampler.improved(x, covariance, report)
        report(1 + _MAX_ROUNDS, 1 + _MAX_ROUNDS)
    found: JointDistribution
    if improved is not None:
        draws, weights = improved
        samples = rows_of(problem.values(draws))
        found = Empirical(names=problem.names, samples=samples, weights=tuple(weights.tolist()))
    else:
        scales = np.outer(problem.scales, problem.scales)
        found = gaussian(problem, problem.values(x), covariance * scales)
    return Posterior(distribution=found, discrepancy=discrepancy, effective=effective)


def weights_of(logs: Floats) -> tuple[Floats, float]:
    """Weights (n,) of draws from their logarithms up to a constant, and the effective share."""
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    return weights, float(1.0 / (weights**2).sum() / len(weights))


def rows_of(matrix: Floats) -> tuple[tuple[float, ...], ...]:
    """The rows of a matrix, as distributions hold them."""
    return tuple(tuple(row) for row in matrix.tolist())


def discrepancy_of(fit: Fit) -> float:
    """How much more the segments disagree about the parameters than independent noise allows.

    The mean, over directions that the data determine, of the variance of the segments' scores over
    the information: 1 if the model is right, more if errors in a segment are correlated.
    """
    pulls = np.einsum("psk,sk->sp", fit.weighted_slopes(), fit.tempered())
    information = fit.information()
    values, vectors = np.linalg.eigh(information)
    known = values > 1.0  # more than from the prior
    if len(pulls) < 3 or not known.any():
        return 1.0
    along = (pulls - pulls.mean(axis=0)) @ vectors[:, known]
    ratios = (along**2).sum(axis=0) * len(pulls) / (len(pulls) - 1) / values[known]
    return max(1.0, float(np.mean(ratios)))


def _corrected(
    problem: LeastSquares, x: Floats, covariance: Floats, discrepancy: float
) -> tuple[Floats, Floats]:
    """(x, covariance) corrected by the cost over steps as long as the Gaussian is wide."""
    low, high = problem.bounds
    for _ in range(_MAX_CORRECTIONS):
        variances, axes = np.linalg.eigh(covariance)
        steps = _STEP * (axes * np.sqrt(np.maximum(variances, 1e-18))).T
        points = np.concatenate([x[None], x + steps, x - steps])
        data, prior = costs_of(problem, np.clip(points, low, high))
        cost = data / discrepancy + prior
        up, down = np.split(cost[1:] - cost[0], 2)
        # Along an axis that a bound cuts off, there are only the derivatives.
        whole = (points == np.clip(points, low, high)).all(axis=1)[1:].reshape(2, -1).all(axis=0)
        curve = np.where(
            whole, np.clip(up + down, _STEP**2 / _MAX_WIDENING, _STEP**2 * 2.0), _STEP**2
        )
        middle = np.where(whole, np.clip(0.5 * (down - up) / curve, -1.0, 1.0), 0.0)
        spread = (axes * (variances * _STEP**2 / curve)) @ axes.T
        covariance = 0.5 * (spread + spread.T)
        better = np.clip(x + middle @ steps, low, high)
        tried = np.stack([better, np.clip(points[np.argmin(cost)], low, high)])
        data, prior = costs_of(problem, tried)
        ends = data / discrepancy + prior
        gained = cost[0] - ends.min()
        if gained > 0:
            x = tried[np.argmin(ends)]
        if gained < _MIN_DECREASE and (curve > 0.5 * _STEP**2).all():
            break
    return x, covariance


class _Sampler:
    """Weighted draws of the posterior."""

    def __init__(self, problem: LeastSquares, discrepancy: float, rng: np.random.Generator) -> None:
        self._problem, self._discrepancy, self._rng = problem, discrepancy, rng

    def round(
        self, center: Floats, spread: Floats, *, count: int, tails: float
    ) -> tuple[Floats, Floats, float]:
        """(draws, weights, effective share) from a Gaussian, or from Student's t with `tails`."""
        low, high = self._problem.bounds
        factor = np.linalg.cholesky(spread + 1e-12 * np.eye(len(center)))
        unit = self._rng.normal(size=(count, len(center)))
        if np.isfinite(tails):
            unit *= np.sqrt(tails / self._rng.chisquare(tails, count))[:, None]
        draws = center + unit @ factor.T
        inside = ((draws >= low) & (draws <= high)).all(axis=1)
        draws, squares = draws[inside], (unit[inside] ** 2).sum(axis=1)
        if not len(draws):
            return draws, np.zeros(0), 0.0
        data, prior = costs_of(self._problem, draws)
        proposal = -0.5 * squares
        if np.isfinite(tails):
            proposal = -0.5 * (tails + len(center)) * np.log1p(squares / tails)
        logs = -data / self._discrepancy - prior - proposal
        return draws, *weights_of(logs)

    def improved(
        self, center: Floats, spread: Floats, report: Callable[[int, int], None]
    ) -> tuple[Floats, Floats] | None:
        """(draws, weights) of the best round, each started from the one before; None if too few."""
        most, best = float(_MIN_EFFECTIVE_DRAWS), None
        for round_ in range(_MAX_ROUNDS):
            # Heavier tails than the posterior's keep the weights bounded.
            draws, weights, share = self.round(center, spread, count=_DRAWS, tails=5.0)
            if share * len(draws) > most:
                most, best = share * len(draws), (draws, weights)
            report(2 + round_, 1 + _MAX_ROUNDS)
            if share >= _MIN_EFFECTIVE_SHARE or len(draws) < _MIN_EFFECTIVE_DRAWS:
                break
            center = weights @ draws
            off = (draws - center) * np.sqrt(weights)[:, None]
            spread = off.T @ off + 0.05 * spread
        return best
