"""Success that planted gaps cost a policy, and to which dimensions it is attributed.

A policy is trained in the pendulum's twin as written and tried in planted worlds: some dimensions
drawn from twice the twin's ranges, the others right. Which dimension truly costs most is known by
the same shares computed with the planted values.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import Tensor

from sim2real.attribute.attribution import Attribution
from sim2real.attribute.success import attribute_success
from sim2real.bench.config import BenchAttribute
from sim2real.bench.planted import believed, plant, planted_twin, recorded
from sim2real.bench.run import Report, Result
from sim2real.errors import Sim2RealError
from sim2real.evaluate.trials import run_trials
from sim2real.learn.config import TrainConfig
from sim2real.learn.policy import Policy
from sim2real.learn.train import train
from sim2real.loop.strategies import widened
from sim2real.policy import Bundle
from sim2real.tasks import find_task
from sim2real.twin import Twin

_TASK = "pendulum-swingup"
_COSTLY = 0.2
"""Success that a plant costs at least."""
_CLEARLY = 1.5
"""Largest true share against the next, from which it is clear which costs most."""
_TRIES = 40
_TRIALS = 256


@dataclass(frozen=True)
class _Lost:
    """One plant: shares as they are, as they were found, and the dimensions that are right."""

    truth: Attribution
    found: Attribution
    right: tuple[str, ...]

    @property
    def clear(self) -> bool:
        """Whether one dimension truly costs most."""
        first, second = self.truth.shares[:2]
        return first.value >= _CLEARLY * max(second.value, 0.0)


def bench_lost_success(config: BenchAttribute, report: Report) -> Iterator[Result]:
    """How often the dimension that costs most comes out first, and a right one with zero."""
    cases = []
    drawn = 0
    with tempfile.TemporaryDirectory() as folder:
        trained = train(TrainConfig(task=_TASK, source="nominal", out=Path(folder)))
        policy = Policy.open(trained.run)
        for number in range(config.losses):
            case, tries = _lost(config, policy, seed=config.seed + number)
            cases.append(case)
            drawn += tries
            top = case.truth.shares[0]
            report(
                f"{number + 1} of {config.losses}: {top.name} costs {top.value:.0f} points, found"
                f" {case.found.shares[0].name} {case.found.shares[0].value:.0f}"
            )
    hits = [case.found.shares[0].name == case.truth.shares[0].name for case in cases if case.clear]
    zeros = [s for case in cases for s in case.found.shares if s.name in case.right]
    covered = [not share.clear for share in zeros]
    chosen = (
        f"{len(cases)} of {drawn} plants in the pendulum, those that cost {100 * _COSTLY:.0f}"
        " points or more"
    )
    yield Result(
        name="attribute.success_top1",
        value=float(np.mean(hits)),
        unit="share",
        target=">= 0.9",
        note=f"{chosen}; {sum(hits)} of the {len(hits)} in which one costs {_CLEARLY} times as much"
        " as the next",
    )
    yield Result(
        name="attribute.success_zero_covered",
        value=float(np.mean(covered)),
        unit="share",
        target=">= 0.9",
        note=f"{sum(covered)} of {len(covered)} planted zeros within their 95 % intervals",
    )


def _lost(
    config: BenchAttribute, policy: Callable[[Tensor], Tensor], *, seed: int
) -> tuple[_Lost, int]:
    """A plant that costs success, attributed; and how many were drawn until it did."""
    task = find_task(_TASK)
    twin = widened(Twin.load(task.twin))
    for attempt in range(_TRIES):
        values, _, right = plant(twin, np.random.default_rng([seed, attempt, 1]))
        tried = run_trials(
            task,
            policy,
            episodes=_TRIALS,
            each=_TRIALS,
            seed=seed,
            source="nominal",
            rows=values[None],
            twin=twin,
        )
        if tried.success.mean() > 1 - _COSTLY:
            continue
        bundle = Bundle.open(config.bundles / _TASK)
        logs = recorded(bundle, twin, values, seconds=config.seconds, seed=seed)
        after = believed(twin, logs, seed=seed)
        truth = attribute_success(
            twin, planted_twin(twin, values), task, policy, draws=2, each=_TRIALS // 2, seed=seed
        )
        found = attribute_success(twin, after, task, policy, draws=16, each=16, seed=seed)
        return _Lost(truth, found, right), attempt + 1
    raise Sim2RealError(f"none of {_TRIES} plants costs a policy its success")
