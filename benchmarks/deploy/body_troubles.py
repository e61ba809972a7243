"""Troubles of the robot's body, of the policy, and of another program that commands the robot."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.deploy.trouble import Setting, Trouble, chosen, lasting, limits_of
from benchmarks.deploy.true_trace import Motion
from benchmarks.deploy.unit_robot import UnitRobot
from sim2real.arrays import Floats, Reals
from sim2real.reality.breakage import Breakage

_BLIND_RAD = 0.02
"""Difference between a joint and its dead encoder that is more than noise [rad]."""


@dataclass(kw_only=True)
class BrokenEncoder(Trouble):
    """An encoder that jumps or sticks."""

    @classmethod
    def drawn(cls, rng: np.random.Generator, begin_s: float, setting: Setting) -> BrokenEncoder:
        """One of them."""
        what = chosen(rng, "jumps", "jumps on the bus only", "sticks", "all stick")
        count = len(setting.names)
        joint = int(rng.integers(count))
        if "stick" in what:
            end_s = lasting(rng, begin_s, 0.2, 1.0)
            joints = tuple(range(count)) if what == "all stick" else (joint,)
            body = Breakage(begin_s=begin_s, end_s=end_s, sticks=joints)
        else:
            end_s = lasting(rng, begin_s, 0.005, 0.15)
            jump = np.zeros(count)
            jump[joint] = rng.choice([-1.0, 1.0]) * rng.uniform(0.1, 3.0)
            body = Breakage(
                begin_s=begin_s, end_s=end_s, jump_rad=tuple(jump.tolist()),
                jumps_on_bus_only="bus" in what,
            )  # fmt: skip
        how = "for good" if np.isinf(end_s) else "for a while"
        return cls(
            begin_s=begin_s, end_s=end_s, body=body, impaired=[(begin_s, end_s)],
            variant=f"{what} {how}",
        )  # fmt: skip

    def shows_s(self, motion: Motion) -> float:
        """When the joint has left its dead encoder behind."""
        assert self.body is not None
        if not self.body.sticks:
            return self.begin_s
        part = motion.since(self.begin_s)
        joints = list(self.body.sticks)
        off = np.abs(part.angles[:, joints] - part.angles[:1, joints]).max(axis=1) > _BLIND_RAD
        return float(part.times[int(np.argmax(off))]) if off.any() else self.begin_s


@dataclass(kw_only=True)
class BlockedJoint(Trouble):
    """A joint that is stuck, for good or until it breaks free."""

    @classmethod
    def drawn(cls, rng: np.random.Generator, begin_s: float, setting: Setting) -> BlockedJoint:
        """One of them."""
        joint = int(rng.integers(len(setting.names)))
        end_s = lasting(rng, begin_s, 0.3, 1.5)
        body = Breakage(begin_s=begin_s, end_s=end_s, blocks=(joint,))
        how = "for good" if np.isinf(end_s) else "breaks free"
        return cls(begin_s=begin_s, end_s=end_s, body=body, variant=how)


@dataclass(kw_only=True)
class SaggingSupply(Trouble):
    """A supply whose voltage falls."""

    @classmethod
    def drawn(cls, rng: np.random.Generator, begin_s: float, setting: Setting) -> SaggingSupply:
        """One of them."""
        what = chosen(rng, "sags", "sags", "brown-out")
        low, high = (0.4, 0.75) if what == "sags" else (0.15, 0.35)
        end_s = lasting(rng, begin_s, 0.1, 1.5)
        body = Breakage(begin_s=begin_s, end_s=end_s, supply=float(rng.uniform(low, high)))
        how = "for good" if np.isinf(end_s) else "for a while"
        return cls(begin_s=begin_s, end_s=end_s, body=body, variant=f"{what} {how}")


class PolicyError(Exception):
    """A policy that fails."""


@dataclass(kw_only=True)
class WildPolicy(Trouble):
    """A policy that wants nonsense."""

    nonsense: str
    low: Floats
    high: Floats
    rng: np.random.Generator
    _turn: int = 0

    @classmethod
    def drawn(cls, rng: np.random.Generator, begin_s: float, setting: Setting) -> WildPolicy:
        """One of them."""
        nonsense = chosen(
            rng, "not a number", "infinite", "jumps between limits", "stays at a limit", "huge",
            "noise", "of the wrong size", "crashes",
        )  # fmt: skip
        return cls(
            begin_s=begin_s, end_s=lasting(rng, begin_s, 0.1, 1.0), nonsense=nonsense, rng=rng,
            low=limits_of(setting, "command_low"), high=limits_of(setting, "command_high"),
            variant=nonsense,
        )  # fmt: skip

    def __post_init__(self) -> None:
        self._up = self.rng.random(len(self.low)) < 0.5

    def wish(self, wanted: Reals, now_s: float) -> Reals:
        """Nonsense."""
        if not self.lasts(now_s):
            return wanted
        self._turn += 1
        count = len(self.low)
        if self.nonsense == "crashes":
            raise PolicyError("the policy fails")
        if self.nonsense == "of the wrong size":
            return np.zeros(count + 1)
        if self.nonsense in ("jumps between limits", "stays at a limit"):
            other = self.nonsense.startswith("jumps") and self._turn % 2
            return np.where(self._up ^ bool(other), self.low, self.high)
        if self.nonsense == "noise":
            return np.asarray(self.rng.uniform(self.low, self.high))
        worse = {"not a number": np.nan, "infinite": np.inf, "huge": 1e12}[self.nonsense]
        return np.where(self._up, worse, np.asarray(wanted, dtype=float).ravel() * 0.0 - worse)


@dataclass(kw_only=True)
class OtherProgram(Trouble):
    """Another program commands the same robot at its own rate."""

    does: str
    rate_hz: float
    middle: Floats
    swing: Floats
    swing_hz: float
    low: Floats
    high: Floats
    rng: np.random.Generator
    _next_s: float = 0.0

    @classmethod
    def drawn(cls, rng: np.random.Generator, begin_s: float, setting: Setting) -> OtherProgram:
        """One of them."""
        does = chosen(rng, "holds", "swings", "goes elsewhere", "jumps")
        low, high = limits_of(setting, "command_low"), limits_of(setting, "command_high")
        middle = np.zeros(len(low)) if setting.torque_driven else np.array(setting.angles)
        if does == "goes elsewhere":
            middle = rng.uniform(low, high)
        swing = 0.5 * rng.uniform(0.2, 1.0, len(low)) * (high - low) * 0.5
        return cls(
            begin_s=begin_s, end_s=lasting(rng, begin_s, 0.3, 1.5), does=does, middle=middle,
            rate_hz=float(np.exp(rng.uniform(np.log(10), np.log(200)))), swing=swing,
            swing_hz=float(rng.uniform(0.3, 2.0)), low=low, high=high, rng=rng,
            _next_s=begin_s, variant=does,
        )  # fmt: skip

    def next_event_s(self, now_s: float) -> float:
        """When it sends next."""
        return self._next_s if self._next_s < self.end_s else float(np.inf)

    def happen(self, robot: UnitRobot, event_s: float) -> None:
        """It sends a command of its own."""
        self._next_s = event_s + 1.0 / self.rate_hz
        command = self.middle.copy()
        if self.does == "swings":
            phase = 2 * np.pi * self.swing_hz * (event_s - self.begin_s)
            command = command + self.swing * np.sin(phase)
        if self.does == "jumps":
            command = self.rng.uniform(self.low, self.high)
        robot.device.send(np.clip(command, self.low, self.high))
