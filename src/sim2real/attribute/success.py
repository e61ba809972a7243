"""Which dimensions of the gap cost a policy its success.

The policy is tried in worlds where some dimensions have identified values and the others those it
was trained with; all combinations are tried, and Shapley's shares say how much success each
dimension takes away. A trial has the same start, the same noise and the same draws in every
combination, so that nothing but the dimension differs. A draw of the posterior is one robot that
the real one may be, and is tried several times: intervals are of that one robot's share.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from torch import Tensor

from sim2real.attribute.attribution import (
    Attribution,
    Dimensions,
    Share,
    causes_of,
    dimensions_of,
    identified,
    interval_of,
)
from sim2real.attribute.parsimony import plausible
from sim2real.attribute.shapley import game
from sim2real.attribute.together import Group, Together, told_together
from sim2real.errors import Sim2RealError
from sim2real.evaluate.trials import run_trials
from sim2real.randomize import drawn
from sim2real.tasks import Task
from sim2real.twin import Twin

_RESAMPLED = 4000
"""Resamples of trials and draws behind an interval."""
_LOOKED_INTO = 2
"""Dimensions whose parameters are also tried one at a time, in the worlds of training and out of
the identified ones."""


def attribute_success(
    before: Twin,
    after: Twin,
    task: type[Task],
    policy: Callable[[Tensor], Tensor],
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
    twin, identified. `real` are successes and trials of the real robot: what is then missing beyond
    the identified worlds is unexplained. Each of `draws` robots is tried `each` times in every
    combination.
    """
    if draws < 2 or each < 1:
        raise Sim2RealError(f"{draws} draws of {each} trials are too few for an interval")
    if real is not None and not 0 <= real[0] <= real[1] > 0:
        raise Sim2RealError(f"{real[0]} successes in {real[1]} real trials cannot be")
    posterior = identified(before, after)
    who = dimensions_of(before, posterior.names)
    inside, weights = game(len(who.names), seed=seed)
    trials = draws * each
    trained = "prior" if source == "adr" else source  # the widest an automatic range may become
    base = drawn(before, trained, count=trials, seed=seed).numpy()
    robots = plausible(before, posterior, who, draws=draws, seed=seed)
    moved = np.repeat(robots.values, each, axis=0)
    most = len(inside) + 2 * sum(len(columns) for columns in who.columns)
    attempt = _Attempts(task, policy, before, trials=trials, seed=seed, threads=threads)
    won = np.empty((len(inside), trials))
    for number, members in enumerate(inside):
        rows = who.moved(base, moved, members[None])[:, 0]
        won[number] = attempt(rows, partial(_within, report, number, most))
    lost = weights @ -won
    parts = np.concatenate([lost, won[-1:]]).reshape(-1, draws, each)
    resampled = _resampled(parts, seed)
    values = parts.mean(axis=(1, 2))
    low, high = interval_of(resampled)
    together = told_together(
        who.names, values[:-1].tolist(), partial(_interval_of_sum, parts, seed=seed)
    )
    effects: dict[int, float] = {}
    whole = who.moved(base, moved, inside[-1:])[:, 0]
    for number, column in enumerate(_looked_into(who, values, low, high, together)):
        alone, without = base.copy(), whole.copy()
        alone[:, column], without[:, column] = moved[:, column], base[:, column]
        at = len(inside) + 2 * number
        costs = won[0] - attempt(alone, partial(_within, report, at, most))
        regained = attempt(without, partial(_within, report, at + 1, most)) - won[-1]
        # What is harmless alone may be what others need to do harm.
        effects[column] = 0.5 * float((costs + regained).mean())
    report(100 * most, 100 * most)
    shares = [
        Share(
            name=name,
            value=float(values[k]),
            low=float(low[k]),
            high=float(high[k]),
            causes=causes_of(
                before,
                columns,
                [effects.get(c) for c in columns],
                ranges=robots.ranges,
                chances=robots.moved,
            ),
        )
        for k, (name, columns) in enumerate(zip(who.names, who.columns, strict=True))
    ]
    unexplained, success = None, float(values[-1])
    if real is not None:
        unexplained = _unexplained(success, resampled[-1], real, seed)
        success -= unexplained.value
    return Attribution(
        of="success",
        unit="points",
        whole=float(won[0].mean()) - success,
        before=float(won[0].mean()),
        after=float(values[-1]),
        shares=tuple(sorted(shares, key=lambda share: -share.value)),
        unexplained=unexplained,
        samples=trials,
        draws=draws,
        together=together,
    )


