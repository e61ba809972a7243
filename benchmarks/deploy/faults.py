"""Faults at random moments of random trials, and how each of them ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.benchmark import Result, report
from benchmarks.deploy.craft import TASKS, Craft
from benchmarks.deploy.flights import SupervisorMade, fly_troubled, supervisor_of
from benchmarks.deploy.judged import Outcome, judge

_EXAMPLES = 5


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How faults of one kind ended."""

    outcomes: dict[str, int] = field(default_factory=dict)
    """Number of each outcome."""
    harmless: dict[str, int] = field(default_factory=dict)
    """Faults that nothing stopped, by variant."""
    limits_exceeded: int = 0
    passed_later: int = 0
    step_ratio: float = 0.0
    """Largest step that reached the drives over the largest allowed."""
    slowest_s: float = 0.0
    """Longest time from a fault to the supervisor's stop [s]."""
    harms: tuple[str, ...] = ()
    """Some of what was unsafe."""


def slug(kind: str) -> str:
    """A kind of fault as a part of a shard's name."""
    return kind.replace(" ", "-")


def faults_of(
    kind: str, numbers: Sequence[int], *, seed: int, made: SupervisorMade = supervisor_of
) -> Ended:
    """Fly those faults of a kind, and judge them."""
    crafts = {task: Craft.load(task) for task in TASKS}
    outcomes, harmless = Counter[str](), Counter[str]()
    limits = later = 0
    ratio = slowest_s = 0.0
    harms: list[str] = []
    for done, number in enumerate(numbers):
        flown = fly_troubled(crafts, kind, number, seed=seed, made=made)
        verdict = judge(flown)
        outcomes[verdict.outcome.value] += 1
        limits += verdict.limits_exceeded
        later += verdict.passed_later
        ratio = max(ratio, verdict.step_ratio)
        if verdict.outcome is Outcome.HARMLESS:
            harmless[flown.trouble.variant] += 1
        if verdict.outcome is Outcome.SUPERVISOR:
            slowest_s = max(slowest_s, verdict.stopped_after_s)
        if verdict.harms:
            what = f"{kind} {number} on {flown.task}, {flown.trouble.variant}"
            harms.append(f"{what}: {'; '.join(verdict.harms)}")
        if done % 20 == 19:
            report(f"{kind}: {done + 1} of {len(numbers)}, {dict(outcomes)}")
    return Ended(
        outcomes=dict(outcomes), harmless=dict(harmless.most_common()), limits_exceeded=limits,
        passed_later=later, step_ratio=ratio, slowest_s=slowest_s, harms=tuple(harms[:_EXAMPLES]),
    )  # fmt: skip


def fault_results(ended: Mapping[str, Ended]) -> Iterator[Result]:
    """The figures of all kinds together; each note says them by kind."""
    total = sum(sum(one.outcomes.values()) for one in ended.values())
    kinds = ", ".join(f"{kind} {sum(one.outcomes.values())}" for kind, one in ended.items())
    yield Result(name="deploy.faults", value=total, unit="faults", target=">= 1000", note=kinds)
    about = {
        Outcome.SUPERVISOR: "the supervisor's stop reached the robot; the latest after"
        f" {max(one.slowest_s for one in ended.values()):.2f} s",
        Outcome.WATCHDOG: "the robot's own firmware stopped it",
        Outcome.HARMLESS: "nothing stopped it, and no limit was passed",
    }
    safe = 0
    for outcome, what in about.items():
        counts = {kind: one.outcomes.get(outcome.value, 0) for kind, one in ended.items()}
        safe += sum(counts.values())
        by_kind = ", ".join(f"{kind} {count}" for kind, count in counts.items() if count)
        variants = ""
        if outcome is Outcome.HARMLESS:
            several = {kind: one.harmless for kind, one in ended.items() if one.harmless}
            variants = "; " + "; ".join(
                f"{kind}: " + ", ".join(f"{name} {n}" for name, n in found.items())
                for kind, found in several.items()
            )
        yield Result(
            name=f"deploy.{outcome.value}",
            value=sum(counts.values()),
            unit="faults",
            note=f"{what}: {by_kind}{variants}",
        )
    harms = [harm for one in ended.values() for harm in one.harms]
    yield Result(
        name="deploy.faults_safe", value=safe, unit="faults", target=f">= {total}",
        note="by supervisor, by watchdog, or harmless. " + " | ".join(harms[:_EXAMPLES]),
    )  # fmt: skip
    yield Result(
        name="deploy.limits_exceeded",
        value=sum(one.limits_exceeded for one in ended.values()),
        unit="limits",
        target="<= 0",
        note="by joints, tools and commands, judged from what is true;"
        f" {sum(one.passed_later for one in ended.values())} more were passed by motions that only"
        " gave themselves away by it, and no further than by a robot that stops in time",
    )
    yield Result(
        name="deploy.largest_step_ratio",
        value=max(one.step_ratio for one in ended.values()),
        unit="ratio",
        target="<= 1.0",
        note="largest step of a command that reached the drives, over the largest allowed",
    )
