"""The most probable parameters: bounded, robust least squares over all segments at once.

scipy's trust region does the steps; its Jacobians come from one batch of worlds. Noise is
estimated with the parameters, sensor by sensor. Several starts are tried where the prior is wide.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from sim2real.identify.problem import Problem

_ROUNDS = 3
"""Fits, each with the noise that the one before left."""
_ROBUST = 3.0
"""Whitened residuals beyond this count less and less."""
_MOST_STEPS = 30
_TRIED, _FEW_STEPS = 3, 6
"""Starts that are followed, and how far before the best is chosen."""


@dataclass(frozen=True, kw_only=True)
class Fit:
    """What was found."""

    x: np.ndarray
    """(fitted,) standard deviations from the problem's center."""
    values: np.ndarray
    """(fitted,) values of the parameters."""
    cost: float
    """Half the sum of squared whitened residuals, robust, with the prior."""
    start_cost: float
    """The same where the fit began."""
    noise: np.ndarray
    """(numbers,) standard deviation of each reading around the prediction."""
    residual: np.ndarray
    """(segments, k) whitened residuals."""
    slopes: np.ndarray
    """(fitted, segments, k) their derivatives, per standard deviation of the prior."""
    evaluations: int
    """Parameter vectors that were simulated."""
    at_bounds: tuple[str, ...]
    """Parameters that ended on a bound."""

    def tempered(self) -> np.ndarray:
        """(segments, k) residuals whose squares are the robust loss."""
        return _tempered(self.residual)

    def weighted_slopes(self) -> np.ndarray:
        """(fitted, segments, k) derivatives of the tempered residuals."""
        return np.asarray(self.slopes * _weight(self.residual))

    def information(self) -> np.ndarray:
        """(fitted, fitted) what the data tells, per standard deviation of the prior squared."""
        slopes = self.weighted_slopes()
        found: np.ndarray = np.einsum("psk,qsk->pq", slopes, slopes)
        return found


def fit(
    problem: Problem,
    *,
    starts: int = 1,
    begin: np.ndarray | None = None,
    seed: int = 0,
    prior: bool = True,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> Fit:
    """Fit a problem from `begin` (fitted,), its center by default, and from `starts` - 1 draws."""
    low, high = problem.bounds
    points = _points(problem, starts, seed)
    points[0] = np.clip(np.zeros(len(problem.names)) if begin is None else begin, low, high)
    problem.prepare(points[0])
    counter = _Counter(problem, prior=prior)
    costs = counter.costs(points)
    start_cost = float(costs[0])
    best = points[np.argsort(costs)[: max(1, min(_TRIED, starts))]]
    found = [_descend(counter, x, most=_FEW_STEPS) for x in best]
    x = min(found, key=lambda pair: pair[1])[0]
    for round_ in range(_ROUNDS):
        _estimate_noise(problem, x)
        problem.prepare(x)
        x, _ = _descend(counter, x)
        report(round_ + 1, _ROUNDS)
    residual, slopes = problem.linearised(x)
    counter.evaluations += 1 + 2 * len(x)
    margin = 1e-3 * (high - low)
    stuck = (x <= low + margin) | (x >= high - margin)
    return Fit(
        x=x,
        values=problem.values(x),
        cost=float(counter.costs(x[None])[0]),
        start_cost=start_cost,
        noise=problem.noise.copy(),
        residual=residual,
        slopes=slopes,
        evaluations=counter.evaluations,
        at_bounds=tuple(name for name, s in zip(problem.names, stuck, strict=True) if s),
    )


def costs_of(problem: Problem, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(data, prior) cost (n,) each of points (n, fitted)."""
    data = _tempered(problem.residuals(points)).reshape(len(points), -1)
    return 0.5 * (data**2).sum(axis=1), 0.5 * (points**2).sum(axis=1)


class _Counter:
    """Residuals as scipy wants them, prior included, with the evaluations counted."""

    def __init__(self, problem: Problem, *, prior: bool) -> None:
        self.problem, self._prior = problem, prior
        self.evaluations = 0

    def residual(self, x: np.ndarray) -> np.ndarray:
        self.evaluations += 1
        data = _tempered(self.problem.residuals(x[None])[0]).ravel()
        return np.concatenate([data, x]) if self._prior else data

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        self.evaluations += 1 + len(x)
        residual, slopes = self.problem.linearised(x, central=False)
        data = (slopes * _weight(residual)).reshape(len(x), -1).T
        return np.concatenate([data, np.eye(len(x))]) if self._prior else data

    def costs(self, points: np.ndarray) -> np.ndarray:
        """(n,) cost of each point."""
        self.evaluations += len(points)
        data, prior = costs_of(self.problem, points)
        return data + prior if self._prior else data


def _descend(
    counter: _Counter, x: np.ndarray, *, most: int = _MOST_STEPS
) -> tuple[np.ndarray, float]:
    low, high = counter.problem.bounds
    inside = np.clip(x, low + 1e-6, high - 1e-6)
    found = least_squares(
        counter.residual,
        inside,
        jac=counter.jacobian,
        bounds=(low, high),
        max_nfev=most,
        xtol=1e-5,
        ftol=1e-6,
        gtol=1e-6,
    )
    return np.array(found.x), float(found.cost)


def _points(problem: Problem, starts: int, seed: int) -> np.ndarray:
    """(starts, fitted) where descents may begin: the center first, then draws of the prior."""
    low, high = problem.bounds
    rng = np.random.default_rng(seed)
    draws = rng.normal(0.0, 1.0, (starts, len(problem.names)))
    draws[0] = 0.0
    return np.clip(draws, low, high)


def _tempered(residual: np.ndarray) -> np.ndarray:
    """Residuals whose squares are a Huber loss: linear beyond `_ROBUST`."""
    size = np.abs(residual)
    far = size > _ROBUST
    linear = np.sqrt(np.maximum(2 * _ROBUST * size - _ROBUST**2, 0.0))
    found: np.ndarray = np.where(far, np.sign(residual) * linear, residual)
    return found


def _weight(residual: np.ndarray) -> np.ndarray:
    """Derivative of `_tempered`."""
    size = np.maximum(np.abs(residual), _ROBUST)
    found: np.ndarray = _ROBUST / np.sqrt(2 * _ROBUST * size - _ROBUST**2)
    return found


def _estimate_noise(problem: Problem, x: np.ndarray) -> None:
    """Noise of each sensor from what the fit leaves, by the middle of its whitened residuals."""
    white = problem.residuals(x[None])[0].reshape(problem.valid.shape)
    names = problem.sensor_of()
    for name in set(names):
        columns = [k for k, other in enumerate(names) if other == name]
        mine = white[..., columns][problem.valid[..., columns]]
        if mine.size:
            spread = float(np.median(np.abs(mine))) / 0.6745
            problem.noise[columns] *= np.clip(spread, 0.2, 50.0)
