"""Every strategy on one unit of stand-in hardware.

Strategies that know the robot run the whole loop with the unit, within its budget. Then every
strategy's policy makes the same number of attempts on it, with the same set-ups. Every step is
kept, so that a unit that was interrupted goes on.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.benchmark import report
from benchmarks.machine import ROOT
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


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What outcomes depend on, beside the code and the unit."""

    strategies: tuple[str, ...] = ("nominal", "wide", "adr", "identified", "identified+residual")
    """Strategies that are compared."""
    trials: int = 100
    """Attempts a unit and strategy that count."""
    budget: int = 40
    """Attempts a unit that the loop may make before."""
    seconds: float = 48.0
    """Motion a unit that the loop may record [s]."""
    seed: int = 0
    """Seed of trainings and recordings."""


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """All sizes of a run."""

    plan: Plan
    units: dict[str, tuple[int, ...]]
    """Numbers of each task's units."""
    kills: tuple[int, ...]
    """Kills of loops, a group each; the last group's loops also explain the gap."""
    iterations: int | None = None
    """Updates of a training; the task's own number by default."""
    first: int = LoopConfig.first
    """Attempts of the loop before its first look at them."""
    store: Path = ROOT / "runs" / "bench" / "transfer"
    """Folder of every step; what is there is not done again."""


FULL = Sizes(
    plan=Plan(),
    units={
        "pendulum-swingup": tuple(range(700, 720)),
        "arm-reach": tuple(range(700, 705)),
        "arm-push": tuple(range(700, 705)),
    },
    kills=(10, 10, 10, 10, 10),
)
QUICK = Sizes(
    plan=Plan(strategies=("identified",), trials=2, budget=2, seconds=18.0),
    units={"pendulum-swingup": (3,)},
    kills=(),
    iterations=3,
    first=2,
)


@dataclass(frozen=True, kw_only=True)
class Score:
    """One strategy on one unit."""

    sim: float
    won: str
    """Outcome of every attempt on the unit, 1 or 0 each."""
    before: tuple[float, float] | None = None
    """Interval of 90 % for what the attempts would show, known before the policy made any."""
    expected: tuple[float, float] | None = None
    """The same, with the attempts that the loop made."""
    recorded_s: float = 0.0
    trials: int = 0

    @property
    def wins(self) -> int:
        """Attempts that succeeded."""
        return self.won.count("1")

    @property
    def real(self) -> float:
        """Success on the unit."""
        return self.wins / len(self.won)


def share_policies(sizes: Sizes, task: str) -> None:
    """Train what all units of a task share: policies that know none of them."""
    store = Store(sizes.store / task / "steps")
    stages = Stages(task=task, robot="", person="bench", seed=sizes.plan.seed)
    for strategy in dict.fromkeys(("nominal", *sizes.plan.strategies)):
        if not strategy.startswith("identified"):
            policy = _unknowing(sizes, strategy, stages)
            success = store.run(stages.evaluate(policy)).result["value"]
            store.run(stages.export(policy))
            report(f"{task}, {strategy}: {success:.1%} in simulation")


def tried(sizes: Sizes, task: str, unit: int) -> dict[str, Score]:
    """Every strategy on one unit, on one thread."""
    found = {strategy: _score(sizes, task, unit, strategy) for strategy in sizes.plan.strategies}
    told = ", ".join(f"{strategy} {score.real:.0%}" for strategy, score in found.items())
    report(f"{task} unit {unit}: {told}")
    return found


def _unknowing(sizes: Sizes, strategy: str, stages: Stages) -> KeptStep:
    """Training of a strategy that knows no unit."""
    task = find_task(stages.task)
    iterations = sizes.iterations or task.training.iterations
    nominal = stages.train("nominal", iterations=iterations)
    again = round(task.again * iterations)
    policy, _ = policy_of(
        strategy, stages, nominal=nominal, recorded=(), iterations=iterations, again=again
    )
    return policy


def _score(sizes: Sizes, task: str, unit: int, strategy: str) -> Score:
    """Train as the strategy does, and try it on the unit."""
    plan, folder = sizes.plan, sizes.store / task
    robot = f"unit:{unit}"
    store = Store(folder / "steps")
    stages = Stages(task=task, robot=robot, person="bench", seed=plan.seed, force=True, threads=1)
    recorded_s, trials, before, expected = 0.0, 0, None, None
    if strategy.startswith("identified"):
        closed = _looped(sizes, folder, task, robot, strategy)
        last = closed.turns[-1]
        policy = last.policy.step
        recorded_s, trials = closed.recorded_s, closed.trials
        if last.draws is not None:
            before, expected = (
                (said.shown_low, said.shown_high)
                for said in (
                    prediction_of(last.draws, trials=plan.trials, won=won) for won in ([], last.won)
                )
            )
    else:
        policy = _unknowing(sizes, strategy, stages)
    sim = store.run(stages.evaluate(policy)).result["value"]
    bundle = stages.export(policy)
    ladder = stages.ladder(bundle, stages.record(seconds=plan.seconds))
    attempts = stages.trials(bundle, ladder, first=_FIRST_SETUP, count=plan.trials)
    won = store.run(attempts).result["success"]
    return Score(
        sim=float(sim),
        won="".join("01"[bool(outcome)] for outcome in won),
        before=before,
        expected=expected,
        recorded_s=recorded_s,
        trials=trials,
    )


def _looped(sizes: Sizes, folder: Path, task: str, robot: str, strategy: str) -> LoopResult:
    """The loop's last policy for one unit; all loops of a task share what they have in common."""
    return close_the_loop(
        LoopConfig(
            task=task,
            robot=robot,
            # Names of results are stable; the strategy was called so when they were named.
            strategy=strategy.replace("residual", "remainder"),  # type: ignore[arg-type]
            budget=str(sizes.plan.budget),
            first=sizes.first,
            seconds=sizes.plan.seconds,
            iterations=sizes.iterations,
            seed=sizes.plan.seed,
            force=True,
            explain=False,
            threads=1,
            lake="",
            out=folder / f"{strategy}-{robot.replace(':', '-')}",
        ),
        store=Store(folder / "steps"),
    )
