"""The ladder of trust: the steps of a policy before it may move a robot freely.

Each step leaves a record in the policy's folder. The newest record of a step decides; records of
moving steps hold only for the robot they were taken with.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal, get_args

import numpy as np

from sim2real.arrays import Reals
from sim2real.contract import Limits
from sim2real.evaluation import OpenedPolicy
from sim2real.files import read_json, write_json
from sim2real.plain import PlainData

LadderStepName = Literal["replay", "shadow", "limited", "full"]
STEPS: tuple[LadderStepName, ...] = get_args(LadderStepName)
_RATE_SHARE = 0.25
"""Share of the command's rate that the step `limited` allows."""
_RANGE_SHARE = 0.25
"""Share of the command's range that it allows, around where the robot rests."""
_SPEED_SHARE = 0.75
"""Share of the speed limit that ends its run: even little torque swings a pendulum fast."""


@dataclass(frozen=True, kw_only=True)
class Shortfall:
    """Why a step was not passed, as its record says it."""

    why: str
    to_pass: str = ""
    doubt: bool = False


@dataclass(frozen=True, kw_only=True)
class LadderRecord(PlainData):
    """One step taken with a policy."""

    step: LadderStepName
    passed: bool
    why: str = ""
    """Why it did not pass."""
    to_pass: str = ""
    """What it would take to pass."""
    doubt: bool = False
    """Whether what was not passed is a doubt only, which a later safe step on the robot can end:
    nothing is wrong with what the policy would command."""
    bundle: str
    """Seal of the policy: the id of its bundle, if it is one."""
    robot: str = ""
    serial: str = ""
    person: str = ""
    skipped: str = ""
    """Steps before it that were skipped by force; for stand-in hardware only."""
    despite: str = ""
    """Steps before it that were tried and not passed, where it was taken all the same."""
    time: str = field(default_factory=lambda: datetime.now(UTC).isoformat())
    """When it was taken."""
    episodes: tuple[str, ...] = ()
    """Ids of its episodes."""
    figures: dict[str, Any] = field(default_factory=dict)  # JSON, of another form for each step
    """What was measured."""

    def line(self) -> str:
        """The record in one line."""
        where = f" on {self.robot} {self.serial}".rstrip() if self.robot else ""
        passed = "not stopped" if self.step == "full" else "passed"  # success is another question
        return f"{self.step}{where}: {passed if self.passed else f'not passed: {self.why}'}"


def write_record(policy: OpenedPolicy, record: LadderRecord) -> None:
    """Keep a record beside the policy."""
    stamp = record.time.replace(":", "").replace("-", "").replace("+0000", "")
    write_json(policy.records / f"{stamp}-{record.step}.json", record.to_dict())


def read_records(policy: OpenedPolicy) -> list[LadderRecord]:
    """All records of a policy, the oldest first; a malformed one is a `Sim2RealError`."""
    found = [
        LadderRecord.from_dict(read_json(path), str(path))
        for path in sorted(policy.records.glob("*.json"))
    ]
    return sorted(found, key=lambda record: record.time)


def missing(policy: OpenedPolicy, step: str, *, robot: str, serial: str) -> list[str]:
    """Steps before `step` that were not passed, each with the reason."""
    left = not_passed(policy, step, robot=robot, serial=serial)
    return [said_of(name, record) for name, record in left]


def said_of(step: str, record: LadderRecord | None) -> str:
    """A step that was not passed, in words."""
    return f"{step} ({'not tried' if record is None else record.why})"


def not_passed(
    policy: OpenedPolicy, step: str, *, robot: str, serial: str
) -> list[tuple[str, LadderRecord | None]]:
    """Steps before `step` that were not passed, each with its newest record, None if not tried.

    A step that was tried does not count any more once a later one was passed on this robot in spite
    of it, without force.
    """
    records = [record for record in read_records(policy) if record.bundle == policy.seal]
    newest: dict[str, LadderRecord] = {}
    for record in records:
        if record.step == "replay" or (record.robot, record.serial) == (robot, serial):
            newest[record.step] = record
    found: list[tuple[str, LadderRecord | None]] = []
    for place, before in enumerate(STEPS[: STEPS.index(step)]):
        mine = newest.get(before)
        later = [newest[name] for name in STEPS[place + 1 : STEPS.index(step)] if name in newest]
        if mine is None or not (mine.passed or any(_ends_doubt(mine, one) for one in later)):
            found.append((before, mine))
    return found


def _ends_doubt(doubted: LadderRecord, later: LadderRecord) -> bool:
    return later.passed and not later.skipped and later.time > doubted.time


def small_and_slow(limits: Limits, resting: Reals) -> Limits:
    """Limits of the step `limited`: near where the robot rests, at a quarter of the rate."""
    joints = []
    for joint, rest in zip(limits.joints, resting, strict=True):
        half = _RANGE_SHARE * 0.5 * (joint.command_high - joint.command_low)
        at = float(np.clip(rest, joint.command_low, joint.command_high))
        joints.append(
            replace(
                joint,
                velocity=_SPEED_SHARE * joint.velocity,
                command_rate=_RATE_SHARE * joint.command_rate,
                command_low=max(joint.command_low, at - half),
                command_high=min(joint.command_high, at + half),
            )
        )
    return replace(limits, joints=tuple(joints))
