"""The safety supervisor: nothing reaches the robot except through here.

One state machine in one place. A command leaves only in the state RUNNING, finite, within its
range, and no faster than its rate. Whatever goes wrong ends in STOPPED, with the reason; only a
person gets it out of that. `safety_rules` lists what is watched.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from sim2real.arrays import Floats, Reals
from sim2real.contract import Contract, Limits
from sim2real.errors import Sim2RealError
from sim2real.robot.command_reference import CommandReference
from sim2real.robot.motion_guards import MotionGuards
from sim2real.robot.reading_guards import ReadingGuards, Sight
from sim2real.robot.safety_rules import Guard

OPERATOR = "the operator stopped it"
_RESTING_SLACK = 0.05
"""How far outside its range a command may be that keeps the robot where it is."""
_ARRIVED = 1e-6
"""Change of a command below which servos have come to rest."""
_OUTSIDE_PERIODS = 3
"""Periods in a row with observations outside training that stop the robot."""


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
    now_s: float | None = None
    """Time of the period [s]; by default a period after the one before."""
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
    temperature: Floats | None = None
    """Temperature of each motor, if the robot reports it [°C]."""
    following: Floats | None = None
    """Command that the robot reports to follow."""
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


class Supervisor:
    """Holds a policy to its limits; see `step`."""

    def __init__(
        self, contract: Contract, limits: Limits, *, without: Collection[Guard] = ()
    ) -> None:
        """`without` switches guards off: only for proving that each of them matters."""
        self.contract, self.limits = contract, limits
        self.state = State.DISARMED
        self.reason = ""
        """Why it is stopped."""
        self.blind = False
        """Whether it is stopped because encoders cannot be believed."""
        self._without = off = frozenset(without)
        self._readings = ReadingGuards(contract, limits, off)
        self._motion = MotionGuards(contract, limits, off)
        self._reference = CommandReference(contract, limits, off)
        positions = contract.columns("jointpos")
        servos = all(c.stiffness > 0 and c.joint in positions for c in contract.commands)
        self._places = [positions[c.joint] for c in contract.commands] if servos else None
        self._period_s = 1.0 / contract.rate_hz
        self._now_s = 0.0
        self._sight: Sight | None = None
        self._believed: Floats | None = None
        self._goal: Floats | None = None
        """Where servos come to rest."""
        self._outside = 0

    def arm(self, *, person: str, resting: Reals, now_s: float | None = None) -> None:
        """A person lets the robot move, from the command that rests where it is."""
        if not person:
            raise Sim2RealError("only a person may arm a robot: give a name")
        rest = np.asarray(resting, dtype=float)
        low, high = self.limits.of("command_low"), self.limits.of("command_high")
        if rest.shape != low.shape or not np.isfinite(rest).all():
            raise Sim2RealError(
                f"the resting command must be {low.size} finite numbers, not {rest}"
            )
        slack = self.limits.of("command_rate") * self._period_s + _RESTING_SLACK
        far = np.abs(rest - np.clip(rest, low, high)) > slack
        if far.any():
            joint = self.limits.joints[int(np.argmax(far))]
            raise Sim2RealError(
                f"joint {joint.name} rests outside its command range, {joint.command_low:g} to"
                f" {joint.command_high:g}: move it by hand first"
            )
        self.state, self.reason, self.blind = State.RUNNING, "", False
        self._now_s = self._now_s if now_s is None else now_s
        self._outside, self._sight, self._believed, self._goal = 0, None, None, None
        self._reference.reset(rest, self._now_s)
        self._readings.reset(self._now_s)
        self._motion.reset()

    def look(self, inputs: Inputs) -> Sight:
        """What is known of the robot in a period, before the policy is asked."""
        now_s = self._now_s + self._period_s if inputs.now_s is None else inputs.now_s
        self._now_s = now_s
        self._sight = self._readings.look(
            inputs.readings, fresh=inputs.fresh, age_s=inputs.age_s, now_s=now_s,
            command=self._reference.last,
        )  # fmt: skip
        return self._sight

    def step(self, inputs: Inputs) -> Decision:
        """Decide on one period; it is looked at first, if it has not been."""
        if self.state is not State.RUNNING:
            return Decision(state=self.state, command=None)
        sight, self._sight = self._sight or self.look(inputs), None
        self._believed = sight.readings
        reason = self._wrong(inputs, sight)
        if reason:
            self.blind = sight.blind and reason == sight.wrong
            return self.stop(reason)
        if sight.held:
            command = self._reference.holding(self._now_s)
            self._went(command)
            return Decision(state=self.state, command=command.copy())
        reason = self._policy_fault(inputs)
        if reason:
            return self.stop(reason)
        wanted = np.asarray(inputs.wanted, dtype=float)
        allowed = self._reference.allowed(wanted, self._now_s)
        limited = tuple(
            joint.name
            for joint, asked, given in zip(self.limits.joints, wanted, allowed, strict=True)
            if abs(asked - given) > 1e-6
        )
        self._went(allowed)
        return Decision(state=self.state, command=allowed.copy(), limited=limited)

    def settle(self, inputs: Inputs) -> Floats | None:
        """The next command on the way to where the servos are; None if they are there.

        It is softer than the limits, and ends with a stop if anything is wrong.
        """
        if self.state is not State.RUNNING or self._places is None:
            return None
        sight, self._sight = self.look(inputs), None
        self._believed = sight.readings
        reason = self._wrong(inputs, sight)
        if reason or sight.readings is None:
            self.stop(reason)
            return None
        if self._goal is None:  # once: following the readings would sink with the weight
            self._goal = sight.readings[self._places]
        command = self._reference.softly(self._goal, self._now_s)
        if np.abs(command - self._reference.last).max() < _ARRIVED:
            return None
        self._went(command)
        return command.copy()

    def stop(self, reason: str) -> Decision:
        """Go to the safe stop; only `arm` gets out of it."""
        self.state, self.reason = State.STOPPED, reason
        return Decision(state=self.state, command=None, reason=reason)

    def sent(self, taken: Reals, *, now_s: float | None = None) -> None:
        """Take note of what the robot says it took, and when the driver had taken it."""
        if self.state is not State.RUNNING:
            return
        now_s = self._now_s if now_s is None else now_s
        here = None
        if self._places is not None and self._believed is not None:
            here = self._believed[self._places]
        wrong = self._reference.echoed(taken, here, now_s)
        if wrong:
            self.stop(wrong)

    def follow(self, command: Reals) -> None:
        """Take note of what another controller sent, or of the resting command if nobody did."""
        given = np.asarray(command, dtype=float)
        if given.shape == self._reference.last.shape and np.isfinite(given).all():
            self._reference.follow(given, self._now_s)

    def _went(self, command: Floats) -> None:
        self._reference.sent(command, self._now_s)
        self._motion.sent(command, self._now_s)

    def _wrong(self, inputs: Inputs, sight: Sight) -> str:
        """The first thing that is wrong; '' if nothing is."""
        off = self._without
        if inputs.operator_stop:
            return OPERATOR
        if Guard.CONNECTION not in off:
            if not inputs.connected:
                return "the connection is lost"
            if inputs.stopped_itself:
                return f"the robot stopped by itself: {inputs.stopped_itself}"
        if sight.wrong:
            return sight.wrong
        late_s = inputs.late_s
        if Guard.LATE not in off and not late_s <= max(self.limits.reaction_s, 2 * self._period_s):
            return f"a period began {1e3 * late_s:.0f} ms late"
        if not sight.new or sight.readings is None:
            return ""
        return self._reference.reported(
            inputs.following, self._now_s
        ) or self._motion.wrong(
            sight.readings, self._now_s, torque=inputs.torque, tool=inputs.tool,
            temperature=inputs.temperature,
        )  # fmt: skip

    def _policy_fault(self, inputs: Inputs) -> str:
        off = self._without
        if inputs.frame is None or inputs.wanted is None:
            return "the policy gave no command"
        frame, wanted = np.asarray(inputs.frame), np.asarray(inputs.wanted)
        if wanted.shape != self._reference.last.shape:
            return "the policy gave a command that is not a number"
        if Guard.POLICY not in off and not np.isfinite(wanted).all():
            return "the policy gave a command that is not a number"
        low = np.array(self.limits.observation_low)
        if frame.shape != low.shape or not np.isfinite(frame).all():
            return "the observation is not a number"
        high = np.array(self.limits.observation_high)
        outside = (frame < low) | (frame > high)
        self._outside = self._outside + 1 if outside.any() else 0
        if Guard.TRAINING not in off and self._outside >= _OUTSIDE_PERIODS:
            return f"the observation is outside training: {self._term(int(np.argmax(outside)))}"
        return ""

    def _term(self, column: int) -> str:
        for term in self.contract.observations:
            if column < term.width:
                return f"{term.name}[{column}]"
            column -= term.width
        return "?"
