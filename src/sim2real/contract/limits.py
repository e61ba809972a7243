"""How far a robot may go: what the safety supervisor holds a policy to."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, fields

from sim2real.errors import Sim2RealError, nearest, number_at, table_at

_MOST_PERIODS = 10.0


@dataclass(frozen=True, kw_only=True)
class JointLimits:
    """One joint and the command that drives it, in SI units."""

    name: str
    """Joint."""
    position_low: float
    position_high: float
    velocity: float
    acceleration: float
    torque: float
    command_low: float
    command_high: float
    command_rate: float
    """Fastest change of the command a second."""

    def __post_init__(self) -> None:
        for low, high in (("position_low", "position_high"), ("command_low", "command_high")):
            if not getattr(self, low) < getattr(self, high):
                raise Sim2RealError(f"limits of joint {self.name!r}: {low} is not below {high}")
        for name in ("velocity", "acceleration", "torque", "command_rate"):
            if not getattr(self, name) > 0:
                raise Sim2RealError(f"limits of joint {self.name!r}: {name} must be positive")
        for name in ("command_low", "command_high", "command_rate"):
            if not math.isfinite(getattr(self, name)):
                raise Sim2RealError(f"limits of joint {self.name!r}: {name} must be a number")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of a robot under a policy."""

    joints: tuple[JointLimits, ...]
    observation_low: tuple[float, ...]
    observation_high: tuple[float, ...]
    """Range of each number of the observation that training has seen, widened."""
    tool: str = ""
    """Site that must stay in the workspace; '' for none."""
    workspace_low: tuple[float, ...] = ()
    workspace_high: tuple[float, ...] = ()
    """Corners of the box the tool stays in [m]."""
    stale_periods: float = 1.75
    """Age of the last reading that ends the run when none came [control periods]: one packet may be
    lost, not two."""
    overrun_periods: float = 2.0
    """Lateness of a period that ends the run [control periods]."""

    def __post_init__(self) -> None:
        for name in ("stale_periods", "overrun_periods"):
            periods = number_at(getattr(self, name), f"limits: {name}")
            if not 0 < periods <= _MOST_PERIODS:
                raise Sim2RealError(f"limits: {name} is {periods:g}, not up to {_MOST_PERIODS:g}")
        if len(self.observation_low) != len(self.observation_high):
            raise Sim2RealError("limits: the observation's low and high differ in length")
        if len(self.workspace_low) != len(self.workspace_high) or (
            self.tool and len(self.workspace_low) != 3
        ):
            raise Sim2RealError("limits: a workspace has two corners of three numbers")
        for low, high in zip(self.workspace_low, self.workspace_high, strict=True):
            if not low < high:
                raise Sim2RealError("limits: the workspace's low corner is not below its high one")

    def to_json(self) -> str:
        """Indented JSON; what is unlimited is null."""
        data = json.loads(json.dumps(asdict(self)), parse_constant=lambda _: None)
        return json.dumps(data, indent=2, allow_nan=False) + "\n"

    @classmethod
    def from_dict(cls, data: object) -> Limits:
        """Limits from plain data; malformed ones are a `Sim2RealError`."""
        values = dict(table_at(data, "limits"))
        known = {entry.name for entry in fields(cls)}
        for name in values:
            if name not in known:
                raise Sim2RealError(f"limits have no field {name!r}{nearest(name, known)}")
        joints = values.pop("joints", None)
        if not isinstance(joints, list) or not joints:
            raise Sim2RealError("limits: joints must be a list")
        for name in ("observation_low", "observation_high", "workspace_low", "workspace_high"):
            numbers = values.get(name, [])
            if not isinstance(numbers, list):
                raise Sim2RealError(f"limits: {name} must be a list")
            sign = -1.0 if name.endswith("low") else 1.0
            values[name] = tuple(_number(v, f"limits: {name}", sign) for v in numbers)
        try:
            return cls(joints=tuple(_joint(entry) for entry in joints), **values)
        except TypeError as error:
            raise Sim2RealError(f"limits: {error}") from None


def _joint(data: object) -> JointLimits:
    values = dict(table_at(data, "limits: joints"))
    name = values.pop("name", None)
    if not isinstance(name, str):
        raise Sim2RealError("limits: a joint has no name")
    known = {entry.name for entry in fields(JointLimits)}
    for key in values:
        if key not in known:
            raise Sim2RealError(f"limits of joint {name!r}: no field {key!r}{nearest(key, known)}")
    numbers = {
        key: _number(value, f"limits of joint {name!r}: {key}", -1.0 if "low" in key else 1.0)
        for key, value in values.items()
    }
    try:
        return JointLimits(name=name, **numbers)
    except TypeError as error:
        raise Sim2RealError(f"limits of joint {name!r}: {error}") from None


def _number(value: object, where: str, sign: float) -> float:
    return sign * math.inf if value is None else number_at(value, where)
