"""Gaps planted in twins, and to which dimensions they are attributed.

Each planted world has some dimensions off, drawn from their priors, and the others right. It is
recorded with noise, moving by a multisine and doing its task with the bundled policy; the twin is
identified from that, and the error attributed. Which dimension is truly the largest is known by the
same shares computed with the planted values themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.attribute.lost_success import success_case, success_results, trained
from benchmarks.attribute.planted import (
    FULL,
    HORIZON_S,
    QUICK,
    Case,
    Plan,
    believed,
    bundle_of,
    clear,
    recorded,
)
from benchmarks.benchmark import Measurement, Options, Result, report
from sim2real.attribution.trajectory_error import attribute_trajectory
from sim2real.errors import Sim2RealError
from sim2real.testing import plant, planted_twin
from sim2real.twin import Twin

_VISIBLE = 0.25
"""Excess error a reading [variances of its noise] from which a gap is there to be attributed."""
_TRIES = 20
"""Plants that are drawn at most until one has a largest."""


def _plan(options: Options) -> Plan:
    return QUICK if options.quick else FULL


def _shards(options: Options) -> tuple[str, ...]:
    plan = _plan(options)
    tasks = [plan.tasks[k % len(plan.tasks)] for k in range(plan.combinations)]
    return (
        *(f"error-{k:02d}-{task}" for k, task in enumerate(tasks)),
        *(f"success-{k:02d}" for k in range(plan.losses)),
    )


def _prepare(shards: Sequence[str], options: Options) -> None:
    if not options.quick and any(shard.startswith("success") for shard in shards):
        trained(FULL)  # once, before several want it


def _run(shard: str, options: Options) -> Case:
    plan = _plan(options)
    what, number, *task = shard.split("-", 2)
    seed = plan.seed + int(number)
    case = error_case(plan, task[0], seed) if what == "error" else success_case(plan, seed)
    report(f"{shard}: {case}")
    return case


def _results(data: Mapping[str, Case], options: Options) -> list[Result]:
    errors = [case for shard, case in data.items() if shard.startswith("error")]
    losses = [case for shard, case in data.items() if shard.startswith("success")]
    return [
        *(error_results(errors) if errors else ()),
        *(success_results(losses) if losses else ()),
    ]


def error_results(found: Sequence[Case]) -> list[Result]:
    """How often the largest planted dimension comes out largest, and a right one with zero."""
    hits = [case.hit for case in found]
    misses = [
        f"{case.task} {case.largest} as {case.found[0].name}" for case in found if not case.hit
    ]
    covered = [not part.clear for case in found for part in case.zeros]
    blamed = [
        f"{case.task} {part.name} [{part.low:.1f}, {part.high:.1f}] %"
        for case in found
        for part in case.zeros
        if part.clear
    ]
    return [
        Result(
            name="attribute.top1",
            value=float(np.mean(hits)),
            unit="share",
            target=">= 0.9",
            note=f"{sum(hits)} of {len(hits)} combinations, of {sum(case.drawn for case in found)}"
            " drawn, in which one dimension is 1.5 times the next and the gap is seen; which is"
            " largest is known by shares with the planted values"
            + (f"; missed: {', '.join(misses)}" if misses else ""),
        ),
        Result(
            name="attribute.zero_covered",
            value=float(np.mean(covered)),
            unit="share",
            target=">= 0.9",
            note=f"{sum(covered)} of {len(covered)} planted zeros within their 95 % intervals"
            + (f"; blamed: {', '.join(blamed)}" if blamed else ""),
        ),
    ]


def error_case(plan: Plan, task: str, seed: int) -> Case:
    """A gap of which one dimension is clearly the largest part, and what is found of it."""
    bundle = bundle_of(task)
    twin = Twin.load(bundle.twin, check=False)
    for attempt in range(_TRIES):
        planted = plant(twin, np.random.default_rng([seed, attempt]))
        logs = recorded(bundle, twin, planted.values, seconds=plan.seconds, seed=seed)
        try:
            truth = attribute_trajectory(
                twin,
                planted_twin(twin, planted.values),
                logs,
                horizon_s=HORIZON_S,
                segments=plan.segments,
                draws=1,
                threads=1,
            )
        except Sim2RealError:  # too small a gap to be seen
            continue
        if plan.any_plant or (truth.before >= _VISIBLE and clear(truth)):
            found = attribute_trajectory(
                twin,
                believed(plan, twin, logs, seed=plan.seed),
                logs,
                horizon_s=HORIZON_S,
                segments=plan.segments,
                draws=plan.draws,
                seed=plan.seed,
                threads=1,
            )
            return Case.of(task, planted, truth, found, drawn=attempt + 1)
    raise Sim2RealError(f"no plant of {_TRIES} in twin {twin.name!r} has a largest dimension")


MEASUREMENT = Measurement(
    kind=Case, shards=_shards, run=_run, results=_results, plan=FULL, prepare=_prepare
)
