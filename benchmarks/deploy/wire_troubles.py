"""Troubles of the wire and of the processes at its ends: links, stalls, echoes, readings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from benchmarks.deploy.trouble import Setting, Trouble, chosen, lasting, limits_of
from benchmarks.deploy.unit_robot import UnitRobot
from sim2real.arrays import Reals
from sim2real.errors import Sim2RealError


@dataclass(kw_only=True)
class CutLink(Trouble):
    """Nothing comes through, one way or both; also no stop."""

    to_robot: bool
    from_robot: bool
    silent: bool
    """Whether the driver says nothing about it."""
    patience_s: float
    """How long a driver waits for an answer before it says that none came [s]."""

    @classmethod
    def drawn(cls, rng: np.random.Generator, begin_s: float, setting: Setting) -> CutLink:
        """One of them."""
        way = chosen(rng, "to the robot", "from the robot", "both ways")
        end_s = lasting(rng, begin_s, 0.05, 1.0)
        silent = bool(rng.random() < 0.5)
        patience_s = 0.0 if rng.random() < 0.5 else float(rng.uniform(0.02, 0.3))
        return cls(
            begin_s=begin_s, end_s=end_s, to_robot=way != "from the robot",
            from_robot=way != "to the robot", silent=silent, patience_s=patience_s,
            impaired=[(begin_s, end_s)],
            variant=f"{way}, {'silent' if silent else 'with errors'}",
        )  # fmt: skip

    def observe(self, robot: UnitRobot) -> Mapping[str, object]:
        """Nothing, if the robot cannot answer."""
        if self.lasts(robot.now()) and (self.from_robot or not self.silent):
            self._complain(robot)
            return {}
        return robot.read()

    def send(self, robot: UnitRobot, values: dict[str, float]) -> Mapping[str, float]:
        """Lost, or without an answer."""
        if not self.lasts(robot.now()):
            return robot.pass_on(values)
        if self.to_robot:
            robot.vanish(values)
        else:
            heard = robot.stopped_itself
            robot.pass_on(values)
            robot.stopped_itself = heard
        self._complain(robot)
        return dict(values)

    def stop(self, robot: UnitRobot) -> None:
        """A stop goes the same way as a command."""
        lasts = self.lasts(robot.now())
        if not lasts or not self.to_robot:
            robot.halt()
        if lasts:
            self._complain(robot)

    def _complain(self, robot: UnitRobot) -> None:
        if not self.silent:
            robot.let_pass(robot.now() + self.patience_s)
            raise Sim2RealError("the robot does not answer")


@dataclass(kw_only=True)
class StoppedProcess(Trouble):
    """The runner's process is stopped for a while (SIGSTOP), or killed (SIGKILL)."""

    at: str
    """In which call it happens."""
    killed: bool
    seconds: float
    """For how long it is stopped [s]."""
    _over: bool = False

    @classmethod
    def drawn(cls, rng: np.random.Generator, begin_s: float, setting: Setting) -> StoppedProcess:
        """One of them."""
        at = chosen(rng, "observe", "read", "think", "send", "sent", "sleep")
        killed = bool(rng.random() < 0.5)
        variant = f"{'killed' if killed else 'stopped'} at {at}"
        seconds = float(rng.uniform(0.3, 5.0))
        return cls(begin_s=begin_s, at=at, killed=killed, seconds=seconds, variant=variant)

    def _reach(self, robot: UnitRobot, at: str) -> None:
        if self._over or at != self.at or not self.lasts(robot.now()):
            return
        self._over = True
        now = self.begin_s = robot.now()
        self.impaired.append((now, np.inf if self.killed else now + self.seconds))
        if self.killed:
            robot.die()
        robot.let_pass(now + self.seconds)

    def observe(self, robot: UnitRobot) -> Mapping[str, object]:
        """Readings, before or after a stall."""
        self._reach(robot, "observe")
        found = robot.read()
        self._reach(robot, "read")
        return found

    def send(self, robot: UnitRobot, values: dict[str, float]) -> Mapping[str, float]:
        """A command, before or after a stall."""
        self._reach(robot, "send")
        echo = robot.pass_on(values)
        self._reach(robot, "sent")
        return echo

    def sleep(self, robot: UnitRobot) -> None:
        """A stall while it waits."""
        self._reach(robot, "sleep")

    def think(self, robot: UnitRobot) -> None:
        """A stall while it computes."""
        self._reach(robot, "think")


