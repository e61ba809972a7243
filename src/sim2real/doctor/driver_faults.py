"""Faults of a driver as corrections of a joint's motion: which one makes it normal again?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sim2real.arrays import Floats
from sim2real.doctor.findings import Fault
from sim2real.doctor.joint_response import JointMotion
from sim2real.doctor.signal_relations import DEGREES
from sim2real.doctor.thresholds import DoctorThresholds

OFFSETS = (0.03, 0.06, 0.09, 0.13, 0.17, 0.22, 0.3, 0.4, 0.55)
"""Zero errors to try, both ways [rad or m]."""
FACTORS = (1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0)
"""Scales to try, and their inverses."""
DELAYS = (1, 2, 3, 4, 5, 6, 8)
"""Delays to try [periods]."""


@dataclass(frozen=True)
class Hypothesis:
    """A fault of one joint, and how to undo it."""

    fault: Fault
    what: str
    """'readings', 'position', 'speed' or 'command'."""
    value: float
    """Factor, offset, periods, or index of the joint whose readings these are."""
    gain: float = 1.0
    """What the correction multiplies by."""
    least: float = 1.0
    """Smaller factors, or offsets, count as physics."""

    @property
    def apart(self) -> bool:
        """Whether it makes a joint's position and speed readings disagree."""
        return self.what in ("position", "speed") and self.fault is not Fault.OFFSET

    @property
    def benign(self) -> bool:
        """Whether it is small enough to count as physics."""
        if self.fault is Fault.OFFSET:
            return abs(self.value) < self.least
        return self.fault is Fault.SCALE and 1 / self.least < self.value < self.least

    @property
    def fee(self) -> float:
        """Added to the misfit of the corrected motion: else mere shrinking would look normal."""
        return 0.0 if self.what == "command" else -float(np.log(abs(self.gain)))

    def corrected(self, motions: Sequence[JointMotion], own: int) -> JointMotion:
        """The motion of joint `own` without the fault."""
        if self.fault is Fault.PERMUTED:
            other = motions[int(self.value)]
            return _reading(motions[own], self.what, other.position, other.speed)
        if self.fault is Fault.OBSERVATION_DELAYED:
            return earlier(motions[own], self.what, int(self.value))
        offset = self.value if self.fault is Fault.OFFSET else 0.0
        return _changed(motions[own], self.what, lambda series: series * self.gain - offset)


def single_joint(has_speed: bool, servo: bool, limits: DoctorThresholds) -> Iterator[Hypothesis]:
    """Faults of one joint alone, the most likely first."""
    parts = ("readings", "position", "speed") if has_speed else ("readings",)
    for what in parts:
        yield Hypothesis(Fault.SIGN, what, -1.0, gain=-1.0)
    for what in (*parts, "command"):
        for factor in (DEGREES, 1.0 / DEGREES):
            yield Hypothesis(Fault.DEGREES, what, factor, gain=1.0 / factor)
    for what in parts[1:]:
        for periods in DELAYS[1:]:  # a filter in the drive may take one period
            yield Hypothesis(Fault.OBSERVATION_DELAYED, what, periods)
    for size in OFFSETS:
        for offset in (size, -size):
            yield Hypothesis(Fault.OFFSET, "position", offset, least=limits.zero_offset)
    for what in (*parts, "command"):
        least = limits.torque_scale if what == "command" and not servo else limits.scale
        for size in FACTORS:
            for factor in (size, 1.0 / size):
                gain = factor if what == "command" else 1.0 / factor
                yield Hypothesis(Fault.SCALE, what, factor, gain=gain, least=least)


def swaps(motions: Sequence[JointMotion], own: int) -> Iterator[Hypothesis]:
    """The readings of joint `own` are those of another."""
    has_speed = motions[own].speed is not None
    for other in range(len(motions)):
        if other != own:
            for what in ("readings", "position", "speed") if has_speed else ("readings",):
                yield Hypothesis(Fault.PERMUTED, what, other)


def earlier(motion: JointMotion, what: str, periods: int) -> JointMotion:
    """The motion with readings taken a number of periods earlier."""

    def ahead(series: Floats) -> Floats:
        found = np.full_like(series, np.nan)
        if periods < series.shape[1]:
            found[:, :-periods] = series[:, periods:]
        return found

    moved = _changed(motion, what, ahead)
    return moved if what == "speed" else replace(moved, weight=ahead(motion.weight))


def _changed(motion: JointMotion, what: str, change: Callable[[Floats], Floats]) -> JointMotion:
    """The motion with its position, speed or command changed; 'readings' are the first two."""
    if what == "command":
        return replace(motion, command=change(motion.command))
    speed = None if motion.speed is None else change(motion.speed)
    return _reading(motion, what, change(motion.position), speed)


def _reading(motion: JointMotion, what: str, position: Floats, speed: Floats | None) -> JointMotion:
    """The motion with other 'readings', or another 'position' or 'speed' alone."""
    return replace(
        motion,
        position=motion.position if what == "speed" else position,
        speed=motion.speed if what == "position" else speed,
    )
