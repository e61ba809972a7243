"""Success that planted gaps cost a policy, and to which dimensions it is attributed.

A policy is trained in the pendulum's twin as written and tried in planted worlds: some dimensions
drawn from four times the twin's ranges, the others right. Which dimension truly costs most is known
by the same shares computed with the planted values.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from sim2real.attribute.attribution import Attribution
from sim2real.attribute.success import attribute_success
from sim2real.bench.config import BenchAttribute
from sim2real.bench.planted import Case, believed, cases, plant, planted_twin, recorded
from sim2real.bench.run import Report, Result
from sim2real.errors import Sim2RealError
from sim2real.evaluate.trials import run_trials
from sim2real.learn import Policy
from sim2real.loop import Stages, Store, run_of, widened
from sim2real.policy import Bundle
from sim2real.tasks import find_task
from sim2real.twin import Twin

_TASK = "pendulum-swingup"
_COSTLY = 0.2
"""Success that a plant costs at least."""
_CLEARLY = 1.5
"""Largest true share against the next, from which it is clear which costs most."""
_TRIES = 100
_TRIALS = 256


def bench_lost_success(config: BenchAttribute, report: Report) -> Iterator[Result]:
    """How often the dimension that costs most comes out first, and a right one with zero."""
    _policy(config)  # once, before several want it
    found = list(cases(config, success_case, [_TASK] * config.losses, report))
    hits = [case.hit for case in found]
    covered = [not share.clear for case in found for share in case.zeros]
    yield Result(
        name="attribute.success_top1",
        value=float(np.mean(hits)),
        unit="share",
        target=">= 0.9",
        note=f"{sum(hits)} of {len(hits)} plants in the pendulum, of"
        f" {sum(case.drawn for case in found)} drawn, that cost {100 * _COSTLY:.0f} points or more"
        f" and one dimension {_CLEARLY} times as much as the next",
    )
    yield Result(
        name="attribute.success_zero_covered",
        value=float(np.mean(covered)),
        unit="share",
        target=">= 0.9",
        note=f"{sum(covered)} of {len(covered)} planted zeros within their 95 % intervals",
    )


def success_case(config: BenchAttribute, name: str, seed: int) -> Case:
    """A plant that costs success, one dimension clearly most, and what is found of it."""
    task, policy = find_task(name), _policy(config)
    twin = widened(widened(Twin.load(task.twin)))  # twice costs a policy next to nothing
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
            threads=1,
        )
        if tried.success.mean() > 1 - _COSTLY:
            continue
        share = partial(attribute_success, twin, task=task, policy=policy, seed=seed, threads=1)
        truth = share(planted_twin(twin, values), draws=2, each=_TRIALS // 2)
        if not _clear(truth):
            continue
        logs = recorded(
            Bundle.open(config.bundles / name), twin, values, seconds=config.seconds, seed=seed
        )
        found = share(believed(twin, logs, seed=seed), draws=16, each=16)
        return Case(truth=truth, found=found, right=right, drawn=attempt + 1)
    raise Sim2RealError(f"none of {_TRIES} plants costs success by one dimension most")


def _clear(truth: Attribution) -> bool:
    """Whether one dimension costs most."""
    first, second = truth.shares[:2]
    return first.value >= _CLEARLY * max(second.value, 0.0)


def _policy(config: BenchAttribute) -> Policy:
    """A policy that was trained in the pendulum's twin as written."""
    trained = Stages(task=_TASK, robot="", person="bench", seed=config.seed).train("nominal")
    return Policy.open(run_of(Store(config.store).run(trained)))
