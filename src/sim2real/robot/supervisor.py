"""The safety supervisor: nothing reaches the robot except through here.

One state machine in one place. A command leaves only in the state RUNNING, finite, within its
range, and no faster than its rate. Whatever goes wrong ends in STOPPED, with the reason; only a
person gets it out of that.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from sim2real.arrays import Floats, Ints, Reals
from sim2real.contract import Contract, Limits
from sim2real.errors import Sim2RealError

OPERATOR = "the operator stopped it"
_POSITION_SLACK = 0.05
"""How far beyond its limits a joint may read: zero errors and soft stops [rad or m]."""
_CLOCK_TOLERANCE_S = 1e-3
"""How far in the future the time of a reading may lie [s]."""
_TORQUE_SLACK = 1.25
"""Factor on torque limits: measured torques are estimates, from currents."""
_OUTSIDE_PERIODS = 3
"""Periods in a row with observations outside training that stop the robot."""
_FAST = 1.0
"""Speed at which not even friction stops a joint within a period [rad/s or m/s]."""
_STUCK_LEAD = 0.2
"""Lead of a servo's command that overcomes friction and weight [rad or m]."""
_FROZEN_PERIODS = 2
"""Periods in a row with the very same reading of a joint that was moving that stop the robot."""
_STILL_PERIODS = 12
"""Periods in a row with the very same readings, while commands move, that stop the robot."""


