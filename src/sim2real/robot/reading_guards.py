"""Which readings can be believed, and for how long the robot has been without any."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim2real.arrays import Bools, Floats, Reals
from sim2real.contract import Contract, Limits
from sim2real.robot.safety_rules import POSITION_SLACK, REACH_M, REACH_RAD, Guard

_CLOCK_TOLERANCE_S = 1e-3
"""How far in the future the time of a reading may lie [s]."""
_FAST = 1.0
"""Speed at which not even friction stops a joint at once [rad/s or m/s]."""
_STUCK_LEAD = 0.2
"""Lead of a servo's command that overcomes friction and weight [rad or m]."""
_STILL_S = 0.2
"""Time with the very same reading, while its command moves, that stops the robot [s]."""
_ROUNDING_S = 1e-6


@dataclass(frozen=True, kw_only=True)
class Sight:
    """What is known of the robot in a period."""

    readings: Floats | None
    """The newest that can be believed; None before the first since the start."""
    new: bool
    """Whether they came in this period."""
    held: bool
    """Whether the last command has to stand, because too little is known."""
    wrong: str = ""
    """Why the robot has to stop; '' if it need not."""
    blind: bool = False
    """Whether that is because of an encoder, by which a drive that holds is wrong, too."""


class ReadingGuards:
    """Looks at each period's readings before anybody else does."""

    def __init__(self, contract: Contract, limits: Limits, without: frozenset[Guard]) -> None:
        positions, velocities = (contract.columns(kind) for kind in ("jointpos", "jointvel"))
        joints = [command.joint for command in contract.commands]
        self._joints = [k for k, joint in enumerate(joints) if joint in positions]
        """Commanded joints whose position is measured."""
        mine = [joints[k] for k in self._joints]
        self._names = [limits.joints[k].name for k in self._joints]
        self._places = np.array([positions[joint] for joint in mine], dtype=int)
        self._speeds = np.array([velocities.get(joint, -1) for joint in mine], dtype=int)
        self._fastest = limits.of("velocity")[self._joints]
        slides = [contract.commands[k].unit == "m" for k in self._joints]
        self._reach = np.where(slides, REACH_M, REACH_RAD)
        # Where readings end that nobody stops the robot for, and a little further.
        self._low = limits.of("position_low")[self._joints] - POSITION_SLACK - self._reach
        self._high = limits.of("position_high")[self._joints] + POSITION_SLACK + self._reach
        self._servo = np.array([contract.commands[k].stiffness > 0 for k in self._joints])
        span = (limits.of("command_high") - limits.of("command_low"))[self._joints]
        # Friction may hold a joint against a small torque, but not a servo's step.
        self._much = np.where(self._servo, np.minimum(0.1 * span, 0.15), 0.1 * span)
        self._width = contract.readings_width
        self._period_s = 1.0 / contract.rate_hz
        self._reaction_s = limits.reaction_s
        self._delay_s = max(
            (s.delay_s for s in contract.sensors if s.kind.startswith("joint")), default=0.0
        )
        self._without = without
        self.reset(0.0)

    def reset(self, now_s: float) -> None:
        """Forget what was seen before a moment."""
        count = len(self._joints)
        self._readings: Floats | None = None
        self._taken_s = now_s
        """When the newest believed readings were taken [s]."""
        self._speed = np.zeros(count)
        self._lost, self._jumped = 0, False
        self._same_s = np.zeros(count)
        """Since when each joint has read the same [s]."""
        self._before = np.zeros((2, count))
        """Its speed in the two periods before that."""
        self._rest_command: Floats | None = None
        """Command that each joint had when its reading changed last."""
        self._pushed_s = np.full(count, np.inf)
        """Since when each joint should have moved [s]."""

    def look(
        self, readings: Reals | None, *, fresh: bool, age_s: float, now_s: float,
        command: Floats | None,
    ) -> Sight:  # fmt: skip
        """What the readings of a period are worth, while `command` was the last that was sent."""
        if readings is not None and np.shape(readings) != (self._width,):
            return self._sight(
                wrong=f"the robot gave {np.size(readings)} numbers, not {self._width}"
            )
        seen = None if readings is None else np.asarray(readings, dtype=float)
        doubt = self._doubt(seen, fresh, age_s, now_s)
        if not doubt:
            assert seen is not None
            stuck = self._stuck(seen, now_s, command) if Guard.STUCK not in self._without else ""
            self._note(seen, now_s, age_s)
            self._lost = 0
            return Sight(readings=seen, new=True, held=False, wrong=stuck, blind=bool(stuck))
        self._lost += 1
        silent_s, bound_s = now_s - self._taken_s, self._bound_s()
        if self._jumped and self._lost > 1:
            return self._sight(wrong=f"{doubt}, again", blind=True)
        if silent_s > bound_s + _CLOCK_TOLERANCE_S:
            return self._sight(wrong=f"{doubt}: no good one for {1e3 * silent_s:.0f} ms")
        return self._sight(held=self._lost > 1 or self._readings is None)

    def _sight(self, *, held: bool = False, wrong: str = "", blind: bool = False) -> Sight:
        return Sight(readings=self._readings, new=False, held=held, wrong=wrong, blind=blind)

    def _doubt(self, seen: Floats | None, fresh: bool, age_s: float, now_s: float) -> str:
        """Why these readings are not believed; '' if they are."""
        off, self._jumped = self._without, False
        if seen is None:
            return "there are no readings"
        if not fresh:
            return "" if Guard.LOST in off else "the readings stay away"
        if not np.isfinite(seen).all():
            return "" if Guard.NUMBER in off else "a reading is not a number"
        oldest_s = self._period_s + self._delay_s + _CLOCK_TOLERANCE_S
        if Guard.LOST not in off and not -_CLOCK_TOLERANCE_S <= age_s <= oldest_s:
            self._know_of(age_s, now_s)
            return f"the readings are {1e3 * age_s:.0f} ms old"
        if Guard.JUMP not in off and self._readings is not None and len(self._joints):
            moved = np.abs(seen[self._places] - self._readings[self._places])
            passed_s = max(now_s - age_s - self._taken_s, self._period_s)
            far = moved > self._fastest * passed_s + self._reach
            if far.any():
                self._jumped = True
                k = int(np.argmax(far))
                return f"joint {self._names[k]} reads {moved[k]:.2f} further than it can be"
        return ""

    def _know_of(self, age_s: float, now_s: float) -> None:
        """Old readings still tell when the robot was last heard of."""
        if 0.0 <= age_s < now_s - self._taken_s and self._readings is not None:
            self._taken_s = now_s - age_s

    def _bound_s(self) -> float:
        """How long after the last good readings the robot has to stop [s]."""
        if self._readings is None or not len(self._joints):
            return self._reaction_s
        here, speed = self._readings[self._places], self._speed
        room = np.where(speed > 0, self._high - here, here - self._low)
        with np.errstate(divide="ignore", invalid="ignore"):
            reach_s = np.where(speed != 0, np.maximum(room, 0.0) / np.abs(speed), np.inf)
        return min(self._reaction_s, max(float(reach_s.min()), self._period_s + self._delay_s))

    def _note(self, seen: Floats, now_s: float, age_s: float) -> None:
        here = seen[self._places]
        if self._readings is not None:
            passed_s = max(now_s - age_s - self._taken_s, _ROUNDING_S)
            differed = (here - self._readings[self._places]) / passed_s
            speed = np.where(self._speeds >= 0, seen[self._speeds], differed)
            changed: Bools = here != self._readings[self._places]
            self._before[:, changed] = np.stack([self._before[1], speed])[:, changed]
            self._same_s[changed] = now_s
            self._speed = speed
        else:
            self._same_s[:] = now_s
        self._readings, self._taken_s = seen.copy(), now_s - age_s

    def _stuck(self, seen: Floats, now_s: float, command: Floats | None) -> str:
        """What cannot be true of new readings; '' if all of it can."""
        if self._readings is None or command is None:
            return ""
        here, mine = seen[self._places], command[self._joints]
        # A servo may have arrived.
        driven = ~self._servo | (np.abs(mine - here) > _STUCK_LEAD)
        speed = np.abs(self._before).min(axis=0)
        same = here == self._readings[self._places]
        room = np.where(self._before[1] > 0, self._high - here, here - self._low)
        with np.errstate(divide="ignore"):
            bound_s = np.minimum(self._reaction_s, np.maximum(room, 0.0) / speed)
        long = now_s - self._same_s > np.maximum(bound_s, 2 * self._period_s) - _CLOCK_TOLERANCE_S
        wrong = same & driven & (speed > _FAST) & long
        if wrong.any():
            return f"joint {self._names[int(np.argmax(wrong))]} reads the same though it was moving"
        # A joint at rest reads the same, until a command that moved should have moved it.
        rest = mine if self._rest_command is None else np.where(same, self._rest_command, mine)
        self._rest_command = rest
        pushed = same & (np.abs(mine - rest) > self._much)
        self._pushed_s = np.where(pushed, np.minimum(self._pushed_s, now_s), np.inf)
        still = now_s - self._pushed_s >= _STILL_S - _CLOCK_TOLERANCE_S
        if still.any():
            return f"joint {self._names[int(np.argmax(still))]} reads the same while commands move"
        return ""
