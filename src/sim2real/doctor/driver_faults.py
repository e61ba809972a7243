"""Faults of a driver as corrections of a joint's motion: which makes it a normal one again?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from sim2real.arrays import Floats
from sim2real.doctor.findings import Fault
from sim2real.doctor.joint_response import JointMotion
from sim2real.doctor.signal_relations import DEGREES

OFFSETS = (0.03, 0.06, 0.09, 0.13, 0.17, 0.22, 0.3, 0.4, 0.55)
"""Zero errors that are tried, both ways [rad or m]."""
LEAST_OFFSET = 0.12
"""Smaller ones are calibration, sag and friction, not a fault of the interface."""
LEAST_FACTOR = 1.3
"""Smaller ones are within what motors and gears differ by."""
LEAST_TORQUE = 2.2
"""The same for torques: friction, heat and a low battery take more than half of one."""
FACTORS = (1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0)
"""Scales that are tried, and their inverses."""
DELAYS = (1, 2, 3, 4, 5, 6, 8)
"""Delays that are tried [periods]."""

Correct = Callable[[JointMotion], JointMotion]


@dataclass(frozen=True)
class Hypothesis:
    """A fault of one joint, and the motion as it would be without it."""

    fault: Fault
    what: str
    """'readings', 'position', 'speed' or 'command'."""
    value: float
    """Factor, offset, periods, or number of the joint whose readings these are."""
    correct: Correct
    factors: tuple[float, float] = (1.0, 1.0)
    """How much the correction enlarges position and speed."""
    least: float = LEAST_FACTOR
    """Smaller factors count as physics."""

    @property
    def apart(self) -> bool:
        """Whether it sets a joint's position and speed readings at odds with each other."""
        alone = self.what in ("position", "speed") and self.fault is not Fault.OFFSET
        return alone

    @property
    def benign(self) -> bool:
        """Whether it is so small that it counts as physics."""
        if self.fault is Fault.OFFSET:
            return abs(self.value) < LEAST_OFFSET
        return self.fault is Fault.SCALE and 1 / self.least < self.value < self.least


def _enlarged(what: str, factor: float) -> tuple[float, float]:
    return (
        factor if what in ("readings", "position") else 1.0,
        factor if what in ("readings", "speed") else 1.0,
    )


def scaled(motion: JointMotion, what: str, factor: float) -> JointMotion:
    """Readings or commands multiplied by a factor."""
    if what == "command":
        return replace(motion, command=motion.command * factor)
    position = motion.position * factor if what in ("readings", "position") else motion.position
    speed = motion.speed
    if speed is not None and what in ("readings", "speed"):
        speed = speed * factor
    return replace(motion, position=position, speed=speed)


def earlier(motion: JointMotion, what: str, periods: int) -> JointMotion:
    """Readings as many periods earlier as they came late."""

    def moved(series: Floats) -> Floats:
        ahead = np.full_like(series, np.nan)
        if periods < series.shape[1]:
            ahead[:, :-periods] = series[:, periods:]
        return ahead

    position = moved(motion.position) if what in ("readings", "position") else motion.position
    weight = moved(motion.weight) if what in ("readings", "position") else motion.weight
    speed = motion.speed
    if speed is not None and what in ("readings", "speed"):
        speed = moved(speed)
    return replace(motion, position=position, speed=speed, weight=weight)


def single_joint(has_speed: bool, servo: bool) -> Iterator[Hypothesis]:
    """Faults that need no other joint; the likelier first."""
    parts = ("readings", "position", "speed") if has_speed else ("readings",)
    for what in parts:
        yield Hypothesis(Fault.SIGN, what, -1.0, _scaling(what, -1.0))
    for what in (*parts, "command"):
        for factor in (DEGREES, 1.0 / DEGREES):
            inverse = 1.0 / factor
            yield Hypothesis(
                Fault.DEGREES, what, factor, _scaling(what, inverse), _enlarged(what, inverse)
            )
    for what in parts[1:]:
        for periods in DELAYS[1:]:  # one period is what a filter of the drive may take
            yield Hypothesis(
                Fault.OBSERVATION_DELAYED, what, periods,
                partial(earlier, what=what, periods=periods),
            )  # fmt: skip
    for size in OFFSETS:
        for offset in (size, -size):
            yield Hypothesis(
                Fault.OFFSET, "position", offset,
                partial(_moved, offset=offset),
            )  # fmt: skip
    for what in (*parts, "command"):
        least = LEAST_FACTOR if servo or what != "command" else LEAST_TORQUE
        for size in FACTORS:
            for factor in (size, 1.0 / size):
                inverse = factor if what == "command" else 1.0 / factor
                yield Hypothesis(
                    Fault.SCALE, what, factor, _scaling(what, inverse), _enlarged(what, inverse),
                    least,
                )  # fmt: skip


def swaps(count: int, own: int, has_speed: bool) -> Iterator[tuple[Hypothesis, int]]:
    """The readings of joint `own` are those of another."""
    for other in range(count):
        if other != own:
            for what in ("readings", "position", "speed") if has_speed else ("readings",):
                yield Hypothesis(Fault.PERMUTED, what, other, lambda m: m), other


def swapped(mine: JointMotion, other: JointMotion, what: str) -> JointMotion:
    """A motion with another joint's readings."""
    position, speed = mine.position, mine.speed
    if what in ("readings", "position"):
        position = other.position
    if what in ("readings", "speed"):
        speed = other.speed
    return replace(mine, position=position, speed=speed)


def _moved(motion: JointMotion, offset: float) -> JointMotion:
    return replace(motion, position=motion.position - offset)


def _scaling(what: str, factor: float) -> Correct:
    return lambda motion: scaled(motion, what, factor)
