"""Whether a step of the ladder may be taken, given the steps before it."""

from __future__ import annotations

from dataclasses import dataclass

from sim2real.errors import Sim2RealError
from sim2real.evaluation import OpenedPolicy
from sim2real.robot.deployment import OperatorPrompts
from sim2real.robot.ladder import LadderRecord, not_passed, said_of
from sim2real.robot.protocol import Robot

SAFE_STEPS = ("shadow", "limited")
"""Steps that keep a robot safe whatever the policy does: it does not act, or small and slowly."""


@dataclass(frozen=True, kw_only=True)
class Permission:
    """What was left open when a step was taken."""

    skipped: str = ""
    """Earlier steps that were skipped by force."""
    despite: str = ""
    """Earlier steps that were tried and not passed, where it was taken all the same."""


def permission(
    policy: OpenedPolicy, step: str, robot: Robot, *, force: bool, prompts: OperatorPrompts
) -> Permission:
    """May a step be taken? If not, it is a `Sim2RealError` that says what it would take.

    `force` skips steps for simulated robots. Where all steps before a safe one were tried, a person
    may go on in spite of what was not passed; where no person is asked and `prompts.goes_on`, it
    goes on in spite of doubts.
    """
    left = not_passed(policy, step, robot=robot.name, serial=robot.serial)
    if not left:
        return Permission()
    told = ", ".join(said_of(name, record) for name, record in left)
    if force:
        return Permission(skipped=told)
    tried = [record for _, record in left if record is not None]
    if step in SAFE_STEPS and len(tried) == len(left) and _gone_on(step, told, tried, prompts):
        return Permission(despite=told)
    place = policy.place or policy.id
    needed = "".join(f"; to pass it, {record.to_pass}" for record in tried[:1] if record.to_pass)
    skip = ", or skip steps with --force" if robot.abilities.simulated else ""
    raise Sim2RealError(
        f"{step} on {robot.name} {robot.serial} first needs {told}{needed}: run"
        f" `sim2real deploy {place} --step {left[0][0]} …`{skip}"
    )


def _gone_on(step: str, told: str, tried: list[LadderRecord], prompts: OperatorPrompts) -> bool:
    """Whether a person, or a program for doubts alone, goes on with a safe step."""
    if prompts.attended:
        needed = "; ".join(record.to_pass for record in tried if record.to_pass)
        asked = f"not passed: {told}" + (f"; to pass, {needed}" if needed else "")
        return prompts.choose(f"{asked}. Go on with {step} all the same? [y/n]", "yn") == "y"
    return prompts.goes_on and all(record.doubt for record in tried)


def refuse_force(robot: Robot, *, force: bool) -> None:
    """Refuse `force` for a robot that can hurt somebody."""
    if force and not robot.abilities.simulated:
        raise Sim2RealError(
            f"--force skips steps of the ladder for stand-in hardware only; {robot.name}"
            f" {robot.serial} is a real robot, whose policies climb all of them".replace("  ", " ")
        )
