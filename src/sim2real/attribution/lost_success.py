"""Which dimensions of the gap cost a policy its success.

The policy is tried in worlds where some dimensions have identified values and the others those it
was trained with, in all combinations; Shapley values say how much success each dimension costs. A
trial has the same start, noise and draws in every combination, so that only the dimension differs.
Each draw of the posterior is one robot that the real one may be, and is tried several times:
intervals are for that one robot's share.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from sim2real.arrays import Bools, Floats
from sim2real.attribution.attribution import (
    Attribution,
    Dimensions,
    PartOfGap,
    dimensions_of,
    ends_of,
    identified,
    interval_of,
)
from sim2real.attribution.confounded import ConfoundedDimensions, Group, confounded_dimensions
from sim2real.attribution.shapley import game
from sim2real.attribution.shares import EQUAL_DIGITS, shares_of
from sim2real.attribution.sparse_causes import plausible
from sim2real.errors import Sim2RealError
from sim2real.evaluation import SimulatedTrials, run_trials
from sim2real.policy import Policy
from sim2real.randomize import drawn
from sim2real.tasks import Task
from sim2real.twin import Twin

_RESAMPLES = 4000
"""Resamples of trials and draws for an interval."""
_MAX_DIMENSIONS_IN_DETAIL = 2
"""Most dimensions with a clear share whose parameters are also tried one at a time."""


def attribute_success(
    before: Twin,
    after: Twin,
    task: type[Task],
    policy: Policy,
    *,
    source: str = "nominal",
    real: tuple[int, int] | None = None,
    draws: int = 32,
    each: int = 16,
    seed: int = 0,
    threads: int = 0,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> Attribution:
    """Shares [points of success] of what a policy loses from `before` to `after`, by dimension.

    `source` is where the policy's training drew parameters of `before` from; `after` is the same
    twin, identified. `real` are successes and trials of the real robot: what it loses beyond the
    identified worlds is unexplained. Each of `draws` robots is tried `each` times in every
    combination.
    """
    if real is not None and not 0 <= real[0] <= real[1] > 0:
        raise Sim2RealError(f"{real[0]} successes in {real[1]} real trials is not a success rate")
    posterior = identified(before, after)
    who = dimensions_of(before, posterior.names)
    inside, weights = game(len(who.names), seed=seed)
    trials = draws * each
    base = drawn(before, source, count=trials, seed=seed).numpy()
    robots = plausible(before, posterior, who, draws=draws, seed=seed)
    run = partial(run_trials, task, policy, seed=seed, source="nominal", twin=before)
    moved = np.repeat(robots.values, each, axis=0)
    attempt = _Attempts(partial(run, threads=threads), who, base, moved, len(inside), report)
    won = np.stack([attempt(members) for members in inside])
    parts = np.concatenate([weights @ -won, won[-1:]]).reshape(-1, draws, each)
    resampled = resampled_means(parts, seed)
    values = parts.mean(axis=(1, 2))
    low, high = interval_of(resampled)
    together = confounded_dimensions(
        who.names, values[:-1].tolist(), partial(interval_of_sum, parts, seed=seed)
    )
    effects = {
        column: 0.5 * float(attempt.costs(column).mean())
        for column in _columns_in_detail(who, values, low, high, together)
    }
    attempt.finish()
    unexplained = None
    if real is not None:
        unexplained = _unexplained(float(values[-1]), resampled[-1], real, seed)
    return Attribution(
        of="success",
        unit="points",
        whole=float(won[0].mean() - values[-1]) + (unexplained.value if unexplained else 0.0),
        before=float(won[0].mean()),
        after=float(values[-1]),
        shares=shares_of(before, who, robots, values, (low, high), effects=effects),
        unexplained=unexplained,
        samples=trials,
        draws=draws,
        together=together,
    )


def _columns_in_detail(
    who: Dimensions,
    values: Floats,
    low: Floats,
    high: Floats,
    together: tuple[ConfoundedDimensions, ...],
) -> list[int]:
    """Columns of parameters that are also tried one at a time: of the dimensions with the largest
    clear shares, and of confounded ones."""
    sizes = np.abs(values[: len(who.names)]).round(EQUAL_DIGITS)
    order = np.argsort(-sizes, kind="stable")
    clear = [int(k) for k in order if low[k] > 0 or high[k] < 0] or [int(order[0])]
    grouped = [who.names.index(name) for group in together for name in group.names]
    chosen = dict.fromkeys([*clear[:_MAX_DIMENSIONS_IN_DETAIL], *grouped])
    return [column for k in chosen for column in who.columns[k]]


class _Attempts:
    """Trials of the policy where some dimensions have moved; results are cached."""

    def __init__(
        self,
        run: Callable[..., SimulatedTrials],
        who: Dimensions,
        base: Floats,
        moved: Floats,
        combinations: int,
        report: Callable[[int, int], None],
    ) -> None:
        """`run` tries `rows`; `base` and `moved` (trials, parameters) are the values in training
        and of the robot."""
        self._run, self._who, self._report = run, who, report
        self._base, self._moved = base, moved
        self._known: dict[bytes, Floats] = {}
        self._asked, self._each = 0, 1
        self._most = combinations + 2 * sum(len(columns) for columns in who.columns)
        count = len(who.names)
        self._none, self._all = np.zeros(count, dtype=bool), np.ones(count, dtype=bool)

    def __call__(self, members: Bools) -> Floats:
        """(trials,) 100 or 0 with the dimensions `members` (dimensions,) moved."""
        return self._tried(self._rows(members))

    def costs(self, column: int) -> Floats:
        """(trials,) success that one parameter costs alone, plus what comes back if only it returns
        to training. A parameter that is harmless alone may be what makes others harmful."""
        alone, without = self._rows(self._none), self._rows(self._all)
        alone[:, column], without[:, column] = self._moved[:, column], self._base[:, column]
        costs = self(self._none) - self._tried(alone)
        return costs + self._tried(without) - self(self._all)

    def finish(self) -> None:
        """Report that nothing more is tried: cached results made the work shorter."""
        self._report(self._most * self._each, self._most * self._each)

    def _rows(self, members: Bools) -> Floats:
        return self._who.moved(self._base, self._moved, members[None])[:, 0]

    def _tried(self, rows: Floats) -> Floats:
        key = rows.tobytes()
        if key not in self._known:
            tried = self._run(rows=rows, episodes=len(rows), report=self._within)
            self._known[key] = 100.0 * tried.success.astype(float)
            self._asked += 1
        return self._known[key]

    def _within(self, done: int, of: int) -> None:
        self._each = of
        self._report(self._asked * of + done, self._most * of)


def resampled_means(parts: Floats, seed: int) -> Floats:
    """(parts, resamples) possible means of one robot, for parts (parts, draws, each)."""
    count, draws, each = parts.shape
    rng = np.random.default_rng(seed)
    means = parts.mean(axis=2)
    middle = means.mean(axis=1, keepdims=True)
    counts = rng.multinomial(draws, np.full(draws, 1 / draws), size=_RESAMPLES)
    found = means @ counts.T / draws
    # Few trials exaggerate how much robots differ: take off the scatter of the trials.
    scatter = means.var(axis=1, ddof=1)
    chance = parts.var(axis=2, ddof=1).mean(axis=1) / each if each > 1 else np.zeros(count)
    kept = np.sqrt(np.maximum(1 - chance / np.maximum(scatter, 1e-12), 0.0))
    one = rng.integers(draws, size=_RESAMPLES)
    found = found + kept[:, None] * (means - middle)[:, one]
    # Finding no difference in so few trials does not prove that there is none.
    return np.asarray(found + rng.normal(size=found.shape) * 100.0 / (draws * each))


def interval_of_sum(parts: Floats, group: Group, *, seed: int) -> tuple[float, float]:
    """95 % interval of a sum of parts: the scatter of trials is taken off the sum, not off each."""
    return ends_of(resampled_means(parts[list(group)].sum(axis=0, keepdims=True), seed)[0])


def _unexplained(success: float, resampled: Floats, real: tuple[int, int], seed: int) -> PartOfGap:
    """Success that the real robot loses beyond the identified worlds [points]."""
    won, tried = real
    rng = np.random.default_rng(seed + 1)
    rates = 100 * rng.beta(won + 0.5, tried - won + 0.5, size=len(resampled))
    low, high = ends_of(resampled - rates)
    return PartOfGap(name="unexplained", value=success - 100 * won / tried, low=low, high=high)
