"""Which dimensions are off at all: draws of a posterior in which the others are right.

A posterior moves every parameter a little, and where recordings tell only a combination (a mass and
a motor's gain) it moves all of them. A dimension that is right would so get a share of the blame.
Here each dimension is believed to be either right, up to a small part of its prior's width, or off
as its prior says, with equal chances before the recordings. How much the recordings speak for each
set of dimensions being off is the evidence of the twin refitted with those: it pays for a better
fit, and charges for every parameter that would have had room to move and did not. With a Gaussian
posterior all these refits, and their evidence, follow from the one fit of everything.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from sim2real.attribute.attribution import Dimensions
from sim2real.attribute.shapley import coalitions
from sim2real.gap.sensitivity import best_guess, prior_std
from sim2real.params import GaussianPosterior, JointDistribution
from sim2real.twin import Twin

_RIGHT = 0.1
"""Spread of what is right, against that of its prior: nothing is right to the last digit."""
_LEAST = 1e-4
"""Standard deviation, against that of the prior, below which no posterior is believed to be."""
_DRAWS = 4096
"""Draws behind the moments of a posterior that is not given by them."""


@dataclass(frozen=True, kw_only=True)
class Plausible:
    """Draws of who is off, and how far."""

    values: np.ndarray
    """(draws, parameters) values of all parameters."""
    off: np.ndarray
    """(draws, dimensions) bool: which dimensions are off in each draw."""
    chance: np.ndarray
    """(dimensions,) probability that each dimension is off."""


def plausible(
    before: Twin, posterior: JointDistribution, who: Dimensions, *, draws: int, seed: int = 0
) -> Plausible:
    """Draws of the identified values in which a dimension may be right; see the module.

    'Right' is as in `before`, whose priors are those that the posterior was found with; a draw has
    it exactly there.
    """
    base = best_guess(before)
    columns = np.array([column for mine in who.columns for column in mine])
    parameters = [before.parameters[column] for column in columns]
    scales = np.array([prior_std(parameter) for parameter in parameters])
    order = [posterior.names.index(parameter.name) for parameter in parameters]
    mean, covariance = _moments(posterior)
    mean = (mean[order] - base[columns]) / scales
    covariance = covariance[np.ix_(order, order)] / np.outer(scales, scales)
    of = np.repeat(np.arange(len(who.names)), [len(mine) for mine in who.columns])
    precision = np.linalg.inv(covariance + _LEAST**2 * np.eye(len(mean)))
    pull = precision @ mean
    sets = coalitions(len(who.names))
    logs = np.array([_log_evidence(precision, pull, ~inside[of]) for inside in sets])
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    rng = np.random.default_rng(seed)
    # Evenly spaced, so that chances of one half give half of the draws.
    levels = (np.arange(draws) + rng.uniform()) / draws
    chosen = np.minimum(np.searchsorted(np.cumsum(weights), levels), len(sets) - 1)
    rng.shuffle(chosen)
    low, high = np.array([parameter.bounds for parameter in parameters]).T
    values = np.repeat(base[None], draws, axis=0)
    for row, which in enumerate(chosen):
        x = _draw(precision, pull, sets[which][of], rng)
        values[row, columns] = np.clip(base[columns] + scales * x, low, high)
    return Plausible(values=values, off=sets[chosen], chance=weights @ sets)


def _moments(posterior: JointDistribution) -> tuple[np.ndarray, np.ndarray]:
    """(mean, covariance) of a posterior."""
    if isinstance(posterior, GaussianPosterior):
        return np.array(posterior.mean), np.array(posterior.covariance)
    rows = posterior.sample(
        0, worlds=torch.arange(_DRAWS), episodes=torch.zeros(_DRAWS, dtype=torch.int64)
    ).numpy()
    return rows.mean(axis=0), np.atleast_2d(np.cov(rows.T))


def _log_evidence(precision: np.ndarray, pull: np.ndarray, right: np.ndarray) -> float:
    """Log evidence if the parameters `right` have a prior that much narrower, but for a constant.

    `precision` and `pull` (precision times mean) are of the posterior under priors of width one.
    """
    narrower = np.where(right, 1 / _RIGHT**2 - 1.0, 0.0)
    whole = precision + np.diag(narrower)
    _, size = np.linalg.slogdet(whole)
    before = int(right.sum()) * np.log(_RIGHT)
    return float(0.5 * pull @ np.linalg.solve(whole, pull) - 0.5 * size - before)


def _draw(
    precision: np.ndarray, pull: np.ndarray, off: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """(parameters,) a draw with those that are not `off` at zero."""
    x = np.zeros(len(pull))
    if off.any():
        values, vectors = np.linalg.eigh(precision[np.ix_(off, off)])
        middle = vectors @ (vectors.T @ pull[off] / values)
        x[off] = middle + vectors @ (rng.normal(size=len(values)) / np.sqrt(values))
    return x
