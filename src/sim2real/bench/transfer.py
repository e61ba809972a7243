"""`sim2real bench transfer`: strategies on many units of stand-in hardware, under one budget.

Strategies that know the robot run the whole loop with each unit, within its budget. Then every
strategy's policy makes the same number of attempts on the same unit, with the same set-ups. Every
step is kept, so that a bench that was interrupted goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from scipy.stats import wilcoxon

from sim2real.bench.config import BenchTransfer
from sim2real.bench.loop_kills import killed_loops
from sim2real.bench.run import Report, Result
from sim2real.bench.workers import Workers
from sim2real.errors import Sim2RealError
from sim2real.evaluate.intervals import clustered
from sim2real.loop.config import LoopConfig
from sim2real.loop.loop import Closed, loop
from sim2real.loop.stages import Stages, prediction_of
from sim2real.loop.steps import Step, Store
from sim2real.loop.strategies import policy_of
from sim2real.tasks import find_task

_FIRST_SETUP = 1_000
"""Number of the first set-up of the attempts that count; those of the loop are lower."""


@dataclass(frozen=True)
class Score:
    """One strategy on one unit."""

    sim: float
    real: float
    before: tuple[float, float] | None = None
    """Interval of 90 % for what the attempts would show, known before the policy made any."""
    expected: tuple[float, float] | None = None
    """The same, with the attempts that the loop made."""
    recorded_s: float = 0.0
    trials: int = 0


def bench_transfer(config: BenchTransfer, report: Report) -> Iterator[Result]:
    """Success of each strategy in simulation and on units."""
    if min(config.units, config.arm_units, config.trials) < 1:
        raise Sim2RealError("--units, --arm-units and --trials are at least 1")
    identified: list[Score] = []
    for task in config.tasks:
        units = range(config.first_unit, config.first_unit + _units(config, task))
        _common(config, task, report)
        scores: dict[str, list[Score]] = {strategy: [] for strategy in config.strategies}
        with Workers(config.workers) as workers:
            for unit, found in zip(
                units, workers.map(partial(_scores, config, task), units), strict=True
            ):
                for strategy, score in found.items():
                    scores[strategy].append(score)
                told = ", ".join(
                    f"{strategy} {score.real:.0%}" for strategy, score in found.items()
                )
                report(f"{task} unit {unit}: {told}")
        name = task.split("-", maxsplit=1)[0] if task == "pendulum-swingup" else task
        for strategy, mine in scores.items():
            yield from _results(name, strategy, mine, config.trials)
        for other in ("wide", "adr"):
            if "identified" in scores and other in scores:
                yield _beats(name, scores["identified"], scores[other], other)
        identified += scores.get("identified", [])
    yield from _predictions(identified)
    if config.kills:
        yield from killed_loops(config, report)


def _units(config: BenchTransfer, task: str) -> int:
    return config.units if task == "pendulum-swingup" else config.arm_units


def _common(config: BenchTransfer, task: str, report: Report) -> None:
    """What all units share: policies that know none of them."""
    store = Store(config.store / task / "steps")
    stages = Stages(task=task, robot="", person="bench", seed=config.seed)
    for strategy in dict.fromkeys(("nominal", *config.strategies)):
        if not strategy.startswith("identified"):
            policy = _unknowing(strategy, stages)
            success = store.run(stages.evaluate(policy)).result["value"]
            store.run(stages.export(policy))
            report(f"{task}, {strategy}: {success:.1%} in simulation")


def _unknowing(strategy: str, stages: Stages) -> Step:
    """Training of a strategy that knows no unit."""
    task = find_task(stages.task)
    iterations = task.training.iterations
    nominal = stages.train("nominal", iterations=iterations)
    again = round(task.again * iterations)
    policy, _ = policy_of(
        strategy, stages, nominal=nominal, recorded=(), iterations=iterations, again=again
    )
    return policy


def _scores(config: BenchTransfer, task: str, unit: int) -> dict[str, Score]:
    """Every strategy on one unit, on one thread."""
    return {strategy: _score(config, task, unit, strategy) for strategy in config.strategies}


def _score(config: BenchTransfer, task: str, unit: int, strategy: str) -> Score:
    """Train as the strategy does, and try it on the unit."""
    folder = config.store / task
    robot = f"unit:{unit}"
    store = Store(folder / "steps")
    stages = Stages(task=task, robot=robot, person="bench", seed=config.seed, force=True, threads=1)
    recorded_s, trials, before, expected = 0.0, 0, None, None
    if strategy.startswith("identified"):
        closed = _looped(config, folder, task, robot, strategy)
        last = closed.rounds[-1]
        policy = last.policy.step
        recorded_s, trials = closed.recorded_s, closed.trials
        if last.draws is not None:
            before, expected = (
                (said.shown_low, said.shown_high)
                for said in (
                    prediction_of(last.draws, trials=config.trials, won=won)
                    for won in ([], last.won)
                )
            )
    else:
        policy = _unknowing(strategy, stages)
    sim = store.run(stages.evaluate(policy)).result["value"]
    bundle = stages.export(policy)
    ladder = stages.ladder(bundle, stages.record(seconds=config.seconds))
    tried = stages.trials(bundle, ladder, first=_FIRST_SETUP, count=config.trials)
    won = store.run(tried).result["success"]
    return Score(
        sim=float(sim),
        real=float(np.mean(won)),
        before=before,
        expected=expected,
        recorded_s=recorded_s,
        trials=trials,
    )


def _looped(config: BenchTransfer, folder: Path, task: str, robot: str, strategy: str) -> Closed:
    """The loop's last policy for one unit; all loops of a task share what they have in common."""
    return loop(
        LoopConfig(
            task=task,
            robot=robot,
            strategy=strategy,  # type: ignore[arg-type]
            budget=str(config.budget),
            seconds=config.seconds,
            seed=config.seed,
            force=True,
            explain=False,
            threads=1,
            out=folder / f"{strategy}-{robot.replace(':', '-')}",
        ),
        store=Store(folder / "steps"),
    )


def _results(task: str, strategy: str, found: list[Score], trials: int) -> Iterator[Result]:
    sim, real = (float(np.mean([getattr(one, name) for one in found])) for name in ("sim", "real"))
    won = np.array([round(one.real * trials) for one in found])
    all_units = clustered(won, np.full(len(found), trials))
    worst = min(one.real for one in found)
    known = strategy == "identified"
    name = f"transfer.{task}.{strategy}"
    drop = f"; {100 * (sim - real):.1f} points below simulation" if known else ""
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


def _predictions(found: list[Score]) -> Iterator[Result]:
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


def _beats(task: str, one: list[Score], other: list[Score], name: str) -> Result:
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
