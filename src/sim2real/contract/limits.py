"""How far a robot may go: the limits that the safety supervisor enforces."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sim2real.arrays import Floats
from sim2real.errors import Sim2RealError, number_at
from sim2real.plain import High, Low, PlainData

SOFT_START_S = 1.0
"""Time after a start from which commands may change as fast as the limits allow [s]."""
SOFT_START_SHARE = 0.2
"""Share of that rate at the start."""
_LONGEST_REACTION_S = 0.5
"""More would let a robot move on readings that are long out of date [s]."""


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
    """Largest change of the command per second."""

    def __post_init__(self) -> None:
        for low, high in (("position_low", "position_high"), ("command_low", "command_high")):
            self._check(getattr(self, low) < getattr(self, high), low, f"below {high}")
        for name in ("velocity", "acceleration", "torque", "command_rate"):
            self._check(getattr(self, name) > 0, name, "positive")
        for name in ("command_low", "command_high", "command_rate"):
            self._check(math.isfinite(getattr(self, name)), name, "finite")

    def _check(self, right: bool, name: str, wanted: str) -> None:
        if not right:
            raise Sim2RealError(
                f"limits of joint {self.name!r}: {name} must be {wanted}, not"
                f" {getattr(self, name):g}"
            )


@dataclass(frozen=True, kw_only=True)
class Limits(PlainData, former=("stale_periods", "overrun_periods")):
    """Limits of a robot under a policy."""

    joints: tuple[JointLimits, ...]
    observation_low: tuple[Low, ...]
    observation_high: tuple[High, ...]
    """Range of each number of the observation in training, widened."""
    tool: str = ""
    """Site that must stay in the workspace; '' for none."""
    workspace_low: tuple[Low, ...] = ()
    workspace_high: tuple[High, ...] = ()
    """Corners of the box that the tool must stay in [m]."""
    reaction_s: float = 0.1
    """Longest time that a robot may move without good readings, or on a period that began late,
    before the run ends [s]."""

    def __post_init__(self) -> None:
        reaction_s = number_at(self.reaction_s, "limits: reaction_s")
        if not 0 < reaction_s <= _LONGEST_REACTION_S:
            raise Sim2RealError(
                f"limits: reaction_s must be above 0 and at most {_LONGEST_REACTION_S:g}, not"
                f" {reaction_s:g}"
            )
        if len(self.observation_low) != len(self.observation_high):
            raise Sim2RealError(
                f"limits: observation_low has {len(self.observation_low)} numbers, but"
                f" observation_high has {len(self.observation_high)}"
            )
        if len(self.workspace_low) != len(self.workspace_high) or (
            self.tool and len(self.workspace_low) != 3
        ):
            raise Sim2RealError("limits: workspace_low and workspace_high need three numbers each")
        for low, high in zip(self.workspace_low, self.workspace_high, strict=True):
            if not low < high:
                raise Sim2RealError(
                    f"limits: workspace_low must be below workspace_high, not {low:g} and {high:g}"
                )

    def of(self, name: str) -> Floats:
        """(commands,) one limit of every joint, such as 'command_low'."""
        return np.array([getattr(joint, name) for joint in self.joints], dtype=float)
