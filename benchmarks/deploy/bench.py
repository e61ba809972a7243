"""The loop on a robot, its time, and its ends.

What is timed is the whole period: readings to command through graphs, supervisor, kinematics and
recording. Faults happen on stand-in hardware in virtual time; kills in real time, to processes.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.benchmark import Options, Result, side_by_side
from benchmarks.deploy.craft import Plan
from benchmarks.deploy.faults import measure_faults
from benchmarks.deploy.kills import measure_kills
from benchmarks.deploy.periods import measure_time

_FULL = Plan()
_QUICK = Plan(
    hours=0.005, kills=2, seconds=2.0, periods=300, khz_seconds=2.0, rates_hz=(10.0, 100.0)
)
# Kills first, while this process has no threads of its own that a fork would lose.
_PARTS = {"kills": measure_kills, "time": measure_time, "faults": measure_faults}


def _shards(options: Options) -> tuple[str, ...]:
    return tuple(_PARTS)


def _run(shard: str, options: Options) -> Iterator[Result]:
    return _PARTS[shard](_QUICK if options.quick else _FULL)


MEASUREMENT = side_by_side(_shards, _run, plan=_FULL)
