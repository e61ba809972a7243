"""What a fit knows and does not know.

Around the optimum the posterior is a Gaussian (Laplace). Two things are done to keep it honest.
Where the twin cannot explain the logs, residuals are not independent, and the Gaussian is widened
by how much more the segments pull than independent noise would let them: a wrong model does not
give a certain answer. And draws from it are simulated: where their weights are uneven the posterior
is not Gaussian, and becomes the weighted draws themselves, improved round by round.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sim2real.identify.fit import Fit, costs_of
from sim2real.identify.problem import Problem
from sim2real.params import Empirical, GaussianPosterior, JointDistribution

_DRAWS = 256
_ROUNDS = 3
_EVEN = 0.5
"""Share of effective draws from which a Gaussian is taken as it is."""
_ENOUGH = 0.2
"""Share of effective draws with which the weighted draws are trusted."""


@dataclass(frozen=True, kw_only=True)
class Posterior:
    """Beliefs about the fitted parameters after the logs."""

    names: tuple[str, ...]
    mean: np.ndarray
    """(fitted,) in the parameters' units."""
    covariance: np.ndarray
    """(fitted, fitted)."""
    discrepancy: float
    """Factor the variance was widened by, because the twin does not explain the logs; >= 1."""
    effective: float
    """Share of effective draws when the Gaussian was checked; nan where it was not."""
    distribution: JointDistribution

    @property
    def std(self) -> np.ndarray:
        """(fitted,) standard deviations."""
        found: np.ndarray = np.sqrt(np.diag(self.covariance))
        return found


def posterior_of(
    problem: Problem,
    fit: Fit,
    *,
    check: bool = True,
    seed: int = 0,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> Posterior:
    """The posterior around a fit; with `check`, simulated draws say whether it is Gaussian."""
    information = fit.information()
    discrepancy = _discrepancy(fit)
    covariance = np.linalg.inv(information / discrepancy + np.eye(len(fit.x)))
    effective, draws, weights = float("nan"), None, None
    if check:
        effective, draws, weights = _checked(problem, fit, covariance, discrepancy, seed, report)
    scales = problem.scales
    low, high = (problem.values(edge) for edge in problem.bounds)
    if weights is not None and draws is not None and effective < _EVEN:
        values = problem.values(draws)
        mean = weights @ values
        spread = (values - mean) * np.sqrt(weights)[:, None]
        return Posterior(
            names=problem.names,
            mean=mean,
            covariance=spread.T @ spread,
            discrepancy=discrepancy,
            effective=effective,
            distribution=Empirical(
                names=problem.names,
                samples=tuple(tuple(float(v) for v in row) for row in values),
                weights=tuple(float(w) for w in weights),
            ),
        )
    whole = covariance * np.outer(scales, scales)
    whole = 0.5 * (whole + whole.T)
    return Posterior(
        names=problem.names,
        mean=fit.values,
        covariance=whole,
        discrepancy=discrepancy,
        effective=effective,
        distribution=GaussianPosterior(
            names=problem.names,
            mean=tuple(float(v) for v in fit.values),
            covariance=tuple(tuple(float(v) for v in row) for row in whole),
            low=tuple(float(v) for v in low),
            high=tuple(float(v) for v in high),
        ),
    )


def _discrepancy(fit: Fit) -> float:
    """How much more the segments disagree about the parameters than independent noise would.

    The mean, over directions the data tells, of the variance of the segments' pulls against the
    information: one where the model is right, more where errors go together within a segment.
    """
    pulls = np.einsum("psk,sk->sp", fit.weighted_slopes(), fit.tempered())
    information = fit.information()
    values, vectors = np.linalg.eigh(information)
    told = values > 1.0  # more than the prior
    if len(pulls) < 3 or not told.any():
        return 1.0
    along = (pulls - pulls.mean(axis=0)) @ vectors[:, told]
    ratios = (along**2).sum(axis=0) * len(pulls) / (len(pulls) - 1) / values[told]
    return max(1.0, float(np.mean(ratios)))


def _checked(
    problem: Problem,
    fit: Fit,
    covariance: np.ndarray,
    discrepancy: float,
    seed: int,
    report: Callable[[int, int], None],
) -> tuple[float, np.ndarray, np.ndarray]:
    """Share of effective draws of the first Gaussian; draws and weights of the best round."""
    rng = np.random.default_rng(seed)
    low, high = problem.bounds
    center, spread = fit.x, covariance
    first, best = float("nan"), (0.0, fit.x[None], np.ones(1))
    for round_ in range(_ROUNDS):
        factor = np.linalg.cholesky(spread + 1e-12 * np.eye(len(center)))
        # Student's tails, so that no draw of the posterior is missed by much.
        heavy = np.sqrt(5.0 / rng.chisquare(5.0, _DRAWS))[:, None]
        unit = rng.normal(size=(_DRAWS, len(center))) * heavy
        draws = center + unit @ factor.T
        inside = ((draws >= low) & (draws <= high)).all(axis=1)
        draws, unit = draws[inside], unit[inside]
        if len(draws) < 16:
            break
        data, prior = costs_of(problem, draws)
        target = -data / discrepancy - prior
        proposal = -0.5 * (5.0 + len(center)) * np.log1p((unit**2).sum(axis=1) / 5.0)
        logs = target - proposal
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        share = float(1.0 / (weights**2).sum() / len(weights))
        if round_ == 0:
            first = share
        if share > best[0]:
            best = (share, draws, weights)
        report(round_ + 1, _ROUNDS)
        if first >= _EVEN or share >= _ENOUGH:
            break
        center = weights @ draws
        off = (draws - center) * np.sqrt(weights)[:, None]
        spread = off.T @ off + 0.05 * spread
    return first, best[1], best[2]
