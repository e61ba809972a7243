"""The most probable parameters: bounded, robust least squares over all segments at once.

The noise of each sensor is estimated, too. Several starts are tried first, on a few segments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sim2real.arrays import Floats
from sim2real.identification.gauss_newton import GaussNewton
from sim2real.identification.robust_loss import scale, tempered, weight
from sim2real.replay import LeastSquares, at_bounds

_MAX_ROUNDS = 4
"""Most descents, each with the noise that the one before left."""
_RANDOM_ROUNDS = 2
"""First descents, before each of which the effect of the twin's randomness is estimated."""
_SETTLED = 0.1
"""Relative change of the noise below which the rounds end."""
_MAX_STEPS = 40
_FEW_SEGMENTS, _FEW_STEPS, _FEW_ROUNDS = (6, 16), 12, 4
"""Limits of the number of segments of a first look (a third of all), its steps and its rounds."""
_TRIED = 4
"""Starts that are tried besides the center."""


@dataclass(frozen=True, kw_only=True)
class Fit:
    """The result of a fit."""

    problem: LeastSquares
    """With the noise and the starting states that the fit ended with."""
    x: Floats
    """(fitted,) standard deviations from the problem's center."""
    values: Floats
    """(fitted,) values of the parameters."""
    cost: float
    """Half the robust sum of squared whitened residuals, including the prior."""
    residual: Floats
    """(segments, k) whitened residuals."""
    slopes: Floats
    """(fitted, segments, k) their derivatives, per standard deviation of the prior."""
    evaluations: int
    """Parameter vectors that were simulated."""
    at_bounds: tuple[str, ...]
    """Parameters at a bound."""

    @property
    def whole(self) -> Floats:
        """(parameters,) values of all the twin's parameters."""
        return self.problem.whole(self.x)

    def tempered(self) -> Floats:
        """(segments, k) residuals whose squares are the robust loss."""
        return tempered(self.residual)

    def weighted_slopes(self) -> Floats:
        """(fitted, segments, k) derivatives of the tempered residuals."""
        return np.asarray(self.slopes * weight(self.residual))

    def information(self) -> Floats:
        """(fitted, fitted) information of the data, per standard deviation of the prior squared."""
        slopes = self.weighted_slopes()
        return np.asarray(np.einsum("psk,qsk->pq", slopes, slopes))


def fit(
    problem: LeastSquares,
    *,
    starts: int = 1,
    begin: Floats | None = None,
    seed: int = 0,
    prior: float = 1.0,
    exact: bool = True,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> Fit:
    """Fit a problem from `begin` (fitted,), its center by default, and from `starts` - 1 draws.

    `prior` is the weight of the prior, 0 for none, and more than 1 where errors are correlated, so
    that there are fewer independent ones than residuals. With `exact` the final derivatives are by
    central differences and the effect of randomness is estimated well, as a posterior needs it.
    """
    low, high = problem.bounds
    center = np.clip(np.zeros(len(problem.names)) if begin is None else begin, low, high)
    problem = problem.prepared(center)
    x, evaluations = center, 1
    if begin is None:
        x, looked = _first_look(problem, starts, seed, prior=prior)
        evaluations += looked
    descent = GaussNewton(problem, x, prior=prior)
    for round_ in range(_MAX_ROUNDS):
        if round_ < (_RANDOM_ROUNDS if exact else 1):
            random = problem.with_randomness(descent.x, rough=not exact)
            problem = problem if random is problem else random.prepared(descent.x)
        problem, settled = _with_noise(problem, descent.x)
        problem = problem.prepared(descent.x, again=round_ > 0)
        descent.go_on(problem)
        descent.run(_MAX_STEPS)
        report(round_ + 1, _MAX_ROUNDS)
        if settled and round_ > 0:
            break
    residual, slopes, promised = descent.polished(exact=exact)
    if promised and exact:
        descent.run(_FEW_STEPS)
        residual, slopes, _ = descent.polished(exact=exact)
    report(_MAX_ROUNDS, _MAX_ROUNDS)
    x = descent.x
    return Fit(
        problem=problem,
        x=x,
        values=problem.values(x),
        cost=0.5 * float((tempered(residual) ** 2).sum() + prior * (x**2).sum()),
        residual=residual,
        slopes=slopes,
        evaluations=evaluations + descent.evaluations,
        at_bounds=at_bounds(problem.names, x, problem.bounds),
    )


def costs_of(problem: LeastSquares, points: Floats, *, prior: float = 1.0) -> tuple[Floats, Floats]:
    """(data, prior) cost (n,) each of points (n, fitted)."""
    data = tempered(problem.residuals(points)).reshape(len(points), -1)
    return 0.5 * (data**2).sum(axis=1), 0.5 * prior * (points**2).sum(axis=1)


def _first_look(
    problem: LeastSquares, starts: int, seed: int, *, prior: float
) -> tuple[Floats, int]:
    """(where to start, vectors simulated): the best of short descents on a few segments.

    Each has its own noise estimate, and the most likely one wins. With a shared estimate from the
    initial guess, the sensor that is predicted worst there would keep the lowest weight for good.
    """
    few = problem.part(int(np.clip(problem.segments // 3, *_FEW_SEGMENTS)))
    declared = few.noise
    low, high = problem.bounds
    draws = np.random.default_rng(seed).normal(size=(starts, len(problem.names)))
    draws[0] = 0.0
    points = np.clip(draws, low, high)
    data, before = costs_of(few, points, prior=prior)
    order = 1 + np.argsort((data + before)[1:])
    found, evaluations = [], len(points)
    for k in [0, *order[:_TRIED]]:
        few = few.with_noise(declared).prepared(points[k])
        descent = GaussNewton(few, points[k], prior=prior)
        for round_ in range(_FEW_ROUNDS):
            few, settled = _with_noise(few, descent.x)
            few = few.prepared(descent.x, again=round_ > 0)
            descent.go_on(few)
            cost = descent.run(_FEW_STEPS)
            if settled:
                break
        found.append((cost + float((few.valid * np.log(few.noise)).sum()), descent.x))
        evaluations += descent.evaluations
    return min(found, key=lambda pair: pair[0])[1], evaluations


def _with_noise(problem: LeastSquares, x: Floats) -> tuple[LeastSquares, bool]:
    """The problem with the noise of each sensor estimated at x, and whether it had settled."""
    white = problem.residuals(x[None])[0].reshape(problem.valid.shape)
    names, noise = problem.sensor_of(), problem.noise.copy()
    settled = True
    for name in set(names):
        columns = [k for k, other in enumerate(names) if other == name]
        mine = white[..., columns][problem.valid[..., columns]]
        if mine.size:
            factor = float(np.clip(scale(mine), 0.2, 50.0))
            noise[columns] = np.maximum(noise[columns] * factor, problem.least_noise[columns])
            settled &= abs(factor - 1) < _SETTLED
    return problem.with_noise(noise), settled
