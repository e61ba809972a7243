"""The posterior of a search: draws around the optimum, weighted by how well they predict.

A recording counts as one observation, whatever its length, and its cost is its negative log
likelihood. That is conservative, since the errors of rows and sensors in one recording are
correlated. The draws are moved to where the weights are, in a few rounds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sim2real.arrays import Floats
from sim2real.identification.cma_es import CmaSearch
from sim2real.identification.posterior import Posterior, gaussian, weights_of
from sim2real.identification.whole_recordings import WholeRecordings

_DRAWS = 160
_ROUNDS = 3
_MIN_EFFECTIVE_SHARE = 0.25
"""Share of effective draws that ends the rounds."""
_MAX_RECORDINGS = 64
"""Recordings that the draws are simulated on; the others count as if they agreed."""
_PROBES, _TRIES = 24, 8
"""Draws, and rounds of them, that measure the width of the posterior."""
_DEGREES_OF_FREEDOM = 5.0
"""Degrees of freedom of the draws: heavier tails than the posterior's."""


def weighed_posterior(
    found: CmaSearch,
    *,
    seed: int = 0,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> Posterior:
    """The posterior around the optimum of a search: a Gaussian as wide as the weighted draws.

    Its mean is the optimum, since the mean of draws that all explain a collision need not do so. If
    too few draws carry the weight (see `effective`), weights are evened out, which widens it.
    """
    problem, rng = found.problem, np.random.default_rng(seed)
    low, high = problem.bounds
    center = found.x
    spread = _sized(found, rng)
    best = (0.0, center[None], np.zeros(1))
    least = 4.0 * len(center)
    for round_ in range(_ROUNDS):
        factor = np.linalg.cholesky(spread)
        heavy = np.sqrt(_DEGREES_OF_FREEDOM / rng.chisquare(_DEGREES_OF_FREEDOM, _DRAWS))[:, None]
        unit = rng.normal(size=(_DRAWS, len(center))) * heavy
        unit[0] = 0.0
        draws = center + unit @ factor.T
        inside = np.all((draws >= low) & (draws <= high), axis=1)
        inside[0] = True
        draws, unit = np.clip(draws[inside], low, high), unit[inside]
        logs = _log_density(problem, draws)
        logs += (
            0.5
            * (_DEGREES_OF_FREEDOM + len(center))
            * np.log1p((unit**2).sum(axis=1) / _DEGREES_OF_FREEDOM)
        )
        _, share = weights_of(logs)
        if share > best[0]:
            best = (share, draws, logs)
        report(round_ + 1, _ROUNDS)
        if share >= _MIN_EFFECTIVE_SHARE:
            break
        # Tempered until enough draws count: a few alone would collapse to a thin cloud.
        weights = _tempered(logs, least=least)
        center = weights @ draws
        off = (draws - center) * np.sqrt(weights)[:, None]
        spread = off.T @ off + 1e-6 * np.eye(len(center))
    share, draws, logs = best
    values = problem.values(draws)
    # The scatter of a few draws would be too narrow.
    weights = _tempered(logs, least=least)
    off = (values - found.values) * np.sqrt(weights)[:, None]
    # A minimum width makes it positive definite.
    covariance = off.T @ off + np.diag((1e-3 * problem.slopes(found.x)) ** 2)
    known = gaussian(problem, found.values, covariance)
    return Posterior(distribution=known, discrepancy=1.0, effective=share)


def _sized(found: CmaSearch, rng: np.random.Generator) -> Floats:
    """The last generation's covariance, scaled so that the cost of its draws is that of a Gaussian.

    A search that stopped early leaves it too wide, a long one too narrow; its shape is right.
    """
    problem = found.problem
    size = float(np.trace(found.spread)) / len(found.x)
    shape = found.spread / size + 1e-3 * np.eye(len(found.x))
    unit = rng.normal(size=(_PROBES, len(found.x))) @ np.linalg.cholesky(shape).T
    floor = -_log_density(problem, found.x[None])[0]
    # A draw of a Gaussian costs half the number of parameters more than its mean.
    for _ in range(_TRIES):
        rise = np.median(-_log_density(problem, found.x + np.sqrt(size) * unit)) - floor
        ratio = 0.5 * len(found.x) / max(rise, 1e-6)
        if 0.5 < ratio < 2.0:
            break
        size *= float(np.clip(ratio, 0.1, 10.0))
    return np.asarray(size * shape)


def _log_density(problem: WholeRecordings, draws: Floats) -> Floats:
    """(n,) log density of the posterior up to a constant; draws (n, fitted) are clipped."""
    inside = np.clip(draws, *problem.bounds)
    return np.asarray(-_surprise(problem, inside) - 0.5 * (inside**2).sum(axis=1))


def _surprise(problem: WholeRecordings, draws: Floats) -> Floats:
    """(n,) negative log likelihood of each draw for all recordings, from those of a few batches."""
    costs: list[Floats] = []
    for batch in range(problem.batches):
        costs.append(problem.costs(draws, batch))
        if sum(part.shape[1] for part in costs) >= _MAX_RECORDINGS:
            break
    mean = np.concatenate(costs, axis=1).mean(axis=1)
    return problem.segments * np.where(np.isfinite(mean), mean, 1e9)


def _tempered(logs: Floats, *, least: float) -> Floats:
    """(n,) weights of draws, evened out until `least` of them count."""
    for heat in 2.0 ** np.arange(24):
        weights, share = weights_of(logs / heat)
        if share * len(logs) >= min(least, 0.5 * len(logs)):
            break
    return weights
