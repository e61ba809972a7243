"""The circle for one robot, until its target is met or its budget is spent.

The result of every stage is stored, so an interrupted loop continues when it is called again.
Attempts on the robot are made in batches. If the first batch shows that a policy cannot reach the
target, the policy is given up, and the next round identifies the robot from all that was recorded
since; otherwise the rest of the budget is its test. The bound that ends the loop is for that number
of attempts, fixed when the round began: the loop ends early only if failures in all further
attempts could not change the answer, so that repeated looks do not bias it. For the same reason a
budget cannot be raised later.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from sim2real import __version__
from sim2real.attribution import Advice, Attribution, Failures, advise
from sim2real.errors import Sim2RealError, options_as, table_at
from sim2real.files import read_json, refuse_file, write_json
from sim2real.intervals import clopper_pearson
from sim2real.loop.algorithms import ALGORITHMS
from sim2real.loop.explanation_process import ExplanationProcess
from sim2real.loop.kept_episodes import LoopLake
from sim2real.loop.loop_config import LoopConfig
from sim2real.loop.rounds import (
    SUMMARY_FILE,
    DoneStep,
    LoopAttribution,
    LoopResult,
)
from sim2real.loop.stages import Stages
from sim2real.loop.stages.evidence import identification_of, recorded_in, shown_in
from sim2real.loop.steps import KeptResult, KeptStep, Store
from sim2real.loop.strategies import policy_of
from sim2real.loop.turn import BATCH, Turn
from sim2real.robot import OperatorPrompts, open_robot, robot_scheme
from sim2real.tasks import find_task
from sim2real.twin import Twin

PLAN_FILE = "plan.json"
_PLANNED = (
    "task", "robot", "strategy", "target", "first", "seconds", "iterations", "again", "seed",
)  # fmt: skip
"""Options that cannot change once a loop has begun; its budget cannot either."""
_CONFIDENCE = 0.95
"""One-sided confidence of bounds; all sentences about them say 95 %."""


def close_the_loop(
    task: LoopConfig | str,
    *,
    store: Store | None = None,
    report: Callable[[KeptStep, KeptResult | None], None] = lambda step, done: None,
    prompts: OperatorPrompts | None = None,
    **options: Any,  # fields of LoopConfig
) -> LoopResult:
    """Close the gap to one robot, or continue doing so: the whole circle for a task.

    `options` are fields of `LoopConfig`, which may also be given instead of the task. Loops with
    one `store` share their steps. `report` is called as steps begin and end; `prompts` talk to the
    person at the robot. What is recorded goes to `lake` too, unless that is ''.
    """
    config = task if isinstance(task, LoopConfig) else options_as(LoopConfig, task=task, **options)
    open_robot(config.robot, task=config.task)  # an unknown robot is refused before any training
    config.check(simulated=robot_scheme(config.robot).abilities(config.robot).simulated)
    if config.dry_run:
        raise Sim2RealError("a dry run closes no loop: plan_the_loop says what it would do")
    if not check_plan(config):
        refuse_file(config.folder)
        write_json(config.folder / PLAN_FILE, _plan(config))
    store = store or Store(config.folder / "steps", report=report)
    if config.lake:
        store.listen(LoopLake.create(config.lake).add)
    with ExplanationProcess(config, store) as beside:
        closed = walk(config, store, explain=beside.begin, prompts=prompts)
    closed.save(config.folder / SUMMARY_FILE)
    return closed


def walk(
    config: LoopConfig,
    store: Store,
    *,
    explain: Callable[[list[KeptStep]], None],
    prompts: OperatorPrompts | None = None,
) -> LoopResult:
    """Run every step of a loop, or read its result; `explain` gets the steps that only explain."""
    stages = _stages(config, prompts)
    iterations, again = _updates(config)
    nominal = stages.train("nominal", iterations=iterations)
    recorded = stages.record(seconds=config.seconds)
    store.run(recorded)  # first, so that a missing robot is noticed before training
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
            policy, known, missing = _successor(store, planned, config.strategy)
            if config.explain:
                rounds[-1].asked = _why_failed(stages, rounds[-1], known)
                if known is not None and attributed is None and not missing:
                    attributed = stages.attribute(nominal, known, recorded, tried)
                explain([step for step in (rounds[-1].asked, attributed) if step])
            better = not missing and policy.key != rounds[-1].policy.step.key
            if better:
                rounds.append(_begin(store, stages, policy, known, recorded))
        _attempt(store, stages, rounds, min(BATCH, left))
    last = rounds[-1]
    if config.explain:
        last.asked = _why_failed(stages, last, last.known.step if last.known else None)
    for one in rounds:
        one.failures = store.run(one.asked) if one.asked else None
    attribution = store.run(attributed) if attributed else None
    moved = store.run(recorded)
    identified = [one.known for one in rounds if one.known]
    why = _why(last, config.target, left)
    return LoopResult(
        task=config.task,
        robot=config.robot,
        strategy=config.strategy,
        folder=config.folder,
        rounds=tuple(one.found() for one in rounds),
        attribution=_attribution(attribution),
        recorded_s=float(moved.result["seconds"]),
        motions=tuple(moved.result["episodes"]),
        identification=identification_of(identified[-1] if identified else None),
        evidence=shown_in(config.folder, store.run(_shown(stages, rounds, recorded)))
        if config.explain
        else None,
        episodes=tuple(
            recorded_in(config.folder, [moved, *(b for one in rounds for b in one.batches)])
        ),
        done=tuple(_done(rounds, attribution)),
        turns=tuple(rounds),
        advice=tuple(_advice(stages, rounds, attribution, config.target)),
        target=config.target,
        met=_met(last, config.target, left),
        why=why + (f"; the robot was not identified: {missing}" if missing else ""),
    )


def _attribution(done: KeptResult | None) -> LoopAttribution | None:
    """What the gap was made of, as the step that attributed it says."""
    if done is None:
        return None
    error = done.result["error"]
    return LoopAttribution(
        trajectory=Attribution.from_dict(error) if "shares" in error else None,
        why=error.get("why", ""),
        success=Attribution.from_dict(done.result["success"]),
    )


def _shown(stages: Stages, rounds: list[Turn], recorded: KeptStep) -> KeptStep:
    """The step that shows how the gap was closed."""
    known = [one.known.step for one in rounds if one.known]
    tried = [(one.policy.step, tuple(batch.step for batch in one.batches)) for one in rounds]
    return stages.show(tried, known[-1] if known else None, recorded)


def _done(rounds: list[Turn], attribution: KeptResult | None) -> Iterator[DoneStep]:
    steps = [step for one in rounds for step in one.steps]
    for step in (*steps, attribution) if attribution else steps:
        yield DoneStep(name=step.folder.name, seconds=step.seconds)


def _stages(config: LoopConfig, prompts: OperatorPrompts | None) -> Stages:
    return Stages(
        task=config.task,
        robot=config.robot,
        person=config.person or "loop",
        seed=config.seed,
        force=config.force,
        by_the_switch=config.by_the_switch,
        judge=config.judge,
        threads=config.threads,
        prompts=prompts or OperatorPrompts(),
    )


def _updates(config: LoopConfig) -> tuple[int, int]:
    """Updates of a policy that is trained from scratch, and of one that starts from a policy."""
    task = find_task(config.task)
    iterations = config.iterations or task.training.iterations
    share = task.again if config.again is None else config.again
    return iterations, max(1, round(share * iterations))


def _successor(
    store: Store, planned: Callable[[str], tuple[KeptStep, KeptStep | None]], strategy: str
) -> tuple[KeptStep, KeptStep | None, str]:
    """The next policy, the step that identifies the robot if one does, and why it could not."""
    policy, known = planned(strategy)
    if known is None:
        return policy, None, ""
    found = store.run(known).result
    if not found.get("remainder", {"kept": True})["kept"]:
        policy, known = planned("identified")  # there is nothing more to know
    return policy, known, found["why"]


def _plan(config: LoopConfig) -> dict[str, object]:
    """What is planned before anything is seen, and by which software."""
    plan = {name: getattr(config, name) for name in _PLANNED}
    versions = {algorithm.name: algorithm.version for algorithm in ALGORITHMS}
    return plan | {"budget": config.trials, "software": __version__, "algorithms": versions}


def check_plan(config: LoopConfig) -> bool:
    """Whether the loop was begun before; with another plan, it is refused.

    One that other software began goes on: steps say themselves which algorithms made them.
    """
    path = config.folder / PLAN_FILE
    if not path.is_file():
        return False
    before = table_at(read_json(path), str(path))
    plan = {name: getattr(config, name) for name in _PLANNED} | {"budget": config.trials}
    other = [name for name in plan if before.get(name) != plan[name]]
    if other:
        raise Sim2RealError(
            f"{config.folder} holds a loop with another {', '.join(other)} ({path}): a test"
            " that is changed after its first result proves nothing; start another loop with --out"
        )
    if "algorithms" not in before:
        raise Sim2RealError(
            f"{config.folder} was begun with an earlier sim2real ({before.get('software')}), whose"
            " steps do not say which algorithms made them: go on with that version, or begin"
            " another loop with --out"
        )
    return True


def _begin(
    store: Store, stages: Stages, policy: KeptStep, known: KeptStep | None, recorded: KeptStep
) -> Turn:
    """Evaluate a policy and take it up the ladder of trust."""
    trained = store.run(policy)
    sim = store.run(stages.evaluate(policy))
    draws = store.run(stages.predict(policy, recorded)) if known else None
    ladder = store.run(stages.ladder(stages.export(policy), recorded))
    # The last step before free motion ends the doubts of those before it.
    passed = ladder.result["passed"] or ladder.result["steps"][-1]["passed"]
    if not passed and not stages.force:
        raise Sim2RealError(f"the policy did not pass {ladder.folder}; --force continues anyway")
    return Turn(
        policy=trained,
        known=store.run(known) if known else None,
        sim=sim,
        ladder=ladder,
        draws=draws,
    )


def _attempt(store: Store, stages: Stages, rounds: list[Turn], count: int) -> None:
    """Let the newest policy try; start conditions are never repeated."""
    made = sum(len(one.won) for one in rounds)
    ladder = rounds[-1].ladder.step
    bundle = ladder.needs[0]
    rounds[-1].batches.append(store.run(stages.trials(bundle, ladder, first=made, count=count)))


def _why_failed(stages: Stages, one: Turn, known: KeptStep | None) -> KeptStep | None:
    """The step that says why attempts of a round failed, if any did."""
    if all(one.won):
        return None
    return stages.failures(one.policy.step, known, tuple(batch.step for batch in one.batches))


def _advice(
    stages: Stages, rounds: list[Turn], attribution: KeptResult | None, target: float
) -> list[Advice]:
    """What follows from all that was found."""
    last = rounds[-1]
    lost = attribution.result["success"] if attribution else None
    return advise(
        Twin.load(stages.twin, check=False),
        success=Attribution.from_dict(lost) if lost else None,
        failures=Failures.from_dict(last.failures.result) if last.failures else None,
        identified=last.known.result if last.known else None,
        cured=last.known is not None,
        won=last.won,
        target=target,
    )


def lower_bound(won: list[bool]) -> float:
    """Lower bound of a robot's success, 95 % sure."""
    return clopper_pearson(sum(won), len(won), confidence=2 * _CONFIDENCE - 1).low


def _met(one: Turn, target: float, left: int) -> bool:
    """Whether the target is met, even if all remaining attempts fail."""
    return bool(one.won) and lower_bound([*one.won, *[False] * left]) >= target


def _hopeless(one: Turn, target: float) -> bool:
    rate = clopper_pearson(sum(one.won), len(one.won), confidence=2 * _CONFIDENCE - 1)
    return rate.high < target


def _why(one: Turn, target: float, left: int) -> str:
    """How the loop ended, which would still hold if all remaining attempts failed."""
    won = one.won
    told = f"{sum(won)} of {len(won)} succeeded"
    bound = lower_bound([*won, *[False] * left])
    least = math.floor(1000 * bound) / 10  # rounded up, it would not be a bound
    if bound >= target:
        return f"{told}: at least {least:g} %, 95 % sure"
    return (
        f"the budget is spent: {told}, which shows at least {least:g} % (95 % sure), short of the"
        f" target of {100 * target:g} %"
    )
