"""The commands that a robot may be sent: within their range, and near what it was sent before.

The robot says what it took, and may be wrong. So the next command is within a step of the last one
*and* of what the robot says, as far as both can be.
"""

from __future__ import annotations

import numpy as np

from sim2real.arrays import Bools, Floats, Reals
from sim2real.contract import SOFT_START_S, SOFT_START_SHARE, Contract, Limits
from sim2real.robot.safety_rules import Guard

_ROUNDING = 1e-3
"""Difference between a command and its echo from rounding alone [rad, m or N m]."""
_OTHERS_S = 0.5
"""Time in which commands of another program are counted [s]."""
_OTHERS = 2
"""Number of them that stops the robot."""


class CommandReference:
    """What was sent last, and what may be sent next."""

    def __init__(self, contract: Contract, limits: Limits, without: frozenset[Guard]) -> None:
        self._low, self._high = limits.of("command_low"), limits.of("command_high")
        self._rate = limits.of("command_rate")
        self._period_s = 1.0 / contract.rate_hz
        self._reaction_s = limits.reaction_s
        self._without = without
        self._torque = np.array([command.stiffness == 0 for command in contract.commands])
        self.reset(np.zeros(len(self._low)), 0.0)

    @property
    def last(self) -> Floats:
        """The last command."""
        return self._sent

    def reset(self, resting: Reals, now_s: float) -> None:
        """Begin with the command that keeps the robot where it is."""
        self._sent: Floats = np.clip(np.asarray(resting, dtype=float), self._low, self._high)
        self._resting = self._sent
        self._taken = self._sent
        self._before = self._sent
        self._begun_s = self._sent_s = now_s
        self._first = True
        self._wrong_since_s = np.inf
        """Since when echoes have not been believable [s]."""
        self._recent: list[tuple[float, Floats]] = [(now_s, self._sent)]
        self._others: list[float] = []
        self._strange: Floats | None = None

    def step(self, now_s: float) -> Floats:
        """(commands,) largest change that is allowed now."""
        passed_s = self._period_s if self._first else now_s - self._sent_s
        share = float(np.clip(passed_s / self._period_s + 1e-6, 0.0, 1.0))
        if Guard.SOFT_START not in self._without:
            share *= min(1.0, max(SOFT_START_SHARE, (now_s - self._begun_s) / SOFT_START_S))
        return self._rate * self._period_s * share

    def allowed(self, wanted: Floats, now_s: float) -> Floats:
        """(commands,) the command nearest to a wanted one."""
        step, off = self.step(now_s), self._without
        found = wanted
        if Guard.RATE not in off:
            low, high = self._sent - step, self._sent + step
            if Guard.ECHO not in off:
                found = np.clip(found, self._taken - step, self._taken + step)
            found = np.clip(found, low, high)
        return found if Guard.RANGE in off else np.clip(found, self._low, self._high)

    def softly(self, wanted: Floats, now_s: float) -> Floats:
        """(commands,) the command nearest to a wanted one, at a fraction of the rate."""
        step = SOFT_START_SHARE * self.step(now_s)
        return self.allowed(np.clip(wanted, self._sent - step, self._sent + step), now_s)

    def holding(self, now_s: float) -> Floats:
        """(commands,) what to send while too little is known: servos stay, torques go to rest."""
        return self.allowed(np.where(self._torque, self._resting, self._sent), now_s)

    def follow(self, command: Floats, now_s: float) -> None:
        """Take note of a command that another controller sent, or of none that was: `resting`."""
        self._sent = self._taken = self._before = np.clip(command, self._low, self._high)
        self._first, self._sent_s = True, now_s

    def sent(self, command: Floats, now_s: float) -> None:
        """Take note of a command that goes out."""
        self._before, self._sent, self._taken = self._taken, command, command
        self._sent_s, self._first = now_s, False
        self._recent = [one for one in self._recent if one[0] > now_s - _OTHERS_S][-64:]
        self._recent.append((now_s, command))

    def echoed(self, taken: Reals, here: Floats | None, now_s: float) -> str:
        """Take note of what the robot says it took; why that is not believable any more, or ''.

        `now_s` is when the driver had taken it. A robot with limits of its own takes something
        between what it had and what it was sent, or where it is (`here`).
        """
        self._sent_s, given = now_s, np.asarray(taken, dtype=float)
        if given.shape != self._sent.shape:
            given = np.full(self._sent.shape, np.nan)
        known = [self._before, self._sent] + ([] if here is None else [here])
        low, high = np.min(known, axis=0) - _ROUNDING, np.max(known, axis=0) + _ROUNDING
        honest = bool(((low <= given) & (given <= high)).all())
        if honest:
            self._taken, self._wrong_since_s = given, np.inf
            return ""
        self._wrong_since_s = min(self._wrong_since_s, now_s)
        # One is no fault, and moves nothing: the next command stays near what was sent.
        if Guard.ECHO in self._without:
            self._sent = np.where(
                np.isfinite(given), np.clip(given, self._low, self._high), self._sent
            )
            return ""
        if now_s - self._wrong_since_s > self._reaction_s - 0.5 * self._period_s:
            return "the robot says again and again that it took what it was not sent"
        return ""

    def reported(self, command: Floats | None, now_s: float) -> str:
        """Take note of the command that the robot reports to follow; whose it is not, or ''."""
        if command is None or Guard.OTHER_PROGRAM in self._without:
            return ""
        if command.shape != self._sent.shape:
            return ""
        if self._strange is None:  # what it followed before the start
            self._strange = command
        if self._ours(command) or np.allclose(command, self._strange, rtol=0, atol=_ROUNDING):
            return ""
        self._others = [*(t for t in self._others if t > now_s - _OTHERS_S), now_s]
        if len(self._others) < _OTHERS:
            return ""
        return "another program commands the robot, too"

    def _ours(self, command: Floats) -> bool:
        sent = np.stack([one for _, one in self._recent])
        near: Bools = np.abs(sent - command) <= _ROUNDING
        return bool(near.all(axis=1).any())