class State(StrEnum):
    """State of the supervisor."""

    DISARMED = "disarmed"
    """Nothing may move; no person has armed it yet."""
    RUNNING = "running"
    """Commands go through, limited."""
    STOPPED = "stopped"
    """Tripped or ended: the robot is in its safe stop."""


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What the supervisor sees in a period."""

    readings: Reals | None
    """Numbers of all sensors in the contract's order; None without any."""
    age_s: float = 0.0
    """Age of the readings [s]."""
    late_s: float = 0.0
    """How late this period began [s]."""
    fresh: bool = True
    """Whether the readings came in this period; otherwise they are the last known."""
    connected: bool = True
    stopped_itself: str = ""
    """Why the robot says it has stopped by itself; '' while it obeys."""
    operator_stop: bool = False
    frame: Reals | None = None
    """Observation of this period."""
    wanted: Reals | None = None
    """Command the policy asks for."""
    torque: Floats | None = None
    """Measured torque of each commanded joint, if the robot reports it [N m or N]."""
    tool: Floats | None = None
    """Position of the tool [m], if there is one."""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What happens in a period."""

    state: State
    command: Floats | None
    """Command to send; None for the safe stop."""
    reason: str = ""
    """Why it was stopped in this period; '' otherwise."""
    limited: tuple[str, ...] = ()
    """Joints whose command was limited."""


@dataclass
class Supervisor:
    """Holds a policy to its limits; see `step`."""

    contract: Contract
    limits: Limits
    state: State = State.DISARMED
    reason: str = ""
    """Why it is stopped."""

    def __post_init__(self) -> None:
        self._low, self._high = self.limits.of("command_low"), self.limits.of("command_high")
        self._step = self.limits.of("command_rate") / self.contract.rate_hz
        positions, velocities = (self.contract.columns(kind) for kind in ("jointpos", "jointvel"))
        joint_names = [command.joint for command in self.contract.commands]
        self._positions = [positions.get(joint) for joint in joint_names]
        self._velocities = [velocities.get(joint) for joint in joint_names]
        self._delay_s = max(
            (s.delay_s for s in self.contract.sensors if s.kind.startswith("joint")), default=0.0
        )
        self._watch = _Watch(self._positions, self._velocities, self.contract, self.limits)
        self._last: Floats | None = None
        self._speed: Floats | None = None
        self._outside = 0

    def arm(self, *, person: str, resting: Reals) -> None:
        """A person lets the robot move, from the command that rests where it is."""
        if not person:
            raise Sim2RealError("only a person may arm a robot: give a name")
        rest = np.asarray(resting, dtype=float)
        if rest.shape != self._low.shape or not np.isfinite(rest).all():
            raise Sim2RealError(
                f"the resting command must be {self._low.size} finite numbers, not {rest}"
            )
        far = np.abs(rest - np.clip(rest, self._low, self._high)) > self._step + _POSITION_SLACK
        if far.any():
            joint = self.limits.joints[int(np.argmax(far))]
            raise Sim2RealError(
                f"joint {joint.name} rests outside its command range, {joint.command_low:g} to"
                f" {joint.command_high:g}: move it by hand first"
            )
        self.state, self.reason = State.RUNNING, ""
        self._last = np.clip(rest, self._low, self._high)
        self._speed, self._outside = None, 0
        self._watch.reset()

    def step(self, inputs: Inputs) -> Decision:
        """Decide on one period."""
        if self.state is not State.RUNNING:
            return Decision(state=self.state, command=None)
        reason = self._wrong(inputs)
        if reason:
            return self.stop(reason)
        assert inputs.wanted is not None and self._last is not None
        wanted = np.asarray(inputs.wanted, dtype=float)
        allowed = np.clip(wanted, self._last - self._step, self._last + self._step)
        allowed = np.clip(allowed, self._low, self._high)
        limited = tuple(
            joint.name
            for joint, asked, given in zip(self.limits.joints, wanted, allowed, strict=True)
            if abs(asked - given) > 1e-6
        )
        self._last = allowed
        return Decision(state=self.state, command=allowed.copy(), limited=limited)

    def stop(self, reason: str) -> Decision:
        """Go to the safe stop; only `arm` gets out of it."""
        self.state, self.reason = State.STOPPED, reason
        return Decision(state=self.state, command=None, reason=reason)

    def sent(self, command: Reals) -> None:
        """Take note of what the robot says it really took, after limits of its own."""
        given = np.asarray(command, dtype=float)
        if self._last is not None and given.shape == self._last.shape and np.isfinite(given).all():
            self._last = np.clip(given, self._low, self._high)

    def _wrong(self, inputs: Inputs) -> str:
        """The first thing that is wrong; '' if nothing is."""
        period_s = 1.0 / self.contract.rate_hz
        if inputs.operator_stop:
            return OPERATOR
        if not inputs.connected:
            return "the connection is lost"
        if inputs.stopped_itself:
            return f"the robot stopped by itself: {inputs.stopped_itself}"
        if inputs.readings is None:
            return "there are no readings"
        readings = np.asarray(inputs.readings, dtype=float)
        if readings.shape != (self.contract.readings_width,):
            return f"the robot gave {readings.size} numbers, not {self.contract.readings_width}"
        if not np.isfinite(readings).all():
            return "a reading is not a number"
        # A packet that came is at most a period old, plus its sensors' delay; the last one may
        # stand in for one that was lost.
        oldest_s = (
            period_s + self._delay_s if inputs.fresh else self.limits.stale_periods * period_s
        )
        if not -_CLOCK_TOLERANCE_S <= inputs.age_s <= oldest_s:
            age, oldest = 1e3 * inputs.age_s, 1e3 * oldest_s
            return f"the readings are {age:.0f} ms old; at most {oldest:.0f} ms are allowed"
        if not inputs.late_s <= self.limits.overrun_periods * period_s:
            return f"a period began {1e3 * inputs.late_s:.0f} ms late"
        frozen = self._watch.frozen(readings, self._last) if inputs.fresh else ""
        return self._out_of_bounds(readings, inputs) or frozen or self._policy_fault(inputs)

    def _out_of_bounds(self, readings: Floats, inputs: Inputs) -> str:
        limits = self.limits
        for k, joint in enumerate(limits.joints):
            column = self._positions[k]
            if column is not None and not (
                joint.position_low - _POSITION_SLACK
                <= readings[column]
                <= joint.position_high + _POSITION_SLACK
            ):
                return (
                    f"joint {joint.name} is at {readings[column]:.3f}, outside its range"
                    f" {joint.position_low:.3f} to {joint.position_high:.3f}"
                )
            column = self._velocities[k]
            if column is not None and not abs(readings[column]) <= joint.velocity:
                return (
                    f"joint {joint.name} moves at {readings[column]:.2f}, above its limit of"
                    f" {joint.velocity:.2f}"
                )
        speed = np.array([0.0 if c is None else readings[c] for c in self._velocities])
        if self._speed is not None:
            change = np.abs(speed - self._speed) * self.contract.rate_hz
            for joint, value in zip(limits.joints, change, strict=True):
                if not value <= joint.acceleration:
                    return (
                        f"joint {joint.name} accelerates by {value:.0f}, above its limit of"
                        f" {joint.acceleration:.0f}"
                    )
        self._speed = speed
        if inputs.torque is not None:
            torque = np.asarray(inputs.torque, dtype=float)
            if torque.shape != self._low.shape:
                return f"the robot gave {torque.size} torques, not {self._low.size}"
            for joint, value in zip(limits.joints, torque, strict=True):
                if not abs(value) <= _TORQUE_SLACK * joint.torque:
                    return (
                        f"joint {joint.name} has a torque of {value:.2f}, above its limit of"
                        f" {joint.torque:.2f}"
                    )
        if limits.tool and inputs.tool is not None:
            low, high = np.array(limits.workspace_low), np.array(limits.workspace_high)
            tool = np.asarray(inputs.tool, dtype=float)
            if tool.shape != low.shape or not ((low <= tool) & (tool <= high)).all():
                return (
                    f"the tool is at {np.round(tool, 3).tolist()}, outside its workspace"
                    f" {np.round(low, 3).tolist()} to {np.round(high, 3).tolist()}"
                )
        return ""

    def _policy_fault(self, inputs: Inputs) -> str:
        if inputs.frame is None or inputs.wanted is None:
            return "the policy gave no command"
        frame, wanted = np.asarray(inputs.frame), np.asarray(inputs.wanted)
        if wanted.shape != self._low.shape or not np.isfinite(wanted).all():
            return "the policy gave a command that is not a number"
        low = np.array(self.limits.observation_low)
        if frame.shape != low.shape or not np.isfinite(frame).all():
            return "the observation is not a number"
        high = np.array(self.limits.observation_high)
        outside = (frame < low) | (frame > high)
        self._outside = self._outside + 1 if outside.any() else 0
        if self._outside >= _OUTSIDE_PERIODS:
            return f"the observation is outside training: {self._term(int(np.argmax(outside)))}"
        return ""

    def _term(self, column: int) -> str:
        for term in self.contract.observations:
            if column < term.width:
                return f"{term.name}[{column}]"
            column -= term.width
        return "?"


class _Watch:
    """Notices readings that have stopped following the robot."""

    def __init__(
        self,
        positions: list[int | None],
        velocities: list[int | None],
        contract: Contract,
        limits: Limits,
    ) -> None:
        self._joints = [
            (k, place, speed)
            for k, (place, speed) in enumerate(zip(positions, velocities, strict=True))
            if place is not None
        ]
        self._names = [joint.name for joint in limits.joints]
        self._servo = [command.stiffness > 0 for command in contract.commands]
        self._rate_hz = contract.rate_hz
        span = limits.of("command_high") - limits.of("command_low")
        # Friction may hold a joint against a small torque, but not a servo's step.
        self._much = 0.1 * np.where(self._servo, np.minimum(span, 1.0), span)
        self.reset()

    def reset(self) -> None:
        """Forget what was seen."""
        self._before: Floats | None = None
        self._command: Floats | None = None
        self._speeds: deque[Floats] = deque(maxlen=_FROZEN_PERIODS + 1)
        self._same: Ints = np.zeros(len(self._names), dtype=np.int64)
        self._still = 0

    def frozen(self, readings: Floats, command: Floats | None) -> str:
        """What cannot be true of the new readings; '' if all of it can."""
        before, self._before = self._before, readings.copy()
        fastest = np.max(self._speeds, axis=0) if self._speeds else np.zeros(len(self._names))
        speeds = np.zeros(len(self._names))
        for k, place, speed in self._joints:
            moved = 0.0 if before is None else readings[place] - before[place]
            speeds[k] = abs(moved * self._rate_hz if speed is None else readings[speed])
            self._same[k] = self._same[k] + 1 if before is not None and moved == 0.0 else 0
        self._speeds.append(speeds)
        if command is None or before is None:
            self._command = command
            return ""
        for k, place, _ in self._joints:
            # A servo may have arrived.
            driven = not self._servo[k] or abs(command[k] - readings[place]) > _STUCK_LEAD
            if self._same[k] >= _FROZEN_PERIODS and driven and fastest[k] > _FAST:
                return f"joint {self._names[k]} reads the same though it was moving"
        if (readings != before).any() or self._command is None:
            self._still, self._command = 0, command.copy()
            return ""
        # A robot at rest stands still, until a command that moved should have moved it.
        self._still += int((np.abs(command - self._command) > self._much).any())
        if self._still >= _STILL_PERIODS:
            return "the readings stand still while the commands move"
        return ""
