"""The most probable parameters: bounded, robust least squares over all segments at once.

Noise is estimated with the parameters, sensor by sensor. Where the prior is wide several starts are
tried, on a few of the segments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sim2real.arrays import Floats
from sim2real.identification.gauss_newton import GaussNewton
from sim2real.identification.least_squares import LeastSquares
from sim2real.identification.robust_loss import scale, tempered, weight
from sim2real.replay import at_bounds

_ROUNDS = 4
"""Descents at most, each with the noise that the one before left."""
_CHANCES = 2
"""Of them, those before which the twin's chance is looked at anew."""
_SETTLED = 0.1
"""Relative change of the noise below which no further round is made."""
_MOST_STEPS = 40
_FEW_SEGMENTS, _FEW_STEPS, _FEW_ROUNDS = (6, 16), 12, 4
"""Segments of the first look, a third of all within these, and steps and rounds of each descent."""
_TRIED = 4
"""Starts that are followed besides the center."""


@dataclass(frozen=True, kw_only=True)
class Fit:
    """What was found."""

    x: Floats
    """(fitted,) standard deviations from the problem's center."""
    values: Floats
    """(fitted,) values of the parameters."""
    cost: float
    """Half the sum of squared whitened residuals, robust, with the prior."""
    noise: Floats
    """(numbers,) standard deviation of each reading around the prediction."""
    residual: Floats
    """(segments, k) whitened residuals."""
    slopes: Floats
    """(fitted, segments, k) their derivatives, per standard deviation of the prior."""
    evaluations: int
    """Parameter vectors that were simulated."""
    at_bounds: tuple[str, ...]
    """Parameters that ended on a bound."""

    def tempered(self) -> Floats:
        """(segments, k) residuals whose squares are the robust loss."""
        return tempered(self.residual)

    def weighted_slopes(self) -> Floats:
        """(fitted, segments, k) derivatives of the tempered residuals."""
        return np.asarray(self.slopes * weight(self.residual))

    def information(self) -> Floats:
        """(fitted, fitted) what the data tells, per standard deviation of the prior squared."""
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

    `prior` is how much the prior counts, 0 for not at all: more than once where the data's errors
    go together, so that there are fewer independent ones than residuals.
    With `exact` the derivatives in the end are by central differences, and the effect of the twin's
    chance is known well, as a posterior wants them.
    """
    low, high = problem.bounds
    center = np.clip(np.zeros(len(problem.names)) if begin is None else begin, low, high)
    problem.prepare(center)
    x, evaluations = center, 1
    if begin is None:
        x, looked = _first_look(problem, starts, seed, prior=prior)
        evaluations += looked
    descent = GaussNewton(problem, x, prior=prior)
    for round_ in range(_ROUNDS):
        looks = _CHANCES if exact else 1
        if round_ < looks and problem.prepare_chance(descent.x, rough=not exact):
            problem.prepare(descent.x)
        settled = _estimate_noise(problem, descent.x) and round_ > 0
        problem.prepare(descent.x, again=round_ > 0)
        descent.moved_starts()
        descent.run(_MOST_STEPS)
        report(round_ + 1, _ROUNDS)
        if settled:
            break
    residual, slopes, promised = descent.polished(exact=exact)
    if promised and exact:
        descent.run(_FEW_STEPS)
        residual, slopes, _ = descent.polished(exact=exact)
    report(_ROUNDS, _ROUNDS)
    x = descent.x
    return Fit(
        x=x,
        values=problem.values(x),
        cost=0.5 * float((tempered(residual) ** 2).sum() + prior * (x**2).sum()),
        noise=problem.noise.copy(),
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
    """(where to begin, vectors simulated): the best of short descents on a few segments.

    Each has its own noise, and the best is the most likely with it. With the noise of where all
    begin, what is predicted worst there would count least ever after.
    """
    few = problem.part(int(np.clip(problem.segments // 3, *_FEW_SEGMENTS)))
    declared = few.noise.copy()
    low, high = problem.bounds
    draws = np.random.default_rng(seed).normal(size=(starts, len(problem.names)))
    draws[0] = 0.0
    points = np.clip(draws, low, high)
    data, before = costs_of(few, points, prior=prior)
    order = 1 + np.argsort((data + before)[1:])
    found, evaluations = [], len(points)
    for k in [0, *order[:_TRIED]]:
        few.noise[:] = declared
        few.prepare(points[k])
        descent = GaussNewton(few, points[k], prior=prior)
        for round_ in range(_FEW_ROUNDS):
            settled = _estimate_noise(few, descent.x)
            few.prepare(descent.x, again=round_ > 0)
            descent.moved_starts()
            cost = descent.run(_FEW_STEPS)
            if settled:
                break
        found.append((cost + float((few.valid * np.log(few.noise)).sum()), descent.x))
        evaluations += descent.evaluations
    few.noise[:] = declared
    return min(found, key=lambda pair: pair[0])[1], evaluations


def _estimate_noise(problem: LeastSquares, x: Floats) -> bool:
    """Noise of each sensor from what the fit leaves; whether it had settled."""
    white = problem.residuals(x[None])[0].reshape(problem.valid.shape)
    names = problem.sensor_of()
    settled = True
    for name in set(names):
        columns = [k for k, other in enumerate(names) if other == name]
        mine = white[..., columns][problem.valid[..., columns]]
        if mine.size:
            factor = float(np.clip(scale(mine), 0.2, 50.0))
            noise = problem.noise[columns] * factor
            problem.noise[columns] = np.maximum(noise, problem.least_noise[columns])
            settled &= abs(factor - 1) < _SETTLED
    return settled
