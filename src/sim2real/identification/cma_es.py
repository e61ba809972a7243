"""The most probable parameters without gradients: CMA-ES over whole recordings.

Where things collide, a small change of a parameter sends the motion another way, and a slope over a
small step says nothing about a larger one. A population of parameter vectors, times a batch of
recordings, is one batch of worlds. Each generation sees another batch of recordings, so no
recording decides alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cma
import numpy as np

from sim2real.arrays import Floats
from sim2real.identification.whole_recordings import WholeRecordings
from sim2real.replay import around, at_bounds

GENERATIONS = 150
_STAGES = 2
"""Stages, each in units of the errors that the one before left."""
_FIRST_STEP = 0.3
"""Initial step, in standard deviations of the prior."""
_DIVERGED = 1e9
"""Cost of a vector with a diverged world: the ranking needs a finite number."""
_SMALL_STEP, _LARGE_STEP = 0.02, 0.5
"""Steps, in standard deviations of the prior, over which slopes are compared."""
_MIN_AGREEMENT = 0.7
"""Cosine of the angle between slopes over small and large steps below which gradients mislead."""


@dataclass(frozen=True, kw_only=True)
class CmaSearch:
    """The result of a search."""

    problem: WholeRecordings
    x: Floats
    """(fitted,) standard deviations from the problem's center."""
    values: Floats
    """(fitted,) values of the parameters."""
    cost: float
    """Mean cost of a recording, including the prior."""
    spread: Floats
    """(fitted, fitted) covariance of the last generation, in standard deviations of the prior."""
    evaluations: int
    """Parameter vectors that were simulated on one batch of recordings."""
    diverged: int
    """Vectors with a diverged world."""
    at_bounds: tuple[str, ...]
    """Parameters at a bound."""

    @property
    def whole(self) -> Floats:
        """(parameters,) values of all the twin's parameters."""
        return self.problem.whole(self.x)


def search(
    problem: WholeRecordings,
    *,
    generations: int = GENERATIONS,
    population: int = 0,
    seed: int = 0,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> CmaSearch:
    """Search from the center, with `population` vectors per generation, by default what CMA-ES
    recommends. The problem's units are left at the errors of the result."""
    low, high = problem.bounds
    zero, margin = np.zeros(len(problem.names)), 1e-6 * (high - low)
    options = {
        "popsize": population or 4 + int(3 * np.log(len(zero))),
        "seed": seed + 1,  # zero would be the clock
        "bounds": [low.tolist(), high.tolist()],
        "verbose": -9,
    }
    start = np.clip(zero, low + margin, high - margin).tolist()
    strategy: Any = cma.CMAEvolutionStrategy(start, _FIRST_STEP, options)
    evaluations = diverged = 0

    def best() -> Floats:
        """(fitted,) the best vector so far."""
        return np.asarray(np.clip(np.array(strategy.result.xfavorite), low, high))

    for generation in range(generations):
        if generation and generation % max(1, generations // _STAGES) == 0:
            problem.settle(best())
        points = np.array(strategy.ask())
        costs = _costs(problem, points, batch=generation)
        strategy.tell(list(points), costs.tolist())
        evaluations += len(points)
        diverged += int((costs >= _DIVERGED).sum())
        report(generation + 1, generations)
    # Against all recordings, in the same units.
    x = best()
    problem.settle(x)
    before, after = (float(_costs(problem, one[None])[0]) for one in (zero, x))
    if after >= before:
        x = zero
    problem.settle(x)
    return CmaSearch(
        problem=problem,
        x=x,
        values=problem.values(x),
        cost=float(_costs(problem, x[None])[0]),
        spread=np.array(strategy.sigma**2 * strategy.sm.covariance_matrix),
        evaluations=evaluations,
        diverged=diverged,
        at_bounds=at_bounds(problem.names, x, problem.bounds),
    )


def gradients_mislead(problem: WholeRecordings) -> bool:
    """Whether gradients at the center would mislead a fit.

    Compares the slopes of each segment's cost over small and over large steps, on one batch.
    """
    center = np.zeros(len(problem.names))
    return (
        agreement(lambda points: problem.costs(points, 0), center, problem.bounds) < _MIN_AGREEMENT
    )


def agreement(costs: Callable[[Floats], Floats], x: Floats, bounds: tuple[Floats, Floats]) -> float:
    """Cosine of the angle between slopes of costs at x (fitted,) over small and over large steps.

    `costs` gives (n, segments) numbers for (n, fitted) points. One if they are smooth.
    """
    slopes = []
    for step in (_SMALL_STEP, _LARGE_STEP):
        points, spans = around(x, step, bounds)
        found = costs(points[1:])
        slopes.append((found[1::2] - found[::2]) / spans[:, None])
    known = np.isfinite(slopes).all(axis=(0, 1))
    small, large = (slope[:, known].ravel() for slope in slopes)
    size = float(np.linalg.norm(small) * np.linalg.norm(large))
    return float(small @ large) / max(size, 1e-300)


def _costs(problem: WholeRecordings, points: Floats, batch: int | None = None) -> Floats:
    """(n,) mean cost of a recording, including the prior; finite even if a world diverged."""
    data = problem.costs(points, batch).mean(axis=1)
    prior = 0.5 * (points**2).sum(axis=1) / problem.segments
    return np.asarray(np.where(np.isfinite(data), data, _DIVERGED) + prior)
