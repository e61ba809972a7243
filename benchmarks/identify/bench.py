"""Truths planted in simulated recordings, and how they come back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.benchmark import Measurement, Options, Result, unless_installed
from benchmarks.identify.calibration import Placed, calibration, placed_truths
from benchmarks.identify.growth import growth
from benchmarks.identify.pace import against_pace
from benchmarks.identify.plan import Plan
from benchmarks.identify.sysid import against_sysid

_FULL, _QUICK = Plan(), Plan(truths=1, groups=1, seconds=6.0)
_PARTS = {"sysid": against_sysid, "pace": against_pace, "growth": growth}


@dataclass(frozen=True, kw_only=True)
class Part:
    """What a shard gives: figures, or truths that are looked at together with others."""

    results: tuple[Result, ...] = ()
    placed: Placed | None = None


def _plan(options: Options) -> Plan:
    return _QUICK if options.quick else _FULL


def _shards(options: Options) -> tuple[str, ...]:
    return (*_PARTS, *(f"calibration-{k + 1}" for k in range(_plan(options).groups)))


def _lacking(shard: str, options: Options) -> str:
    if shard == "pace":
        return unless_installed("cmaes")
    return _sysid_lacks() if shard in _PARTS else ""


def _sysid_lacks() -> str:
    """`mujoco.sysid` is there without its requirements, and then empty."""
    from mujoco import sysid

    return "" if hasattr(sysid, "optimize") else "mujoco.sysid: pip install 'sim2real[bench]'"


def _run(shard: str, options: Options) -> Part:
    plan = _plan(options)
    if shard in _PARTS:
        return Part(results=tuple(_PARTS[shard](plan)))
    return Part(placed=placed_truths(plan, int(shard.removeprefix("calibration-")) - 1))


def _results(data: Mapping[str, Part], options: Options) -> list[Result]:
    found = [result for part in data.values() for result in part.results]
    parts = [part.placed for part in data.values() if part.placed]
    if parts:
        found += calibration(Placed.joined(parts), _plan(options))
    return found


MEASUREMENT = Measurement(
    kind=Part, shards=_shards, run=_run, results=_results, plan=_FULL, lacking=_lacking
)
