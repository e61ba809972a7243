"""The best a twin can do when only some of its parameters may move."""

from __future__ import annotations

import numpy as np

from sim2real.arrays import Bools, Floats
from sim2real.identification import costs_of, tempered, weight
from sim2real.replay import LeastSquares

_STEPS = 6
"""Gauss-Newton steps."""
_FIRST_DAMPING = 1e-2
"""Initial damping, relative to the information on each parameter."""


def refits(problem: LeastSquares, free: Bools, *, begin: Floats) -> Floats:
    """(n, fitted) the best fits, each with the parameters `free` (n, fitted) bool; others at zero.

    In the problem's units. Its starts and noise stay as they are, so that the errors of different
    refits compare. Each starts from `begin` (fitted,), or from the center
    if that is better, and includes the prior, as a fit does.
    """
    low, high = problem.bounds
    points = np.where(free, np.clip(begin, low, high), 0.0)
    costs = np.add(*costs_of(problem, points))
    at_center = np.add(*costs_of(problem, np.zeros((1, points.shape[1]))))[0]
    points[costs > at_center], costs = 0.0, np.minimum(costs, at_center)
    damping = np.full(len(points), _FIRST_DAMPING)
    for _ in range(_STEPS):
        tried = points.copy()
        for k in np.flatnonzero(free.any(axis=1)):
            residual, slopes = problem.linearised(points[k])
            mine = slopes[free[k]] * weight(residual)
            tried[k, free[k]] += _step(tempered(residual), mine, points[k, free[k]], damping[k])
        tried = np.clip(tried, low, high)
        after = np.add(*costs_of(problem, tried))
        better = after < costs
        points, costs = np.where(better[:, None], tried, points), np.where(better, after, costs)
        damping = np.where(better, damping / 5, damping * 8)
    return points


def _step(residual: Floats, slopes: Floats, x: Floats, damping: float) -> Floats:
    """(free,) a damped Gauss-Newton step."""
    flat = slopes.reshape(len(slopes), -1)
    normal = flat @ flat.T + np.eye(len(flat))
    right = -(flat @ residual.ravel()) - x
    found = np.linalg.solve(normal + damping * np.diag(np.diag(normal)), right)
    return np.asarray(found, float)
