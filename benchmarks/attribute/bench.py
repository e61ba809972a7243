"""`sim2real bench attribute`: gaps planted in twins, and to which dimensions they are attributed.

Each planted world has some dimensions off, drawn from their priors, and the others right. It is
recorded with noise, moving by a multisine and doing its task with the bundled policy; the twin is
identified from that, and the error attributed. Which dimension is truly the largest is known by the
same shares computed with the planted values themselves.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sim2real.attribute.trajectory import attribute_trajectory
from sim2real.bench.config import BenchAttribute
from sim2real.bench.lost_success import bench_lost_success
from sim2real.bench.planted import (
    HORIZON_S,
    Case,
    believed,
    cases,
    plant,
    planted_twin,
    recorded,
)
from sim2real.bench.run import Report, Result
from sim2real.errors import Sim2RealError
from sim2real.policy import Bundle
from sim2real.twin import Twin

_REPLAYED = 20
"""Segments that errors are attributed on."""
_CLEARLY = 1.5
"""Largest true share against the next, from which it is clear which is largest."""
_VISIBLE = 0.25
"""Excess error a reading [variances of its noise] from which a gap is there to be attributed."""
_TRIES = 20
"""Plants that are drawn at most until one has a largest."""


def bench_attribute(config: BenchAttribute, report: Report) -> Iterator[Result]:
    """Errors and lost success, each as far as it is asked for."""
    if config.combinations:
        yield from _bench_trajectory(config, report)
    if config.losses:
        yield from bench_lost_success(config, report)


def _bench_trajectory(config: BenchAttribute, report: Report) -> Iterator[Result]:
    """How often the largest planted dimension comes out largest, and a right one with zero."""
    tasks = [config.tasks[k % len(config.tasks)] for k in range(config.combinations)]
    found = list(cases(config, trajectory_case, tasks, report))
    hits = [case.hit for case in found]
    misses = [
        f"{task} {case.truth.top.name} as {case.found.top.name}"
        for task, case in zip(tasks, found, strict=True)
        if not case.hit
    ]
    covered = [not share.clear for case in found for share in case.zeros]
    blamed = [
        f"{task} {share.name} [{share.low:.1f}, {share.high:.1f}] %"
        for task, case in zip(tasks, found, strict=True)
        for share in case.zeros
        if share.clear
    ]
    combinations = (
        f"{sum(hits)} of {len(hits)} combinations, of {sum(case.drawn for case in found)} drawn, in"
        f" which one dimension is {_CLEARLY} times the next and the gap is seen"
    )
    yield Result(
        name="attribute.top1",
        value=float(np.mean(hits)),
        unit="share",
        target=">= 0.9",
        note=f"{combinations}; which is largest is known by shares with the planted values"
        + (f"; missed: {', '.join(misses)}" if misses else ""),
    )
    yield Result(
        name="attribute.zero_covered",
        value=float(np.mean(covered)),
        unit="share",
        target=">= 0.9",
        note=f"{sum(covered)} of {len(covered)} planted zeros within their 95 % intervals"
        + (f"; blamed: {', '.join(blamed)}" if blamed else ""),
    )


def trajectory_case(config: BenchAttribute, task: str, seed: int) -> Case:
    """A gap of which one dimension is clearly the largest part, and what is found of it."""
    bundle = Bundle.open(config.bundles / task)
    twin = Twin.load(bundle.twin, check=False)
    for attempt in range(_TRIES):
        values, _, right = plant(twin, np.random.default_rng([seed, attempt]))
        logs = recorded(bundle, twin, values, seconds=config.seconds, seed=seed)
        known = planted_twin(twin, values)
        try:
            truth = attribute_trajectory(
                twin, known, logs, horizon_s=HORIZON_S, segments=_REPLAYED, draws=1, threads=1
            )
        except Sim2RealError:  # too small a gap to be seen
            continue
        first, second = truth.shares[:2]
        if truth.before >= _VISIBLE and first.value >= _CLEARLY * max(second.value, 0.0):
            found = attribute_trajectory(
                twin,
                believed(twin, logs, seed=config.seed),
                logs,
                horizon_s=HORIZON_S,
                segments=_REPLAYED,
                seed=config.seed,
                threads=1,
            )
            return Case(truth=truth, found=found, right=right, drawn=attempt + 1)
    raise Sim2RealError(f"no plant of {_TRIES} in twin {twin.name!r} has a largest dimension")
