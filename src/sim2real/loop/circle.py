"""`sim2real loop`: the circle for one robot, until its target is met or its budget is spent.

Every stage is a kept step, so whatever is interrupted goes on by being called again. Attempts on
the robot are made in batches. A policy whose first batch says that the target is out of reach is
given up, and the next round identifies the robot from all that was recorded since; otherwise the
rest of the budget is its test. The bound that ends the loop is for that number of attempts, fixed
when the round began: it ends early only where even failures from then on could not change the
answer, so looking does not flatter it. For the same reason a budget is not made larger later.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sim2real.attribution import Advice, Attribution, Failures, advise
from sim2real.errors import Sim2RealError, options_as, table_at
from sim2real.evaluation import Prediction
from sim2real.files import read_json, refuse_file, write_json
from sim2real.intervals import Rate, clopper_pearson, wilson
from sim2real.loop.explanation_process import ExplanationProcess
from sim2real.loop.loop_config import LoopConfig
from sim2real.loop.stages import Stages, prediction_of
from sim2real.loop.steps import KeptResult, KeptStep, Store
from sim2real.loop.strategies import policy_of
from sim2real.robot import OperatorPrompts, open_robot
from sim2real.tasks import find_task
from sim2real.twin import Twin

SUMMARY_FILE = "summary.json"
PLAN_FILE = "plan.json"
_BATCH = 10
"""Attempts in one step."""
_EXPECTED = 100
"""Attempts from now on that are spoken of at the end."""
_SURE = 0.95
"""One-sided confidence of bounds."""


@dataclass
class Round:
    """One policy on the robot, with everything that led to it."""

    policy: KeptResult
    known: KeptResult | None
    """The step that identified the robot, if one did."""
    sim: KeptResult
    ladder: KeptResult
    draws: KeptResult | None = None
    """How robots succeed that this one may be, where it was identified."""
    batches: list[KeptResult] = field(default_factory=list)
    asked: KeptStep | None = None
    """The step that says why attempts failed, if any did."""
    failures: KeptResult | None = None
    """What it said."""

    @property
    def won(self) -> list[bool]:
        """Outcome of every attempt."""
        return [bool(outcome) for batch in self.batches for outcome in batch.result["success"]]

    @property
    def real(self) -> Rate:
        """Success on the robot."""
        return wilson(sum(self.won), len(self.won))

    @property
    def predicted(self) -> Prediction | None:
        """What a batch of attempts will show, as it is known before the first."""
        return prediction_of(self.draws, trials=_BATCH) if self.draws else None

    @property
    def expected(self) -> Prediction | None:
        """What attempts will show from now on, as it is known after those that were made."""
        return prediction_of(self.draws, trials=_EXPECTED, won=self.won) if self.draws else None

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        predicted, expected = self.predicted, self.expected
        return {
            "sim_success": self.sim.result,
            "ladder": self.ladder.result,
            "predicted": predicted.to_dict() if predicted else None,
            "real_success": self.real.to_dict(),
            "expected": expected.to_dict() if expected else None,
            "failures": self.failures.result if self.failures else None,
            "steps": [done.folder.name for done in self.steps],
        }

    @property
    def steps(self) -> list[KeptResult]:
        """Everything it is made of."""
        steps = (self.policy, self.known, self.sim, self.draws, self.ladder, *self.batches)
        return [done for done in (*steps, self.failures) if done]


@dataclass(frozen=True, kw_only=True)
class LoopResult:
    """How a loop ended."""

    task: str
    robot: str
    strategy: str
    folder: Path
    rounds: tuple[Round, ...]
    recorded: KeptResult
    attribution: KeptResult | None
    advice: tuple[Advice, ...]
    target: float
    met: bool
    why: str
    """Why it ended, in a sentence."""

    @property
    def trials(self) -> int:
        """Attempts that were made in all."""
        return sum(len(one.won) for one in self.rounds)

    @property
    def recorded_s(self) -> float:
        """Motion that was recorded beside them [s]."""
        return float(self.recorded.result["seconds"])

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        first, last = self.rounds[0].to_dict(), self.rounds[-1].to_dict()
        return {
            "task": self.task,
            "robot": self.robot,
            "strategy": self.strategy,
            "sim_success": first["sim_success"],
            "real_success_before": first["real_success"],
            "sim_success_after": last["sim_success"],
            "predicted": last["predicted"],
            "real_success_after": last["real_success"],
            "expected": last["expected"],
            "attribution": self.attribution.result if self.attribution else None,
            "advice": [one.to_dict() for one in self.advice],
            "target": self.target,
            "met": self.met,
            "why": self.why,
            "trials": self.trials,
            "recorded_s": self.recorded_s,
            "rounds": [one.to_dict() for one in self.rounds],
        }


def close_the_loop(
    task: LoopConfig | str,
    *,
    store: Store | None = None,
    report: Callable[[KeptStep, KeptResult | None], None] = lambda step, done: None,
    prompts: OperatorPrompts | None = None,
    **options: Any,
) -> LoopResult:
    """Close the gap to one robot, or go on with that: the whole circle for a task.

    `options` are those of `LoopConfig`, or it is given whole. Loops with one `store` share their
    steps. `report` is called as steps begin and end; `prompts` speak with the person at the robot.
    """
    config = task if isinstance(task, LoopConfig) else options_as(LoopConfig, task=task, **options)
    open_robot(config.robot, task=config.task)  # refuse what is no robot before any training
    config.check()
    _plan(config)
    store = store or Store(config.folder / "steps", report=report)
    with ExplanationProcess(config, store) as beside:
        closed = walk(config, store, beside=beside, prompts=prompts)
    write_json(config.folder / SUMMARY_FILE, closed.to_dict())
    return closed


def walk(
    config: LoopConfig,
    store: Store,
    *,
    beside: ExplanationProcess,
    prompts: OperatorPrompts | None = None,
) -> LoopResult:
    """Do every step of a loop, or read it where it is done; writes nothing else."""
    task = find_task(config.task)
    stages = Stages(
        task=config.task,
        robot=config.robot,
        person=config.person or "loop",
        seed=config.seed,
        force=config.force,
        threads=config.threads,
        prompts=prompts or OperatorPrompts(),
    )
    iterations = config.iterations or task.training.iterations
    share = task.again if config.again is None else config.again
    again = max(1, round(share * iterations))
    nominal = stages.train("nominal", iterations=iterations)
    recorded = stages.record(seconds=config.seconds)
    store.run(recorded)  # first, so that a robot that is not there is known before any training
    rounds = [_begin(store, stages, nominal, None, recorded)]
    _attempt(store, stages, rounds, config.first)
    attributed, missing, better = None, "", True
    while (left := config.trials - sum(len(one.won) for one in rounds)) and not _met(
        rounds[-1], config.target, left
    ):
        if better and (len(rounds) == 1 or _hopeless(rounds[-1], config.target)):
            tried = tuple(batch.step for one in rounds for batch in one.batches)
            planned = partial(
                policy_of,
                stages=stages,
                nominal=rounds[-1].policy.step if len(rounds) > 1 else nominal,
                recorded=(recorded, *tried),
                iterations=iterations,
                again=again,
            )
            policy, known = planned(config.strategy)
            if known is not None:
                told = store.run(known).result
                missing = told["why"]
                if not told.get("remainder", {"kept": True})["kept"]:
                    policy, known = planned("identified")  # there is nothing more to know
            if config.explain:
                rounds[-1].asked = _why_failed(stages, rounds[-1], known)
                if known is not None and attributed is None and not missing:
                    attributed = stages.attribute(nominal, known, recorded, tried)
                beside.begin([step for step in (rounds[-1].asked, attributed) if step])
            better = not missing and policy.key != rounds[-1].policy.step.key
            if better:
                rounds.append(_begin(store, stages, policy, known, recorded))
        _attempt(store, stages, rounds, min(_BATCH, left))
    last = rounds[-1]
    if config.explain:
        last.asked = _why_failed(stages, last, last.known.step if last.known else None)
    for one in rounds:
        one.failures = store.run(one.asked) if one.asked else None
    attribution = store.run(attributed) if attributed else None
    return LoopResult(
        task=config.task,
        robot=config.robot,
        strategy=config.strategy,
        folder=config.folder,
        rounds=tuple(rounds),
        recorded=store.run(recorded),
        attribution=attribution,
        advice=tuple(_advice(stages, rounds, attribution, config.target)),
        target=config.target,
        met=_met(last, config.target, left),
        why=_why(last, config.target, left)
        + (f"; the robot was not identified: {missing}" if missing else ""),
    )


def _plan(config: LoopConfig) -> None:
    """Keep what was planned before anything was seen, and refuse another plan after it."""
    plan = {
        "task": config.task,
        "robot": config.robot,
        "strategy": config.strategy,
        "budget": config.trials,
        "target": config.target,
        "first": config.first,
        "seconds": config.seconds,
        "iterations": config.iterations,
        "again": config.again,
        "seed": config.seed,
        "software": version("sim2real"),
    }
    path = config.folder / PLAN_FILE
    if path.is_file():
        before = table_at(read_json(path), str(path))
        other = [name for name, value in plan.items() if before.get(name) != value]
        if other:
            raise Sim2RealError(
                f"{config.folder} is of a loop with another {', '.join(other)} ({path}): a test"
                " that is changed once it was looked at proves nothing; begin another with --out"
            )
        return
    refuse_file(config.folder)
    write_json(path, plan)


def _begin(
    store: Store, stages: Stages, policy: KeptStep, known: KeptStep | None, recorded: KeptStep
) -> Round:
    """Evaluate and qualify a policy; a ladder that is not passed ends the loop."""
    trained = store.run(policy)
    sim = store.run(stages.evaluate(policy))
    draws = store.run(stages.predict(policy, recorded)) if known else None
    ladder = store.run(stages.ladder(stages.export(policy), recorded))
    if not ladder.result["passed"] and not stages.force:
        raise Sim2RealError(f"the policy did not pass {ladder.folder}; --force goes on regardless")
    return Round(
        policy=trained,
        known=store.run(known) if known else None,
        sim=sim,
        ladder=ladder,
        draws=draws,
    )


def _attempt(store: Store, stages: Stages, rounds: list[Round], count: int) -> None:
    """Let the newest policy try; set-ups are never repeated."""
    made = sum(len(one.won) for one in rounds)
    ladder = rounds[-1].ladder.step
    bundle = ladder.needs[0]
    rounds[-1].batches.append(store.run(stages.trials(bundle, ladder, first=made, count=count)))


def _why_failed(stages: Stages, one: Round, known: KeptStep | None) -> KeptStep | None:
    """The step that says why attempts of a round failed, if any did."""
    if all(one.won):
        return None
    return stages.failures(one.policy.step, known, tuple(batch.step for batch in one.batches))


def _advice(
    stages: Stages, rounds: list[Round], attribution: KeptResult | None, target: float
) -> list[Advice]:
    """What follows from all that was found."""
    last = rounds[-1]
    lost = attribution.result["success"] if attribution else None
    return advise(
        Twin.load(stages.twin, check=False),
        success=Attribution.of_dict(lost) if lost else None,
        failures=Failures.of_dict(last.failures.result) if last.failures else None,
        identified=last.known.result if last.known else None,
        cured=last.known is not None,
        won=last.won,
        target=target,
    )


def lower_bound(won: list[bool]) -> float:
    """Success that a robot has at least, 95 % sure."""
    return clopper_pearson(sum(won), len(won), confidence=2 * _SURE - 1).low


def _met(one: Round, target: float, left: int) -> bool:
    """Whether the target is met, even if all attempts that are left were to fail."""
    return bool(one.won) and lower_bound([*one.won, *[False] * left]) >= target


def _hopeless(one: Round, target: float) -> bool:
    rate = clopper_pearson(sum(one.won), len(one.won), confidence=2 * _SURE - 1)
    return rate.high < target


def _why(one: Round, target: float, left: int) -> str:
    """How it ended; what is said is what would hold if all attempts that are left failed."""
    won = one.won
    told = f"{sum(won)} of {len(won)} succeeded"
    bound = lower_bound([*won, *[False] * left])
    least = math.floor(1000 * bound) / 10  # a bound that is rounded up is none
    if bound >= target:
        return f"{told}: at least {least:g} %, 95 % sure"
    return (
        f"the budget is spent: {told}, which is at least {least:g} %, 95 % sure, and not"
        f" {100 * target:g} %"
    )
