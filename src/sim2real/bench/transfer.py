"""`sim2real bench transfer`: strategies on many units of stand-in hardware, under one budget.

Strategies that know the robot run the whole loop with each unit, within its budget. Then every
strategy's policy makes the same number of attempts on the same unit, with the same set-ups. Every
step is kept, so that a bench that was interrupted goes on; outcomes are kept by unit, so that units
can be tried on different days.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import wilcoxon

from sim2real.bench.config import BenchTransfer
from sim2real.bench.loop_kills import killed_loops
from sim2real.bench.run import Report, Result, commit, machine
from sim2real.bench.workers import Workers
from sim2real.errors import Sim2RealError, table_at
from sim2real.evaluate.intervals import clustered
from sim2real.files import read_json, write_json
from sim2real.loop import (
    KeptStep,
    LoopConfig,
    LoopResult,
    Stages,
    Store,
    close_the_loop,
    policy_of,
    prediction_of,
)
from sim2real.tasks import find_task

_FIRST_SETUP = 1_000
"""Number of the first set-up of the attempts that count; those of the loop are lower."""


@dataclass(frozen=True)
class Score:
    """One strategy on one unit."""

    sim: float
    won: tuple[bool, ...]
    """Outcome of every attempt on the unit."""
    before: tuple[float, float] | None = None
    """Interval of 90 % for what the attempts would show, known before the policy made any."""
    expected: tuple[float, float] | None = None
    """The same, with the attempts that the loop made."""
    recorded_s: float = 0.0
    trials: int = 0

    @property
    def real(self) -> float:
        """Success on the unit."""
        return float(np.mean(self.won))

    def to_dict(self) -> dict[str, Any]:
        """Plain data; attempts as a row of 1 and 0."""
        return {**asdict(self), "won": "".join("01"[outcome] for outcome in self.won)}

    @staticmethod
    def of_dict(data: dict[str, Any]) -> Score:
        """What `to_dict` gave."""
        before, expected = (
            tuple(data[name]) if data[name] else None for name in ("before", "expected")
        )
        won = tuple(outcome == "1" for outcome in data["won"])
        return Score(**{**data, "won": won, "before": before, "expected": expected})


def bench_transfer(config: BenchTransfer, report: Report) -> Iterator[Result]:
    """Success of each strategy in simulation and on units."""
    if min(config.units, config.arm_units, config.trials) < 1:
        raise Sim2RealError("--units, --arm-units and --trials are at least 1")
    identified: list[Score] = []
    for task in config.tasks:
        units = range(config.first_unit, config.first_unit + _units(config, task))
        _try(config, task, units, report)
        scores: dict[str, list[Score]] = {strategy: [] for strategy in config.strategies}
        for unit in units:
            for strategy, score in _read(config, task, unit).items():
                scores[strategy].append(score)
        name = task.split("-", maxsplit=1)[0] if task == "pendulum-swingup" else task
        for strategy, mine in scores.items():
            yield from _results(name, strategy, mine)
        for other in ("wide", "adr"):
            if "identified" in scores and other in scores:
                yield _beats(name, scores["identified"], scores[other], other)
        identified += scores.get("identified", [])
    yield from _predictions(identified)
    if config.kills:
        yield from killed_loops(config, report)


def _units(config: BenchTransfer, task: str) -> int:
    return config.units if task == "pendulum-swingup" else config.arm_units


def _try(config: BenchTransfer, task: str, units: range, report: Report) -> None:
    """Try every strategy on units that have no outcomes yet."""
    left = [unit for unit in units if not _path(config, task, unit).is_file()]
    if not left:
        return
    made = {"commit": commit(), "machine": machine()}
    _common(config, task, report)
    with Workers(config.workers) as workers:
        for unit, _ in zip(
            left, workers.map(partial(_scored, config, task, made), left), strict=True
        ):
            found = _read(config, task, unit)
            told = ", ".join(f"{strategy} {score.real:.0%}" for strategy, score in found.items())
            report(f"{task} unit {unit}: {told}")


def _path(config: BenchTransfer, task: str, unit: int) -> Path:
    return config.scores / task / f"unit-{unit}.json"


def _plan(config: BenchTransfer) -> dict[str, Any]:
    """What outcomes depend on, beside the code and the unit."""
    return {
        "strategies": list(config.strategies),
        "trials": config.trials,
        "budget": config.budget,
        "seconds": config.seconds,
        "seed": config.seed,
    }


def _scored(config: BenchTransfer, task: str, made: dict[str, Any], unit: int) -> None:
    """Try every strategy on one unit, on one thread, and keep the outcomes."""
    found = {strategy: _score(config, task, unit, strategy) for strategy in config.strategies}
    date = time.strftime("%Y-%m-%d", time.gmtime())
    outcomes = {strategy: score.to_dict() for strategy, score in found.items()}
    content = {**made, "date": date, "plan": _plan(config), "outcomes": outcomes}
    write_json(_path(config, task, unit), content)


def _read(config: BenchTransfer, task: str, unit: int) -> dict[str, Score]:
    """Every strategy on one unit, as it was kept."""
    path = _path(config, task, unit)
    content = table_at(read_json(path), str(path))
    if content.get("plan") != _plan(config):
        raise Sim2RealError(f"{path} was measured with another plan: {content.get('plan')}")
    return {strategy: Score.of_dict(score) for strategy, score in content["outcomes"].items()}


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


def _unknowing(strategy: str, stages: Stages) -> KeptStep:
    """Training of a strategy that knows no unit."""
    task = find_task(stages.task)
    iterations = task.training.iterations
    nominal = stages.train("nominal", iterations=iterations)
    again = round(task.again * iterations)
    policy, _ = policy_of(
        strategy, stages, nominal=nominal, recorded=(), iterations=iterations, again=again
    )
    return policy


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
        won=tuple(bool(outcome) for outcome in won),
        before=before,
        expected=expected,
        recorded_s=recorded_s,
        trials=trials,
    )


def _looped(
    config: BenchTransfer, folder: Path, task: str, robot: str, strategy: str
) -> LoopResult:
    """The loop's last policy for one unit; all loops of a task share what they have in common."""
    return close_the_loop(
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


def _results(task: str, strategy: str, found: list[Score]) -> Iterator[Result]:
    sim, real = (float(np.mean([getattr(one, name) for one in found])) for name in ("sim", "real"))
    all_units = clustered(
        np.array([sum(one.won) for one in found]), np.array([len(one.won) for one in found])
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
