"""What may break in the body of a unit: encoders, joints, the supply; and how a unit is worn."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from sim2real.arrays import Floats
from sim2real.reality.unit_truth import UnitTruth

BLOCKED_NM = 40.0
"""Friction of a joint that is blocked, far above what its drive gives [N m]."""


@dataclass(frozen=True, kw_only=True)
class Breakage:
    """Something that breaks in a unit's body at one moment of its clock, for a time or for good."""

    begin_s: float
    """When it breaks, on the unit's clock [s]."""
    end_s: float = math.inf
    """When it is whole again [s]."""
    sticks: tuple[int, ...] = ()
    """Joints whose encoders keep the angle that they read when they broke."""
    jump_rad: tuple[float, ...] = ()
    """What each joint's encoder reads too much [rad]; empty for nothing."""
    jumps_on_bus_only: bool = False
    """Whether only the readings jump; otherwise the drive's own loop sees the jump too."""
    blocks: tuple[int, ...] = ()
    """Joints that are stuck."""
    supply: float = 1.0
    """Voltage of the supply, as a ratio to what it would be."""

    def lasts(self, time_s: float) -> bool:
        """Whether it is broken at a moment of the unit's clock [s]."""
        return self.begin_s <= time_s < self.end_s

    def on_bus(self, angles: Floats, time_s: float) -> Floats:
        """Readings of encoders as they go onto the bus."""
        if self.jumps_on_bus_only and self.jump_rad and self.lasts(time_s):
            return np.asarray(angles + np.array(self.jump_rad))
        return angles


@dataclass(frozen=True, kw_only=True)
class Firmware:
    """What a unit's drives do about faults by themselves."""

    watchdog_s: float = 0.25
    """Time without a command after which it goes to its safe stop [s]; inf for no watchdog."""
    overspeed_rad_s: float = 14.0
    """Joint speed that makes it stop [rad/s]."""
    checks_encoders: bool = True
    """Whether it stops when its motors turn while their encoders stand still."""
    checks_supply: bool = True
    """Whether it stops when its supply breaks down."""


PLAIN_FIRMWARE = Firmware(overspeed_rad_s=math.inf, checks_encoders=False, checks_supply=False)
"""Firmware of cheap drives: a watchdog, and nothing else."""


def worn(truth: UnitTruth, number: int) -> UnitTruth:
    """The unit after years: weak drives, dry gears, a slow bus, all within what units may have."""
    rng = np.random.default_rng([number, 9])
    joints = len(truth.gain)
    return replace(
        truth,
        gain=rng.uniform(0.75, 0.85, joints),
        friction=rng.uniform(1.9, 2.2, joints),
        stribeck=rng.uniform(0.4, 0.5, joints),
        sensor_delay_s=float(rng.uniform(0.0065, 0.008)),
        sensor_jitter_s=float(rng.uniform(0.0015, 0.002)),
        command_jitter_s=float(rng.uniform(0.004, 0.005)),
        command_delay_s=max(truth.command_delay_s, float(rng.uniform(0.032, 0.038))),
        lost=float(rng.uniform(0.008, 0.01)),
    )
