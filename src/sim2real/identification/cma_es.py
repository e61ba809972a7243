"""The most probable parameters without gradients: CMA-ES over whole trajectories.

Where things collide, a small change of a parameter sends a trajectory another way, and a slope
measured over a small step says nothing of a larger one. A population of parameter vectors, times a
batch of recordings, is one batch of worlds; the next generation is drawn from where the better ones
lie. Each generation sees another batch, so that no recording decides alone.
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
"""Searches, each with errors counted in what the one before left."""
_WIDE = 0.3
"""First step, in standard deviations of the prior."""
_DIVERGED = 1e9
"""Cost of a vector with a world that diverged: the ranking needs a number."""
_SMALL, _LARGE = 0.02, 0.5
"""Steps, in standard deviations of the prior, over which slopes must agree to be trusted."""
_AGREE = 0.7
"""Cosine of the angle between slopes over small and large steps below which they mislead."""


@dataclass(frozen=True, kw_only=True)
class CmaSearch:
    """What was found."""

    x: Floats
    """(fitted,) standard deviations from the problem's center."""
    values: Floats
    """(fitted,) values of the parameters."""
    cost: float
    """Mean cost of a recording, with the prior's share."""
    spread: Floats
    """(fitted, fitted) covariance of the last generation, in standard deviations of the prior."""
    history: Floats
    """(generations,) middle cost of each generation, on its own batch of recordings."""
    evaluations: int
    """Parameter vectors that were simulated on one batch of recordings."""
    diverged: int
    """Vectors of which a world diverged."""
    at_bounds: tuple[str, ...]
    """Parameters that ended on a bound."""


def search(
    problem: WholeRecordings,
    *,
    begin: Floats | None = None,
    starts: int = 1,
    restarts: int = 0,
    generations: int = GENERATIONS,
    population: int = 0,
    seed: int = 0,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> CmaSearch:
    """Search from `begin` (fitted,), the center by default, or the best of `starts` - 1 draws.

    `population` vectors a generation, by default what CMA-ES recommends. Each of `restarts` begins
    anew from the next best draw with twice the population; the best of all is kept. The errors are
    left counted in what is usual at the end.
    """
    low, high = problem.bounds
    zero = np.zeros(len(problem.names)) if begin is None else np.clip(begin, low, high)
    rng = np.random.default_rng(seed)
    points = np.clip(rng.normal(size=(max(1, starts), len(zero))), low, high)
    points[0] = zero
    first = _costs(problem, points, batch=0)
    runs, candidates = [], [zero]
    total = (1 + restarts) * generations
    for number, start in enumerate(points[np.argsort(first)[: 1 + restarts]]):
        run = _Run(
            problem,
            start,
            size=population * 2**number if population else 0,
            seed=seed + number,
            more=2**number,
        )
        for generation in range(generations):
            if generation and generation % max(1, generations // _STAGES) == 0:
                run.settle()
            run.advance(generation)
            report(number * generations + generation + 1, total)
        runs.append(run)
        candidates.append(run.mean)
    # Against all recordings, in the same units.
    problem.settle(candidates[1])
    final = np.array([_costs(problem, x[None])[0] for x in candidates])
    best = int(np.argmin(final))
    chosen = runs[max(0, best - 1)]
    x = candidates[best]
    problem.settle(x)
    return CmaSearch(
        x=x,
        values=problem.values(x),
        cost=float(_costs(problem, x[None])[0]),
        spread=chosen.spread,
        history=np.array(chosen.history),
        evaluations=len(points) + sum(run.evaluations for run in runs),
        diverged=sum(run.diverged for run in runs),
        at_bounds=at_bounds(problem.names, x, problem.bounds),
    )


def gradients_mislead(problem: WholeRecordings, x: Floats | None = None) -> bool:
    """Whether a fit by gradients would be misled: measured at x (fitted,), the center by default.

    Slopes of each trajectory's cost over small steps are compared with those over large ones, on
    one batch of trajectories.
    """
    at = np.zeros(len(problem.names)) if x is None else x
    return agreement(lambda points: problem.costs(points, 0), at, problem.bounds) < _AGREE


def agreement(costs: Callable[[Floats], Floats], x: Floats, bounds: tuple[Floats, Floats]) -> float:
    """Cosine of the angle between slopes of costs at x (fitted,) over small and over large steps.

    `costs` gives (n, trajectories) numbers for (n, fitted) points. One where they are smooth.
    """
    slopes = []
    for step in (_SMALL, _LARGE):
        points, spans = around(x, step, bounds)
        found = costs(points[1:])
        slopes.append((found[1::2] - found[::2]) / spans[:, None])
    known = np.isfinite(slopes).all(axis=(0, 1))
    small, large = (slope[:, known].ravel() for slope in slopes)
    size = float(np.linalg.norm(small) * np.linalg.norm(large))
    return float(small @ large) / max(size, 1e-300)


class _Run:
    """One search from one start."""

    def __init__(
        self, problem: WholeRecordings, start: Floats, *, size: int, seed: int, more: int
    ) -> None:
        self._problem, self._seed = problem, seed
        self._size = size or more * (4 + int(3 * np.log(len(start))))
        self._es = self._begun(start, _WIDE)
        self.history: list[float] = []
        self.evaluations = self.diverged = 0

    @property
    def mean(self) -> Floats:
        """(fitted,) where the next generation would be drawn around."""
        return np.asarray(np.clip(np.array(self._es.result.xfavorite), *self._problem.bounds))

    @property
    def spread(self) -> Floats:
        """(fitted, fitted) covariance of the next generation."""
        return np.array(self._es.sigma**2 * self._es.sm.covariance_matrix)

    def settle(self) -> None:
        """Count errors in what is left now."""
        self._problem.settle(self.mean)

    def advance(self, generation: int) -> None:
        """One generation on its batch of recordings."""
        points = np.array(self._es.ask())
        costs = _costs(self._problem, points, batch=generation)
        self.evaluations += len(points)
        self.diverged += int((costs >= _DIVERGED).sum())
        self.history.append(float(np.median(costs)))
        self._es.tell(list(points), costs.tolist())

    def _begun(self, start: Floats, step: float) -> Any:
        low, high = self._problem.bounds
        inside = np.clip(start, low + 1e-6 * (high - low), high - 1e-6 * (high - low))
        options = {
            "popsize": self._size,
            "seed": self._seed + 1,  # zero would be the clock
            "bounds": [low.tolist(), high.tolist()],
            "verbose": -9,
        }
        return cma.CMAEvolutionStrategy(inside.tolist(), step, options)


def _costs(problem: WholeRecordings, points: Floats, batch: int | None = None) -> Floats:
    """(n,) mean cost of a recording, with the prior's share; a number also where one diverged."""
    data = problem.costs(points, batch).mean(axis=1)
    prior = 0.5 * (points**2).sum(axis=1) / problem.segments
    return np.asarray(np.where(np.isfinite(data), data, _DIVERGED) + prior)
