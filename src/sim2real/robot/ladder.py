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
from sim2real.errors import Sim2RealError
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
class LadderRecord(PlainData):
    """One step taken with a policy."""

    step: LadderStepName
    passed: bool
    why: str = ""
    """Why it did not pass."""
    bundle: str
    """Seal of the policy: the id of its bundle, if it is one."""
    robot: str = ""
    serial: str = ""
    person: str = ""
    skipped: str = ""
    """Steps before it that were skipped by force."""
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
    records = [record for record in read_records(policy) if record.bundle == policy.seal]
    found = []
    for before in STEPS[: STEPS.index(step)]:
        mine = [
            record
            for record in records
            if record.step == before
            and (before == "replay" or (record.robot, record.serial) == (robot, serial))
        ]
        if not mine:
            found.append(f"{before} (not tried)")
        elif not mine[-1].passed:
            found.append(f"{before} ({mine[-1].why})")
    return found


def refuse_to_skip(policy: OpenedPolicy, step: str, *, robot: str, serial: str, force: bool) -> str:
    """The earlier steps that are skipped by `force`; without it they are a `Sim2RealError`."""
    left = missing(policy, step, robot=robot, serial=serial)
    if left and not force:
        place = policy.place or policy.id
        raise Sim2RealError(
            f"{step} on {robot} {serial} first needs {', '.join(left)}: run"
            f" `sim2real deploy {place} --step {left[0].split()[0]} …`, or skip steps with"
            " --force"
        )
    return ", ".join(left)


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
