"""Strategies on many units of stand-in hardware, under one budget, and loops that are killed.

A shard is a unit, which takes ten minutes to an hour on one core, or some kills of loops.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from scipy.stats import wilcoxon

from benchmarks.benchmark import Measurement, Options, Result
from benchmarks.transfer.kills import killed_loops
from benchmarks.transfer.units import FULL, QUICK, Score, Sizes, share_policies, tried
from sim2real.intervals import clustered


@dataclass(frozen=True, kw_only=True)
class Tried:
    """What a shard gives: strategies on a unit, or loops that were killed."""

    outcomes: dict[str, Score] = field(default_factory=dict)
    """Each strategy's attempts on one unit."""
    kills: int = 0
    explained: int = 0
    """Kills of loops that explain the gap too, which takes most of their time."""
    same: tuple[bool, ...] = ()
    """Whether each killed loop ended as one that was left alone."""


def _sizes(options: Options) -> Sizes:
    return QUICK if options.quick else FULL


def _shards(options: Options) -> tuple[str, ...]:
    sizes = _sizes(options)
    return (
        *(f"{task}/unit-{unit}" for task, units in sizes.units.items() for unit in units),
        *(f"kills/{k + 1}" for k, count in enumerate(sizes.kills) if count),
    )


def _prepare(shards: Sequence[str], options: Options) -> None:
    for task in dict.fromkeys(shard.split("/")[0] for shard in shards):
        if task != "kills" and not options.quick:
            share_policies(FULL, task)


def _run(shard: str, options: Options) -> Tried:
    sizes = _sizes(options)
    task, which = shard.split("/")
    if options.quick:
        with TemporaryDirectory(prefix="bench-transfer-") as made:
            sizes = replace(sizes, store=Path(made))
            share_policies(sizes, task)
            return Tried(outcomes=tried(sizes, task, int(which.removeprefix("unit-"))))
    if task != "kills":
        return Tried(outcomes=tried(sizes, task, int(which.removeprefix("unit-"))))
    number = int(which)
    count, explained = sizes.kills[number - 1], number == len(sizes.kills)
    same = killed_loops(count, [] if explained else ["--no-explain"], (sizes.plan.seed, 3, number))
    return Tried(kills=count, explained=count if explained else 0, same=same)


def _results(data: Mapping[str, Tried], options: Options) -> list[Result]:
    found: list[Result] = []
    identified: list[Score] = []
    for task in _sizes(options).units:
        units = [one.outcomes for shard, one in data.items() if shard.startswith(f"{task}/")]
        if not units:
            continue
        name = "pendulum" if task == "pendulum-swingup" else task
        scores = {strategy: [unit[strategy] for unit in units] for strategy in units[0]}
        for strategy, mine in scores.items():
            found += strategy_results(name, strategy, mine)
        for other in ("wide", "adr"):
            if "identified" in scores and other in scores:
                found.append(better(name, scores["identified"], scores[other], other))
        identified += scores.get("identified", [])
    found += prediction_results(identified)
    loops = [one for one in data.values() if one.same]
    return [*found, *(killed_results(loops) if loops else ())]


def killed_results(found: Sequence[Tried]) -> Iterator[Result]:
    """Whether killed loops ended with the same numbers."""
    same = [one for part in found for one in part.same]
    yield Result(
        name="transfer.killed_loops_same",
        value=float(np.mean(same)),
        unit="share",
        target=">= 1.0",
        note=f"{sum(part.kills for part in found)} kills at random moments of {len(same)} loops,"
        f" {sum(part.explained for part in found)} of them in loops that explain the gap too, each"
        " then run to its end: the same summary but for ids of recordings",
    )


def strategy_results(task: str, strategy: str, found: Sequence[Score]) -> Iterator[Result]:
    sim, real = (float(np.mean([getattr(one, name) for one in found])) for name in ("sim", "real"))
    all_units = clustered(
        np.array([one.wins for one in found]), np.array([len(one.won) for one in found])
    )
    worst = min(one.real for one in found)
    known = strategy == "identified"
    name = f"transfer.{task}.{strategy}"
    side = "below" if sim >= real else "above"
    drop = f"; {100 * abs(sim - real):.1f} points {side} simulation" if known else ""
    spent = (
        f"; at most {max(one.trials for one in found)} trials and"
        f" {max(one.recorded_s for one in found):.0f} s of motion a unit"
        if found[0].trials
        else ""
    )
    yield Result(
        name=f"{name}.sim",
        value=sim,
        unit="share",
        target=">= 0.95" if strategy == "nominal" else "",
        note="mean success in simulation, 500 episodes a policy",
    )
    yield Result(
        name=f"{name}.real",
        value=real,
        unit="share",
        interval=(all_units.low, all_units.high),
        target=">= 0.9" if known else "<= 0.6" if strategy == "nominal" else "",
        note=f"{all_units}, of {len(found)} units that differ{drop}{spent}",
    )
    yield Result(
        name=f"{name}.worst_unit",
        value=worst,
        unit="share",
        target=">= 0.75" if known else "",
        note="each: " + ", ".join(f"{one.real:.0%}" for one in found),
    )


def prediction_results(found: Sequence[Score]) -> Iterator[Result]:
    """Whether what was said of units came true."""
    for name, when, said in (
        ("prediction_coverage", "at the loop's end", [one.expected for one in found]),
        ("prediction_coverage_before", "before its first attempt", [one.before for one in found]),
    ):
        held = [
            interval[0] <= one.real <= interval[1]
            for one, interval in zip(found, said, strict=True)
            if interval
        ]
        widths = [interval[1] - interval[0] for interval in said if interval]
        if held:
            yield Result(
                name=f"transfer.{name}",
                value=float(np.mean(held)),
                unit="share",
                target=">= 0.85",
                note=f"{sum(held)} of {len(held)} units within the 90 % interval that was predicted"
                f" for `identified` {when}, {100 * float(np.mean(widths)):.0f} points wide",
            )


def better(task: str, one: Sequence[Score], other: Sequence[Score], name: str) -> Result:
    """Wilcoxon's signed-rank test over units."""
    gain = np.array([a.real - b.real for a, b in zip(one, other, strict=True)])
    p_value = float(wilcoxon(gain, alternative="greater").pvalue) if gain.any() else 1.0
    return Result(
        name=f"transfer.{task}.p_identified_over_{name}",
        value=p_value,
        unit="p-value",
        target="<= 0.05" if task == "pendulum" else "",
        note=f"paired over {len(gain)} units, one-sided; {100 * gain.mean():+.1f} points",
    )


MEASUREMENT = Measurement(
    kind=Tried, shards=_shards, run=_run, results=_results, plan=FULL.plan, prepare=_prepare
)
