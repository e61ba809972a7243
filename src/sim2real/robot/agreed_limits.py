"""The limits that a run keeps to: of what policy, twin and robot state, the tightest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sim2real.contract import Contract, JointLimits, Limits
from sim2real.errors import Sim2RealError, nearest, number_at, table_at
from sim2real.robot.abilities import stated_limits
from sim2real.robot.protocol import Robot
from sim2real.twin import Twin, range_and_torque

Stated = Mapping[str, Mapping[str, float]]
"""Limits by joint and by the name they have in `JointLimits`."""

_LEAST = ("position_low", "command_low")
"""Limits of which the largest is the tightest."""
_NAMES = (
    "position_low", "position_high", "velocity", "acceleration", "torque", "command_low",
    "command_high", "command_rate",
)  # fmt: skip
_SAME = 1e-6
"""Relative difference of two limits from rounding alone."""
_ENDLESS = 1e8
"""A position beyond this is no limit: the joint turns endlessly."""


@dataclass(frozen=True, kw_only=True)
class AgreedLimit:
    """One limit of a joint that is not stated alike everywhere."""

    joint: str
    limit: str
    """Its name in `JointLimits`."""
    value: float
    """The tightest, which counts, in SI units."""
    source: str
    """Who states it: 'bundle', 'contract', 'twin' or 'robot'."""
    others: Mapping[str, float]
    """What the others state."""

    def __str__(self) -> str:
        told = ", ".join(f"{name} {value:.4g}" for name, value in self.others.items())
        return f"{self.joint} {self.limit} {self.value:.4g} from the {self.source} ({told})"


@dataclass(frozen=True, kw_only=True)
class AgreedLimits:
    """What a run keeps to."""

    limits: Limits
    """The tightest of all."""
    differing: tuple[AgreedLimit, ...]

    def lines(self) -> Iterator[str]:
        """What they are made of: one line, or one for each limit that is stated differently."""
        if not self.differing:
            yield "limits: those of the bundle; twin and robot state none that differ"
            return
        yield "limits: these are stated differently, and the tightest counts"
        for one in self.differing:
            yield f"  {one}"


def agreed_limits(limits: Limits, contract: Contract, twin: Twin, robot: Robot) -> AgreedLimits:
    """The tightest of the bundle's limits, its contract's, the twin's and the robot's own.

    Limits that leave a joint no room at all, and what the robot states of a joint or limit that
    there is not, are a `Sim2RealError`.
    """
    sources: dict[str, Stated] = {
        "contract": {
            joint.name: {"command_low": command.low, "command_high": command.high}
            for joint, command in zip(limits.joints, contract.commands, strict=True)
        },
        "twin": _of_twin(limits, contract, twin),
        "robot": _of_robot(contract, stated_limits(robot), robot.name),
    }
    joints, differing = [], []
    for joint in limits.joints:
        tightest = {}
        for name in _NAMES:
            told = {"bundle": float(getattr(joint, name))}
            told |= {who: one[joint.name][name] for who, one in sources.items()
                     if name in one.get(joint.name, {})}  # fmt: skip
            best = (max if name in _LEAST else min)(told, key=lambda who: told[who])
            tightest[name] = told[best]
            others = {who: value for who, value in told.items() if _apart(value, told[best])}
            if others:
                differing.append(
                    AgreedLimit(
                        joint=joint.name, limit=name, value=told[best], source=best, others=others
                    )
                )
        joints.append(_with(joint, tightest))
    return AgreedLimits(limits=replace(limits, joints=tuple(joints)), differing=tuple(differing))


def _of_twin(limits: Limits, contract: Contract, twin: Twin) -> Stated:
    """Ranges and torques of the twin's model; a speed is no property of a model."""
    model = twin.compile().model
    found = {}
    for joint, command in zip(limits.joints, contract.commands, strict=True):
        low, high, torque = range_and_torque(model, command)
        # A torque of zero says that the model has no limit.
        found[joint.name] = {"position_low": low, "position_high": high} | (
            {"torque": torque} if torque else {}
        )
    return found


def _of_robot(contract: Contract, stated: Stated, robot: str) -> Stated:
    """What a robot states, checked, by joint."""
    joints = {command.joint: command.joint for command in contract.commands}
    joints |= {command.name: command.joint for command in contract.commands}
    found: dict[str, dict[str, float]] = {}
    for name, values in stated.items():
        if name not in joints:
            raise Sim2RealError(
                f"{robot} states limits of {name!r}, which is not driven{nearest(name, joints)}"
            )
        mine = found.setdefault(joints[name], {})
        for limit, value in table_at(values, f"limits of {name} that {robot} states").items():
            if limit not in _NAMES:
                raise Sim2RealError(
                    f"{robot} states a limit {limit!r} of {name}{nearest(limit, _NAMES)}"
                )
            mine[limit] = number_at(value, f"{limit} of {name} that {robot} states")
    return found


def _apart(one: float, other: float) -> bool:
    if abs(one) > _ENDLESS and abs(other) > _ENDLESS:
        return False
    return abs(one - other) > _SAME * max(1.0, abs(one), abs(other))


def _with(joint: JointLimits, tightest: Mapping[str, float]) -> JointLimits:
    for low, high in (("position_low", "position_high"), ("command_low", "command_high")):
        if not tightest[low] < tightest[high]:
            raise Sim2RealError(
                f"bundle, twin and robot leave joint {joint.name} no room: {low} {tightest[low]:g},"
                f" {high} {tightest[high]:g}"
            )
    changed: dict[str, Any] = dict(tightest)
    return replace(joint, **changed)
