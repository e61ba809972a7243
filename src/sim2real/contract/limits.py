"""How far a robot may go: what the safety supervisor holds a policy to."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sim2real.arrays import Floats
from sim2real.errors import Sim2RealError, number_at
from sim2real.plain import High, Low, PlainData

_MOST_PERIODS = 10.0


@dataclass(frozen=True, kw_only=True)
class JointLimits:
    """One joint and the command that drives it, in SI units."""

    name: str
    """Joint."""
    position_low: Low
    position_high: High
    velocity: High
    acceleration: High
    torque: High
    command_low: Low
    command_high: High
    command_rate: High
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
class Limits(PlainData):
    """Limits of a robot under a policy."""

    joints: tuple[JointLimits, ...]
    observation_low: tuple[Low, ...]
    observation_high: tuple[High, ...]
    """Range of each number of the observation that training has seen, widened."""
    tool: str = ""
    """Site that must stay in the workspace; '' for none."""
    workspace_low: tuple[Low, ...] = ()
    workspace_high: tuple[High, ...] = ()
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

    def of(self, name: str) -> Floats:
        """(commands,) one of the limits of every joint, as 'command_low'."""
        return np.array([getattr(joint, name) for joint in self.joints], dtype=float)
