"""The loop on a robot: its time, its ends, and what faults do to the robot.

What is timed is the whole period: readings to command through graphs, supervisor, kinematics and
recording. Faults happen on stand-in hardware in virtual time, and are judged from what was true;
kills in real time, to processes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks.benchmark import Measurement, Options, Result
from benchmarks.deploy.craft import Plan
from benchmarks.deploy.false_stops import Undisturbed, false_stop_results, undisturbed
from benchmarks.deploy.faults import Ended, fault_results, faults_of, slug
from benchmarks.deploy.flights import DRAWN
from benchmarks.deploy.guards import Guarded, guard_results, guards_without, has_table
from benchmarks.deploy.hostile import Hostilities, hostile_results, hostilities
from benchmarks.deploy.kills import measure_kills
from benchmarks.deploy.periods import measure_time

_FULL = Plan()
_QUICK = Plan(
    faults=2, runs=3, sequences=40, without=0, kills=2, seconds=2.0, periods=300, khz_seconds=2.0,
    rates_hz=(10.0, 100.0), run_shards=1, hostile_shards=1,
)  # fmt: skip
_KINDS = {slug(kind): kind for kind in DRAWN}


@dataclass(frozen=True, kw_only=True)
class Part:
    """What a shard gives."""

    results: tuple[Result, ...] = ()
    """Figures that stand on their own."""
    ended: dict[str, Ended] = field(default_factory=dict)
    """How faults ended, by kind."""
    undisturbed: tuple[Undisturbed, ...] = ()
    hostile: tuple[Hostilities, ...] = ()
    guarded: tuple[Guarded, ...] = ()


def _sizes(options: Options) -> Plan:
    return _QUICK if options.quick else _FULL


def _shards(options: Options) -> tuple[str, ...]:
    plan = _sizes(options)
    return (
        # Kills first, while this process has no threads of its own that a fork would lose.
        "kills",
        "time",
        *(f"faults/{name}" for name in _KINDS),
        *(f"false-stops/{k + 1}" for k in range(plan.run_shards)),
        *(f"hostile/{k + 1}" for k in range(plan.hostile_shards)),
        *(("guards",) if has_table() else ()),
    )


def _run(shard: str, options: Options) -> Part:
    plan = _sizes(options)
    part, _, which = shard.partition("/")
    if part == "kills":
        return Part(results=tuple(measure_kills(plan)))
    if part == "time":
        return Part(results=tuple(measure_time(plan)))
    if part == "faults":
        kind = _KINDS[which]
        return Part(ended={kind: faults_of(kind, range(plan.faults), seed=plan.seed)})
    if part == "guards":
        return Part(guarded=(guards_without(plan.without, plan.sequences, seed=plan.seed),))
    if part == "false-stops":
        count = plan.runs // plan.run_shards
        first = (int(which) - 1) * count
        return Part(undisturbed=(undisturbed(range(first, first + count), seed=plan.seed),))
    count = plan.sequences // plan.hostile_shards
    return Part(hostile=(hostilities((int(which) - 1) * count, count),))


def _results(data: Mapping[str, Part], options: Options) -> list[Result]:
    found = [result for part in data.values() for result in part.results]
    ended = {kind: one for part in data.values() for kind, one in part.ended.items()}
    runs = [one for part in data.values() for one in part.undisturbed]
    hostile = [one for part in data.values() for one in part.hostile]
    guarded = [one for part in data.values() for one in part.guarded]
    return [
        *found,
        *(fault_results(ended) if ended else ()),
        *(false_stop_results(runs) if runs else ()),
        *(hostile_results(hostile) if hostile else ()),
        *(guard_results(guarded) if guarded else ()),
    ]


MEASUREMENT = Measurement(kind=Part, shards=_shards, run=_run, results=_results, plan=_FULL)