def _looked_into(
    who: Dimensions,
    values: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    together: tuple[Together, ...],
) -> list[int]:
    """Columns of parameters that are also tried by themselves: of the largest clear shares, and of
    those that are told only together."""
    order = np.argsort(-np.abs(values[: len(who.names)]))
    clear = [int(k) for k in order if low[k] > 0 or high[k] < 0] or [int(order[0])]
    grouped = [who.names.index(name) for group in together for name in group.names]
    chosen = dict.fromkeys([*clear[:_LOOKED_INTO], *grouped])
    return [column for k in chosen for column in who.columns[k]]


class _Attempts:
    """Success [%] of the same trials with other parameters; what was tried is remembered."""

    def __init__(
        self,
        task: type[Task],
        policy: Callable[[Tensor], Tensor],
        twin: Twin,
        *,
        trials: int,
        seed: int,
        threads: int,
    ) -> None:
        self._run = partial(
            run_trials, task, policy, episodes=trials, seed=seed, source="nominal", twin=twin,
            threads=threads,
        )  # fmt: skip
        self._known: dict[bytes, np.ndarray] = {}

    def __call__(self, rows: np.ndarray, report: Callable[[int, int], None]) -> np.ndarray:
        """(trials,) 100 or 0 with rows (trials, parameters)."""
        key = rows.tobytes()
        if key not in self._known:
            self._known[key] = 100.0 * self._run(rows=rows, report=report).success
        return self._known[key]


def _resampled(parts: np.ndarray, seed: int) -> np.ndarray:
    """(parts, resamples) of what one robot's means may be, for parts (parts, draws, each)."""
    count, draws, each = parts.shape
    rng = np.random.default_rng(seed)
    means = parts.mean(axis=2)
    middle = means.mean(axis=1, keepdims=True)
    counts = rng.multinomial(draws, np.full(draws, 1 / draws), size=_RESAMPLED)
    found = means @ counts.T / draws
    # Robots differ by less than their few trials do: as much as trials scatter is taken off.
    scatter = means.var(axis=1, ddof=1)
    chance = parts.var(axis=2, ddof=1).mean(axis=1) / each if each > 1 else np.zeros(count)
    kept = np.sqrt(np.maximum(1 - chance / np.maximum(scatter, 1e-12), 0.0))
    one = rng.integers(draws, size=_RESAMPLED)
    found = found + kept[:, None] * (means - middle)[:, one]
    # Trials without any difference do not show that there is none.
    result: np.ndarray = found + rng.normal(size=found.shape) * 100.0 / (draws * each)
    return result


def _interval_of_sum(parts: np.ndarray, group: Group, *, seed: int) -> tuple[float, float]:
    """95 % of what some parts may be together: what trials scatter is taken off their sum, not off
    each of them."""
    low, high = interval_of(_resampled(parts[list(group)].sum(axis=0, keepdims=True), seed)[0])
    return float(low), float(high)


def _unexplained(success: float, resampled: np.ndarray, real: tuple[int, int], seed: int) -> Share:
    """What the real robot loses beyond the identified worlds [points]."""
    won, tried = real
    rng = np.random.default_rng(seed + 1)
    rates = 100 * rng.beta(won + 0.5, tried - won + 0.5, size=len(resampled))
    low, high = interval_of(resampled - rates)
    value = success - 100 * won / tried
    return Share(name="unexplained", value=value, low=float(low), high=float(high))


def _within(report: Callable[[int, int], None], number: int, most: int, done: int, of: int) -> None:
    report(number * 100 + 100 * done // of, most * 100)