@dataclass(kw_only=True)
class LateCalls(Trouble):
    """Calls of the driver that take a while."""

    calls: tuple[str, ...]
    share: float
    """Share of the calls that are late."""
    low_s: float
    high_s: float
    effect_first: bool
    """Whether the call has its effect before it dawdles."""
    rng: np.random.Generator
    times: float = np.inf
    """How many calls are late."""

    @classmethod
    def drawn(cls, rng: np.random.Generator, begin_s: float, setting: Setting) -> LateCalls:
        """One of them."""
        call = chosen(rng, "observe", "send", "both")
        often = chosen(rng, "once", "often", "always")
        low = float(np.exp(rng.uniform(np.log(0.03), np.log(0.3))))
        return cls(
            begin_s=begin_s, calls=("observe", "send") if call == "both" else (call,),
            share=0.3 if often == "often" else 1.0, low_s=low,
            high_s=float(rng.uniform(low, min(0.4, 2 * low))),
            effect_first=bool(rng.random() < 0.5), times=1 if often == "once" else np.inf,
            rng=rng, variant=f"{call}, {often}",
        )  # fmt: skip

    def _dawdle(self, robot: UnitRobot, call: str) -> None:
        now = robot.now()
        late = self.lasts(now) and call in self.calls and self.times > 0
        if late and self.rng.random() < self.share:
            self.times -= 1
            seconds = float(self.rng.uniform(self.low_s, self.high_s))
            self.impaired.append((now, now + seconds))
            robot.let_pass(now + seconds)

    def observe(self, robot: UnitRobot) -> Mapping[str, object]:
        """Readings that come late, or that are old when they are given."""
        if self.effect_first:
            found = robot.read()
            self._dawdle(robot, "observe")
            return found
        self._dawdle(robot, "observe")
        return robot.read()

    def send(self, robot: UnitRobot, values: dict[str, float]) -> Mapping[str, float]:
        """A command that leaves late, or whose call returns late."""
        if self.effect_first:
            echo = robot.pass_on(values)
            self._dawdle(robot, "send")
            return echo
        self._dawdle(robot, "send")
        return robot.pass_on(values)


@dataclass(kw_only=True)
class LyingEcho(Trouble):
    """The driver says that it sent something else than it did."""

    lie: str
    far: Reals
    _wanted: Reals | None = None
    _kept: dict[str, float] = field(default_factory=dict)

    @classmethod
    def drawn(cls, rng: np.random.Generator, begin_s: float, setting: Setting) -> LyingEcho:
        """One of them."""
        lie = chosen(rng, "the wish", "far away", "sticks", "a limit", "not a number", "nothing")
        low, high = limits_of(setting, "command_low"), limits_of(setting, "command_high")
        far = rng.uniform(-1.0, 1.0, len(low)) * (high - low)
        if lie == "a limit":
            far = np.where(rng.random(len(low)) < 0.5, low, high)
        end_s = lasting(rng, begin_s, 0.02, 0.5)
        return cls(begin_s=begin_s, end_s=end_s, lie=lie, far=far, variant=lie)

    def wish(self, wanted: Reals, now_s: float) -> Reals:
        """What the policy wants, which a liar may know."""
        self._wanted = np.array(wanted, dtype=float).ravel()
        return wanted

    def send(self, robot: UnitRobot, values: dict[str, float]) -> Mapping[str, float]:
        """The echo that is no echo."""
        lying = self.lasts(robot.now())
        if not lying or not self._kept:
            self._kept = dict(values)
        echo = dict(robot.pass_on(values))
        if not lying:
            return echo
        if self.lie == "sticks":
            return dict(self._kept)
        if self.lie == "nothing":
            return {}
        if self.lie == "not a number":
            return dict.fromkeys(values, float("nan"))
        far = self.far if self.lie == "a limit" else np.array(list(values.values())) + self.far
        if self.lie == "the wish" and self._wanted is not None:
            far = self._wanted
        return dict(zip(values, (float(value) for value in far), strict=True))


@dataclass(kw_only=True)
class BadReadings(Trouble):
    """Packets that are old, or not made of numbers."""

    wrong: str
    name: str
    """The sensor it happens to, where it happens to one."""
    _old: dict[str, object] = field(default_factory=dict)
    _old_s: float = 0.0

    @classmethod
    def drawn(cls, rng: np.random.Generator, begin_s: float, setting: Setting) -> BadReadings:
        """One of them."""
        wrong = chosen(
            rng, "old", "old without its age", "one nan", "all nan", "infinite", "missing",
            "of the wrong size", "huge", "torque nan",
        )  # fmt: skip
        joint = setting.names[int(rng.integers(len(setting.names)))]
        end_s = lasting(rng, begin_s, 0.02, 0.5)
        name = f"{joint}_{chosen(rng, 'pos', 'vel')}"
        return cls(
            begin_s=begin_s, end_s=end_s, wrong=wrong, name=name, variant=wrong,
            impaired=[(begin_s, end_s)],
        )  # fmt: skip

    def observe(self, robot: UnitRobot) -> Mapping[str, object]:
        """A packet that is not what it should be."""
        found = robot.read()
        now = robot.now()
        if not self.lasts(now) or not found:
            if found:
                self._old, self._old_s = dict(found), now
            return found
        if self.wrong.startswith("old"):
            old = dict(self._old or found)
            if self.wrong == "old":
                age = old.get("@age", 0.0)
                old["@age"] = float(age if isinstance(age, float) else 0.0) + now - self._old_s
            return old
        if self.wrong == "all nan":
            return dict.fromkeys(found, np.nan)
        if self.wrong == "missing":
            return {name: value for name, value in found.items() if name != self.name}
        if self.wrong == "torque nan":
            return {**found, "@torque": [np.nan]}
        worse = {"one nan": np.nan, "infinite": np.inf, "huge": 1e6}
        return {**found, self.name: worse.get(self.wrong, [0.0, 0.0, 0.0])}
