"""Success that planted gaps cost a policy, and to which dimensions it is attributed.

A policy is trained in the pendulum's twin as written and tried in planted worlds: some dimensions
drawn from four times the twin's ranges, the others right. Which dimension truly costs most is known
by the same shares computed with the planted values.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from benchmarks.attribute.planted import Case, Plan, believed, bundle_of, clear, recorded
from benchmarks.benchmark import Result
from benchmarks.machine import ROOT
from sim2real.attribution.lost_success import attribute_success
from sim2real.errors import Sim2RealError
from sim2real.evaluation.simulated_trials import run_trials
from sim2real.learn import TrainedPolicy
from sim2real.loop import Stages, Store, run_of, widened
from sim2real.policy import BundlePolicy
from sim2real.tasks import find_task
from sim2real.testing import plant, planted_twin
from sim2real.twin import Twin

_TASK = "pendulum-swingup"
_COSTLY = 0.2
"""Success that a plant costs at least."""
_TRIES = 100
_STORE = ROOT / "runs" / "bench" / "attribute"
"""Folder of the policy: the same code does not train it again."""


def success_results(found: Sequence[Case]) -> list[Result]:
    """How often the dimension that costs most comes out first, and a right one with zero."""
    hits = [case.hit for case in found]
    covered = [not part.clear for case in found for part in case.zeros]
    return [
        Result(
            name="attribute.success_top1",
            value=float(np.mean(hits)),
            unit="share",
            target=">= 0.9",
            note=f"{sum(hits)} of {len(hits)} plants in the pendulum, of"
            f" {sum(case.drawn for case in found)} drawn, that cost {100 * _COSTLY:.0f} points or"
            " more and one dimension 1.5 times as much as the next",
        ),
        Result(
            name="attribute.success_zero_covered",
            value=float(np.mean(covered)),
            unit="share",
            target=">= 0.9",
            note=f"{sum(covered)} of {len(covered)} planted zeros within their 95 % intervals",
        ),
    ]


def success_case(plan: Plan, seed: int) -> Case:
    """A plant that costs success, one dimension clearly most, and what is found of it."""
    task, bundle = find_task(_TASK), bundle_of(_TASK)
    policy = _bundled() if plan.any_plant else trained(plan)
    twin = widened(widened(Twin.load(task.twin)))  # twice costs a policy next to nothing
    for attempt in range(_TRIES):
        planted = plant(twin, np.random.default_rng([seed, attempt, 1]))
        tried = run_trials(
            task,
            policy,
            episodes=plan.trials,
            each=plan.trials,
            seed=seed,
            source="nominal",
            rows=planted.values[None],
            twin=twin,
            threads=1,
        )
        if not plan.any_plant and tried.success.mean() > 1 - _COSTLY:
            continue
        share = partial(attribute_success, twin, task=task, policy=policy, seed=seed, threads=1)
        truth = share(planted_twin(twin, planted.values), draws=2, each=plan.trials // 2)
        if not plan.any_plant and not clear(truth):
            continue
        logs = recorded(bundle, twin, planted.values, seconds=plan.seconds, seed=seed)
        found = share(believed(plan, twin, logs, seed=seed), draws=plan.robots, each=plan.robots)
        return Case.of(_TASK, planted, truth, found, drawn=attempt + 1)
    raise Sim2RealError(f"none of {_TRIES} plants costs success by one dimension most")


def trained(plan: Plan) -> TrainedPolicy:
    """A policy that was trained in the pendulum's twin as written."""
    stages = Stages(task=_TASK, robot="", person="bench", seed=plan.seed)
    return TrainedPolicy.open(run_of(Store(_STORE).run(stages.train("nominal"))))


def _bundled() -> BundlePolicy:
    """The policy of the example bundle: there at once."""
    return BundlePolicy(bundle_of(_TASK))
