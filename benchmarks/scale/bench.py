"""What executors are worth: their time against local processes, and what kills do to results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import exp, log, sqrt

import numpy as np
from scipy import stats

from benchmarks.benchmark import Measurement, Options, Result, unless_installed
from benchmarks.scale.chunk import FULL, QUICK, Plan
from benchmarks.scale.efficiency import Compared, compare
from benchmarks.scale.kills import Killed, killed

_PEER = "two processes of this machine, without Ray"


@dataclass(frozen=True, kw_only=True)
class Part:
    """What a shard gives."""

    compared: Compared | None = None
    killed: Killed | None = None


def _plan(options: Options) -> Plan:
    return QUICK if options.quick else FULL


def _shards(options: Options) -> tuple[str, ...]:
    return ("efficiency", *(f"kills-{name}" for name in _plan(options).kinds))


def _run(shard: str, options: Options) -> Part:
    plan = _plan(options)
    if shard == "efficiency":
        return Part(compared=compare(plan))
    name, count = shard.removeprefix("kills-"), len(plan.kinds)
    return Part(killed=killed(plan, name, plan.kills // count, plan.driver_kills // count))


def _lacking(shard: str, options: Options) -> str:
    return "" if shard == "kills-local" else unless_installed("ray", "ray")


def _results(data: Mapping[str, Part], options: Options) -> list[Result]:
    found: list[Result] = []
    for part in data.values():
        if part.compared is not None:
            found += _compared(part.compared, _plan(options))
    kills = [part.killed for part in data.values() if part.killed is not None]
    return [*found, *(_killed(kills) if kills else ())]


def _compared(found: Compared, plan: Plan) -> Iterator[Result]:
    ratios = [log(a.work_s / b.work_s) for a, b in zip(found.local, found.ray, strict=True)]
    middle = float(np.mean(ratios))
    interval = None
    if len(ratios) > 1:
        half = stats.t.ppf(0.975, len(ratios) - 1) * np.std(ratios, ddof=1) / sqrt(len(ratios))
        interval = (exp(middle - half), exp(middle + half))
    local, ray = (np.mean([one.work_s for one in side]) for side in (found.local, found.ray))
    yield Result(
        name="scale.efficiency_2",
        value=exp(middle),
        unit="ratio",
        interval=interval,
        peer=_PEER,
        target=">= 0.9",
        note=f"time of {plan.shards} shards: {local:.1f} against {ray:.1f} s with {plan.workers}"
        f" workers of Ray, {len(ratios)} runs each in turn, after the start",
    )
    yield Result(
        name="scale.same",
        value=float(found.same),
        unit="share",
        target=">= 1.0",
        note="results of both are the same, bit for bit",
    )
    for name, side in (("local", found.local), ("ray", found.ray)):
        yield Result(
            name=f"scale.start_s.{name}",
            value=float(np.mean([one.start_s for one in side])),
            unit="s",
            note="until two workers have loaded all they need, and done two shards each",
        )
    yield Result(
        name="scale.shard_s",
        value=float(np.mean([one.shard_s for one in (*found.local, *found.ray)])),
        unit="s",
        note=f"{plan.episodes} episodes of the example pendulum",
    )
    yield Result(name="scale.shard_bytes", value=found.chunk_bytes, unit="B", note="its result")
    for name, cost in found.costs.items():
        yield Result(
            name=f"scale.driver_ms.{name}",
            value=1000 * cost.driver_s,
            unit="ms",
            note=f"processor time of the driver for a shard without work, of {plan.nothings};"
            f" {1 / cost.apart_s:.0f} a second with two workers, {cost.file_bytes:.0f} B each",
        )
    cost = found.costs["local"]
    yield Result(
        name="scale.store_ms",
        value=1000 * cost.put_s,
        unit="ms",
        note=f"to keep a result on disk; {1000 * cost.read_s:.2f} ms to read it back",
    )


def _killed(found: list[Killed]) -> Iterator[Result]:
    told = "; ".join(
        f"{one.executor}: {one.workers} workers, {one.drivers} drivers" for one in found
    )
    shards = sum(one.shards for one in found)
    yield Result(
        name="scale.killed_same",
        value=sum(one.same for one in found) / shards,
        unit="share",
        target=">= 1.0",
        note=f"of {shards} shards, workers and drivers killed by SIGKILL at random moments,"
        f" those with the result of a run left alone ({told})",
    )


MEASUREMENT = Measurement(
    kind=Part, shards=_shards, run=_run, results=_results, plan=FULL, lacking=_lacking
)
