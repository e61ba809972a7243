"""Model error of a twin, as the scatter of its parameters from segment to segment.

A twin that lacks an effect fits slow motions with one friction and fast ones with another. So each
segment gets its own parameters, which scatter around those of the fit; how much is estimated by
expectation maximisation, with segments linearised around the fit. It is nearly zero if the twin is
right, however noisy the readings are. Policies for the real robot are trained in worlds that
scatter as much.
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

_FIRST_VARIANCE = 0.1
"""Initial variance, in variances of the prior."""
_ROUNDS = 300
_MIN_SEGMENTS = 4
"""Fewest segments for an estimate."""
_DRAWS = 512
"""Draws that replace weighted ones."""


def scatter_of(fit: Fit) -> Floats:
    """(fitted, fitted) covariance between segments, in standard deviations of the prior."""
    slopes = fit.weighted_slopes()
    information = np.einsum("psk,qsk->spq", slopes, slopes)
    pulls = -np.einsum("psk,sk->sp", slopes, fit.tempered())
    fitted = slopes.shape[0]
    found = _FIRST_VARIANCE * np.eye(fitted)
    if len(pulls) < _MIN_SEGMENTS:
        return np.zeros((fitted, fitted))
    for _ in range(_ROUNDS):
        spread = np.linalg.inv(information + np.linalg.inv(found))
        away = np.einsum("spq,sq->sp", spread, pulls)
        found = (np.einsum("sp,sq->pq", away, away) + spread.sum(axis=0)) / len(pulls)
    return found


def scattered(twin: Twin, names: Sequence[str], scatter: Floats, *, seed: int = 0) -> Twin:
    """The twin with the scatter added to its posterior; `names` are those of the scatter's rows."""
    posterior = twin.posterior
    assert posterior is not None
    order = [list(names).index(name) for name in posterior.names]
    added = scatter[np.ix_(order, order)]
    if isinstance(posterior, GaussianPosterior):
        whole = np.array(posterior.covariance) + added
        whole = 0.5 * (whole + whole.T)
        return replace(twin, posterior=replace(posterior, covariance=rows_of(whole)))
    ids = torch.arange(_DRAWS)
    rows = posterior.sample(seed, worlds=ids, episodes=torch.zeros_like(ids)).numpy()
    rng = np.random.default_rng(seed)
    rows = rows + rng.multivariate_normal(np.zeros(len(order)), added, size=_DRAWS, method="eigh")
    bounds = {parameter.name: parameter.bounds for parameter in twin.parameters}
    low, high = np.array([bounds[name] for name in posterior.names]).T
    samples = rows_of(np.clip(rows, low, high))
    return replace(twin, posterior=Empirical(names=posterior.names, samples=samples))
