"""What a twin gets wrong, as changes of its parameters from one stretch of motion to the next.

A twin that lacks an effect fits slow motions with one friction and fast ones with another. So each
segment of the logs has parameters of its own, which scatter around those of the fit; how much is
found by expectation maximisation, with the segments taken as linear around the fit. It is nearly
nothing where the twin is right, however noisy the readings are. A policy that is to work on the
robot, not in the twin alone, is trained in worlds that scatter as much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from sim2real.arrays import Floats
from sim2real.identification.most_probable import Fit
from sim2real.identification.posterior import rows_of
from sim2real.params import Empirical, GaussianPosterior
from sim2real.twin import Twin

_FIRST = 0.1
"""Variance that the search begins with, in variances of the prior."""
_ROUNDS = 300
_FEWEST = 4
"""Segments without which nothing is said."""
_ROWS = 512
"""Draws that stand for weighted ones with their scatter."""


def scatter_of(fit: Fit) -> Floats:
    """(fitted, fitted) covariance between segments, in standard deviations of the prior."""
    slopes = fit.weighted_slopes()
    information = np.einsum("psk,qsk->spq", slopes, slopes)
    pulls = -np.einsum("psk,sk->sp", slopes, fit.tempered())
    fitted = slopes.shape[0]
    found = _FIRST * np.eye(fitted)
    if len(pulls) < _FEWEST:
        return np.zeros((fitted, fitted))
    for _ in range(_ROUNDS):
        spread = np.linalg.inv(information + np.linalg.inv(found))
        away = np.einsum("spq,sq->sp", spread, pulls)
        found = (np.einsum("sp,sq->pq", away, away) + spread.sum(axis=0)) / len(pulls)
    return found


def scattered(twin: Twin, names: Sequence[str], scatter: Floats, *, seed: int = 0) -> Twin:
    """The twin with a posterior that has the scatter in it; `names` are those of its rows."""
    posterior = twin.posterior
    assert posterior is not None
    order = [list(names).index(name) for name in posterior.names]
    added = scatter[np.ix_(order, order)]
    if isinstance(posterior, GaussianPosterior):
        whole = np.array(posterior.covariance) + added
        whole = 0.5 * (whole + whole.T)
        return replace(twin, posterior=replace(posterior, covariance=rows_of(whole)))
    ids = torch.arange(_ROWS)
    rows = posterior.sample(seed, worlds=ids, episodes=torch.zeros_like(ids)).numpy()
    rng = np.random.default_rng(seed)
    rows = rows + rng.multivariate_normal(np.zeros(len(order)), added, size=_ROWS, method="eigh")
    bounds = {parameter.name: parameter.bounds for parameter in twin.parameters}
    low, high = np.array([bounds[name] for name in posterior.names]).T
    samples = rows_of(np.clip(rows, low, high))
    return replace(twin, posterior=Empirical(names=posterior.names, samples=samples))
