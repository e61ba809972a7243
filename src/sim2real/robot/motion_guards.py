"""Whether a robot moves within its limits, as far as its readings tell."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import numpy as np

from sim2real.arrays import Floats
from sim2real.contract import Contract, Limits
from sim2real.robot.safety_rules import (
    BLOCKED_S,
    POSITION_SLACK,
    REACH_M,
    REACH_RAD,
    Guard,
)

_TORQUE_SLACK = 1.25
"""Factor on torque limits: measured torques are estimates, from currents."""
_LEAD = 0.35
"""Distance to its command at which a servo that stands still is blocked [rad]; gravity and friction
explain less."""
_LEAD_M = 0.03
"""The same for a slide [m]."""
_DELAY_S = 0.15
"""How much later than it is sent a command may show in the readings [s]."""
_HOTTEST_C = 70.0
"""Temperature of a motor that stops the robot [°C]."""


class MotionGuards:
    """Compares believed readings with the limits."""

    def __init__(self, contract: Contract, limits: Limits, without: frozenset[Guard]) -> None:
        positions, velocities = (contract.columns(kind) for kind in ("jointpos", "jointvel"))
        joints = [command.joint for command in contract.commands]
        self._position = np.array([positions.get(joint, -1) for joint in joints], dtype=int)
        self._velocity = np.array([velocities.get(joint, -1) for joint in joints], dtype=int)
        self._limits, self._names = limits, [joint.name for joint in limits.joints]
        self._low = limits.of("position_low") - POSITION_SLACK
        self._high = limits.of("position_high") + POSITION_SLACK
        self._fastest, self._hardest = limits.of("velocity"), limits.of("acceleration")
        self._strongest = _TORQUE_SLACK * limits.of("torque")
        slides = np.array([command.unit == "m" for command in contract.commands])
        self._lead = np.where(slides, _LEAD_M, _LEAD)
        self._moving = np.where(slides, REACH_M, REACH_RAD)
        servo = np.array([command.stiffness > 0 for command in contract.commands])
        self._follows = servo & (self._position >= 0)
        self._tool = np.array([limits.workspace_low, limits.workspace_high], dtype=float)
        self._period_s = 1.0 / contract.rate_hz
        self._without = without
        self.reset()

    def reset(self) -> None:
        """Forget what was seen."""
        self._speed: Floats | None = None
        self._seen_s = 0.0
        self._commands: deque[tuple[float, Floats]] = deque()
        self._anchor = np.full(len(self._names), np.inf)
        """Where each joint was when it last moved."""
        self._anchor_s = np.zeros(len(self._names))
        """When that was [s]."""
        self._behind_s = np.full(len(self._names), np.inf)
        """Since when each joint has been far from every command of late [s]."""

    def sent(self, command: Floats, now_s: float) -> None:
        """Take note of a command."""
        self._commands.append((now_s, command.copy()))
        while len(self._commands) > 1 and self._commands[1][0] < now_s - _DELAY_S:
            self._commands.popleft()

    def wrong(
        self, readings: Floats, now_s: float, *, torque: Floats | None, tool: Floats | None,
        temperature: Floats | None,
    ) -> str:  # fmt: skip
        """The first limit that is exceeded; '' if none is."""
        for guard, found in self._checks(readings, now_s, torque, tool, temperature):
            if found and guard not in self._without:
                return found
        return ""

    def _checks(
        self, readings: Floats, now_s: float, torque: Floats | None, tool: Floats | None,
        temperature: Floats | None,
    ) -> Iterator[tuple[Guard, str]]:  # fmt: skip
        here = np.where(self._position >= 0, readings[self._position], 0.0)
        known = self._position >= 0
        beyond = known & ~((self._low <= here) & (here <= self._high))
        if beyond.any():
            k = int(np.argmax(beyond))
            joint = self._limits.joints[k]
            yield (
                Guard.POSITION,
                (
                    f"joint {joint.name} is at {here[k]:.3f}, outside its range"
                    f" {joint.position_low:.3f} to {joint.position_high:.3f}"
                ),
            )
        speed = np.where(self._velocity >= 0, readings[self._velocity], 0.0)
        fast = ~(np.abs(speed) <= self._fastest)
        if fast.any():
            k = int(np.argmax(fast))
            yield (
                Guard.SPEED,
                (
                    f"joint {self._names[k]} moves at {speed[k]:.2f}, above its limit of"
                    f" {self._fastest[k]:.2f}"
                ),
            )
        yield Guard.ACCELERATION, self._accelerated(speed, now_s)
        self._watch_motion(here, now_s)
        yield Guard.TORQUE, self._strained(torque)
        yield Guard.TEMPERATURE, self._heated(temperature)
        yield Guard.TOOL, self._outside(tool)
        yield Guard.FOLLOWING, self._behind(here, now_s)

    def _accelerated(self, speed: Floats, now_s: float) -> str:
        before, self._speed = self._speed, speed
        passed_s, self._seen_s = max(now_s - self._seen_s, self._period_s), now_s
        if before is None:
            return ""
        change = np.abs(speed - before) / passed_s
        hard = ~(change <= self._hardest)
        if not hard.any():
            return ""
        k = int(np.argmax(hard))
        return (
            f"joint {self._names[k]} accelerates by {change[k]:.0f}, above its limit of"
            f" {self._hardest[k]:.0f}"
        )

    def _strained(self, torque: Floats | None) -> str:
        if torque is None:
            return ""
        if torque.shape != self._strongest.shape:
            return f"the robot gave {torque.size} torques, not {self._strongest.size}"
        strong = ~(np.abs(torque) <= self._strongest)
        if strong.any():
            k = int(np.argmax(strong))
            return (
                f"joint {self._names[k]} has a torque of {torque[k]:.2f}, above its limit of"
                f" {self._limits.joints[k].torque:.2f}"
            )
        return ""

    def _heated(self, temperature: Floats | None) -> str:
        if temperature is None:
            return ""
        if temperature.shape != self._strongest.shape:
            return f"the robot gave {temperature.size} temperatures, not {self._strongest.size}"
        hot = ~(temperature <= _HOTTEST_C)
        if not hot.any():
            return ""
        k = int(np.argmax(hot))
        return (
            f"the motor of {self._names[k]} has {temperature[k]:.0f} °C, above {_HOTTEST_C:.0f} °C"
        )

    def _outside(self, tool: Floats | None) -> str:
        if not self._limits.tool or tool is None:
            return ""
        low, high = self._tool
        if tool.shape == low.shape and ((low <= tool) & (tool <= high)).all():
            return ""
        return (
            f"the tool is at {np.round(tool, 3).tolist()}, outside its workspace"
            f" {np.round(low, 3).tolist()} to {np.round(high, 3).tolist()}"
        )

    def _watch_motion(self, here: Floats, now_s: float) -> None:
        moved = np.abs(here - self._anchor) >= self._moving
        self._anchor = np.where(moved, here, self._anchor)
        self._anchor_s = np.where(moved, now_s, self._anchor_s)

    def _behind(self, here: Floats, now_s: float) -> str:
        """A servo that stands still, far from every command of late."""
        if not self._follows.any() or not self._commands:
            return ""
        lead = np.abs(self._commands[-1][1] - here)
        if (self._follows & (lead > self._lead)).any():
            lead = np.abs(np.stack([command for _, command in self._commands]) - here).min(axis=0)
        far = self._follows & (lead > self._lead)
        self._behind_s = np.where(far, np.minimum(self._behind_s, now_s), np.inf)
        blocked = now_s - np.maximum(self._behind_s, self._anchor_s) >= BLOCKED_S - 1e-6
        if not blocked.any():
            return ""
        k = int(np.argmax(blocked))
        return (
            f"joint {self._names[k]} does not follow: it stands {lead[k]:.2f} from its command for"
            f" {BLOCKED_S:g} s"
        )
