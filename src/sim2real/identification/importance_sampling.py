"""The posterior of a search: draws around what was found, weighed by how well they predict.

A recording counts as one observation, whatever its length: what it costs is its surprise. That is
cautious, since rows and sensors of one trajectory go wrong together, and it is what the number of
independent recordings can carry. The draws are moved to where the weights are, in a few rounds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sim2real.arrays import Floats
from sim2real.identification.cma_es import CmaSearch
from sim2real.identification.posterior import Posterior, weights_of
from sim2real.identification.whole_recordings import WholeRecordings

_DRAWS = 160
_ROUNDS = 3
_ENOUGH = 0.25
"""Share of effective draws from which no further round is needed."""
_MOST = 64
"""Recordings that the draws are compared on; the others count by their number."""
_PROBES, _TRIES = 24, 8
"""Draws that measure how far to look, and how often they may."""
_TAILS = 5.0
"""Degrees of freedom of the draws: heavier tails than what they should find."""


def weighed_posterior(
    problem: WholeRecordings,
    found: CmaSearch,
    *,
    seed: int = 0,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> Posterior:
    """The posterior around what a search found: a Gaussian as wide as the weighted draws.

    Its mean is what was found, since a mean of draws that all explain a collision need not. Where
    too few draws carry the weight (`effective` says so), weights are evened out, which widens it.
    """
    rng = np.random.default_rng(seed)
    low, high = problem.bounds
    center = found.x
    spread = _sized(problem, found, rng)
    best = (0.0, center[None], np.zeros(1))
    least = 4.0 * len(center)
    for round_ in range(_ROUNDS):
        factor = np.linalg.cholesky(spread)
        heavy = np.sqrt(_TAILS / rng.chisquare(_TAILS, _DRAWS))[:, None]
        unit = rng.normal(size=(_DRAWS, len(center))) * heavy
        unit[0] = 0.0
        draws = center + unit @ factor.T
        inside = np.all((draws >= low) & (draws <= high), axis=1)
        inside[0] = True
        draws, unit = np.clip(draws[inside], low, high), unit[inside]
        logs = _log_density(problem, draws)
        logs += 0.5 * (_TAILS + len(center)) * np.log1p((unit**2).sum(axis=1) / _TAILS)
        _, share = weights_of(logs)
        if share > best[0]:
            best = (share, draws, logs)
        report(round_ + 1, _ROUNDS)
        if share >= _ENOUGH:
            break
        # Tempered until enough draws speak: a few alone would make a thin cloud of themselves.
        weights = _tempered(logs, least=least)
        center = weights @ draws
        off = (draws - center) * np.sqrt(weights)[:, None]
        spread = off.T @ off + 1e-6 * np.eye(len(center))
    share, draws, logs = best
    values = problem.values(draws)
    # Where few draws speak, their scatter is too narrow to be believed.
    weights = _tempered(logs, least=least)
    off = (values - found.values) * np.sqrt(weights)[:, None]
    # Never narrower than a draw can tell apart, so that it is a covariance.
    covariance = off.T @ off + np.diag((1e-3 * problem.slopes(found.x)) ** 2)
    return Posterior.gaussian(problem, found.values, covariance, discrepancy=1.0, effective=share)


def _sized(problem: WholeRecordings, found: CmaSearch, rng: np.random.Generator) -> Floats:
    """The last generation's covariance, in the size that makes its draws as likely as they should.

    A search that was stopped early leaves it too wide, one that went on too narrow; its shape is
    that of the cost.
    """
    size = float(np.trace(found.spread)) / len(found.x)
    shape = found.spread / size + 1e-3 * np.eye(len(found.x))
    unit = rng.normal(size=(_PROBES, len(found.x))) @ np.linalg.cholesky(shape).T
    floor = -_log_density(problem, found.x[None])[0]
    # Half the number of parameters is what a draw of a Gaussian costs more than its middle.
    for _ in range(_TRIES):
        rise = np.median(-_log_density(problem, found.x + np.sqrt(size) * unit)) - floor
        ratio = 0.5 * len(found.x) / max(rise, 1e-6)
        if 0.5 < ratio < 2.0:
            break
        size *= float(np.clip(ratio, 0.1, 10.0))
    return np.asarray(size * shape)


def _log_density(problem: WholeRecordings, draws: Floats) -> Floats:
    """(n,) log of the posterior's density, but for a constant; draws (n, fitted) are clipped."""
    inside = np.clip(draws, *problem.bounds)
    return np.asarray(-_surprise(problem, inside) - 0.5 * (inside**2).sum(axis=1))


def _surprise(problem: WholeRecordings, draws: Floats) -> Floats:
    """(n,) how much all recordings speak against each draw, from those of a few batches."""
    costs: list[Floats] = []
    for batch in range(problem.batches):
        costs.append(problem.costs(draws, batch))
        if sum(part.shape[1] for part in costs) >= _MOST:
            break
    mean = np.concatenate(costs, axis=1).mean(axis=1)
    return problem.segments * np.where(np.isfinite(mean), mean, 1e9)


def _tempered(logs: Floats, *, least: float) -> Floats:
    """(n,) weights of draws, evened out until so many of them count."""
    for heat in 2.0 ** np.arange(24):
        weights, share = weights_of(logs / heat)
        if share * len(logs) >= min(least, 0.5 * len(logs)):
            break
    return weights
