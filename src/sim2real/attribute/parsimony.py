"""Which dimensions are off at all: draws of a posterior in which the others are right.

A posterior moves every parameter a little, and where recordings tell only a combination (a mass and
a motor's gain) it moves all of them. A dimension that is right would so get a share of the blame.
Here each dimension is believed to be either right, exactly, or off as its prior says, with equal
chances before the recordings. How much the recordings speak for each set of dimensions being off is
the evidence of the twin refitted with those alone: it pays for a better fit, and charges for every
parameter that would have had room to move and did not. With a Gaussian posterior all these refits,
and their evidence, follow from the one fit of everything (conditionals, and the Savage-Dickey
ratio of posterior and prior density at "right").
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

    'Right' is as in `before`, whose priors are those that the posterior was found with.
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
    sets = coalitions(len(who.names))
    logs = np.array([_log_evidence(mean, covariance, ~inside[of]) for inside in sets])
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
        x = _conditional_draw(mean, covariance, sets[which][of], rng)
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


def _log_evidence(mean: np.ndarray, covariance: np.ndarray, right: np.ndarray) -> float:
    """Log of posterior over prior density where the parameters `right` are at zero."""
    if not right.any():
        return 0.0
    part = covariance[np.ix_(right, right)] + 1e-12 * np.eye(int(right.sum()))
    _, size = np.linalg.slogdet(part)
    return float(-0.5 * size - 0.5 * mean[right] @ np.linalg.solve(part, mean[right]))


def _conditional_draw(
    mean: np.ndarray, covariance: np.ndarray, off: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """(parameters,) a draw with those that are not `off` at zero."""
    x = np.zeros(len(mean))
    if not off.any():
        return x
    middle, spread = mean[off], covariance[np.ix_(off, off)]
    if not off.all():
        across = covariance[np.ix_(off, ~off)]
        part = covariance[np.ix_(~off, ~off)] + 1e-12 * np.eye(int((~off).sum()))
        pull = np.linalg.solve(part, across.T).T
        middle, spread = middle - pull @ mean[~off], spread - pull @ across.T
    values, vectors = np.linalg.eigh(0.5 * (spread + spread.T))
    x[off] = middle + vectors @ (np.sqrt(np.maximum(values, 0.0)) * rng.normal(size=len(middle)))
    return x
