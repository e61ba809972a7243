"""A robot that lies, dawdles and loses packets, for trying what reaches its joints all the same."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from sim2real.arrays import Floats
from sim2real.contract import CommandSpec, Contract, JointLimits, Limits, SensorSpec
from sim2real.errors import Sim2RealError
from sim2real.robot import RobotAbilities

_PEACE = 3
"""Readings and commands before it begins to misbehave: it starts as any robot does."""
_CALL_S = 1e-4
"""A call takes at least so long on hardware; here it may take none [s]."""
_ROUNDING = 1e-6
"""Difference between commands that is none [rad]."""


class Misbehaviour(StrEnum):
    """What a hostile robot may do."""

    ECHO = "lying echo"
    LATE = "late calls"
    STALE = "stale readings"
    NAN = "readings that are no numbers"
    FROZEN = "frozen encoders"
    JUMPING = "jumping encoders"
    LOST = "lost packets"
    ERRORS = "errors"


@dataclass(frozen=True, kw_only=True)
class HostileCommand:
    """A command that the robot was given."""

    time_s: float
    """When it reached the joints, or was lost, on the robot's clock [s]."""
    values: tuple[float, ...]
    arrived: bool
    """Whether it reached the joints."""


def hostile_contract(joints: int = 2, *, rate_hz: float = 25.0) -> Contract:
    """Contract of a hostile robot: position servos, with a position and a velocity each."""
    names = [f"joint_{k}" for k in range(joints)]
    sensors = [
        SensorSpec(name=f"{name}_{short}", unit=unit, width=1, kind=kind, of=name)
        for short, unit, kind in (("pos", "rad", "jointpos"), ("vel", "rad/s", "jointvel"))
        for name in names
    ]
    commands = [
        CommandSpec(
            name=name, joint=name, unit="rad", low=-2.0, high=2.0, default=0.0, stiffness=10.0
        )
        for name in names
    ]
    return Contract(
        task="", robot="hostile", twin_version="1", rate_hz=rate_hz, history=1,
        sensors=tuple(sensors), commands=tuple(commands),
    )  # fmt: skip


def hostile_limits(contract: Contract, *, command_rate: float = 4.5) -> Limits:
    """Limits of a hostile robot, wide where a stop would end the hostilities too early."""
    joints = [
        JointLimits(
            name=command.joint, position_low=-9.0, position_high=9.0, velocity=1e3,
            acceleration=1e5, torque=1e3, command_low=command.low, command_high=command.high,
            command_rate=command_rate,
        )
        for command in contract.commands
    ]  # fmt: skip
    return Limits(joints=tuple(joints), observation_low=(), observation_high=())


class HostileRobot:
    """Joints that are at once where a command says, behind a driver that misbehaves at random.

    What it does follows from `seed` alone. `commands` is what truly reached the joints, on a clock
    of its own, which only its calls and `sleep_until` advance. It is its own `ControlClock`.
    """

    name = "hostile"
    safe_stop = "hold"

    def __init__(
        self,
        contract: Contract,
        *,
        seed: int,
        does: Sequence[Misbehaviour] = tuple(Misbehaviour),
        share: float | None = None,
    ) -> None:
        """Misbehave in one to three of the ways in `does`, in that share of the calls.

        Without `share`, it does each of them seldom, often, or always.
        """
        rng = self._rng = np.random.default_rng([seed, 31])
        many = int(rng.integers(1, min(3, len(does)) + 1)) if does else 0
        picked = rng.permutation(len(does))[:many]
        self.does = tuple(does[int(k)] for k in picked)
        """In which ways it misbehaves."""
        self._often = {
            way: float(rng.choice([0.05, 0.3, 1.0])) if share is None else share
            for way in self.does
        }
        self._names = [command.name for command in contract.commands]
        self._joints = [command.joint for command in contract.commands]
        self._sensors = contract.sensors
        self._low = np.array([command.low for command in contract.commands])
        self._high = np.array([command.high for command in contract.commands])
        self.serial = f"hostile-{seed}"
        self.abilities = RobotAbilities(
            actuators=tuple(self._names), virtual_time=True, simulated=True
        )
        self.is_connected = True
        self.commands: list[HostileCommand] = []
        """Every command that it was given, in order."""
        self._time_s = 0.0
        self._at = rng.uniform(0.5 * self._low, 0.5 * self._high)
        self._moved_at_s, self._speed = 0.0, np.zeros_like(self._at)
        self._calls = {"read": 0, "send": 0}
        self._old: dict[str, object] = {}
        self._start = tuple(self._at.tolist())

    def connect(self) -> None:
        """It is connected."""

    def disconnect(self) -> None:
        """It does nothing."""

    def stop(self) -> None:
        """Hold the position, as it does without commands."""
        if self._does(Misbehaviour.ERRORS):
            raise Sim2RealError("the robot does not stop")

    def now(self) -> float:
        """Its clock [s]."""
        return self._time_s

    def sleep_until(self, moment_s: float) -> None:
        """Let its clock go on to a moment."""
        self._time_s = max(self._time_s, moment_s)

    def get_observation(self) -> Mapping[str, object]:
        """Readings that may be anything."""
        self._calls["read"] += 1
        self._dawdle()
        if self._does(Misbehaviour.ERRORS):
            raise OSError("bus error")
        if self._does(Misbehaviour.LOST):
            return {}
        found = self._readings()
        if self._does(Misbehaviour.STALE) and self._old:
            age_s = self._time_s - float(str(self._old["time"])) if self._flip() else 0.0
            return {**self._old, "@age": age_s}
        frozen = self._does(Misbehaviour.FROZEN) and self._old
        self._old = {**(self._old if frozen else found), "time": self._time_s}
        return {**self._old, "@age": 0.0}

    def send_action(self, action: Mapping[str, float]) -> Mapping[str, float]:
        """Follow a command at once, late, or never; the echo may be anything."""
        self._calls["send"] += 1
        values = np.array([float(action[name]) for name in self._names])
        late_first = self._flip()
        if late_first:
            self._dawdle()
        fails = self._does(Misbehaviour.ERRORS)
        arrives = not self._does(Misbehaviour.LOST) and not (fails and self._flip())
        self.commands.append(
            HostileCommand(time_s=self._time_s, values=tuple(values.tolist()), arrived=arrives)
        )
        if arrives:
            elapsed_s = max(self._time_s - self._moved_at_s, 1e-3)
            self._speed = (values - self._at) / elapsed_s
            self._at, self._moved_at_s = values, self._time_s
        if not late_first:
            self._dawdle()
        if fails:
            raise OSError("bus error")
        return self._echo(action)

    def largest_step_ratio(self, limits: Limits, rate_hz: float) -> float:
        """Largest change that reached a joint between two commands, over the largest allowed.

        Allowed is the command rate times the time between the two, and of that at most a period;
        commands that were lost between them leave what they were allowed to the next. A command
        that is not finite counts as inf.
        """
        rate = limits.of("command_rate")
        at, before_s = np.array(self._start), -math.inf
        allowed, largest, least = np.zeros(len(rate)), 0.0, rate * _CALL_S
        for command in self.commands:
            allowed = allowed + rate * min(command.time_s - before_s, 1.0 / rate_hz)
            before_s = command.time_s
            values = np.array(command.values)
            if not np.isfinite(values).all():
                return math.inf
            if command.arrived:
                step = np.maximum(np.abs(values - at) - _ROUNDING, 0.0)
                largest = max(largest, float((step / np.maximum(allowed, least)).max()))
                at, allowed = values, np.zeros(len(rate))
        return largest

    def _does(self, way: Misbehaviour) -> bool:
        """Whether it misbehaves in a way now; always drawn, so that calls stay comparable."""
        drawn = float(self._rng.random())
        return max(self._calls.values()) > _PEACE and drawn < self._often.get(way, 0.0)

    def _flip(self) -> bool:
        return bool(self._rng.random() < 0.5)

    def _dawdle(self) -> None:
        seconds = float(np.exp(self._rng.uniform(np.log(1e-3), np.log(0.4))))
        if self._does(Misbehaviour.LATE):
            self._time_s += seconds

    def _readings(self) -> dict[str, object]:
        at, speed = self._at.copy(), self._speed.copy()
        if self._time_s - self._moved_at_s > 0.2:
            speed = np.zeros_like(speed)
        joint = int(self._rng.integers(len(at)))
        jump = float(self._rng.uniform(-3.0, 3.0))
        if self._does(Misbehaviour.JUMPING):
            at[joint] += jump
        numbers = {"jointpos": at, "jointvel": speed}
        found: dict[str, object] = {
            sensor.name: float(numbers[sensor.kind][self._joints.index(sensor.of)])
            for sensor in self._sensors
        }
        if self._does(Misbehaviour.NAN):
            name = self._sensors[int(self._rng.integers(len(self._sensors)))].name
            found[name] = [math.nan, math.inf, "?", [0.0, 1.0]][int(self._rng.integers(4))]
        return found

    def _echo(self, action: Mapping[str, float]) -> Mapping[str, float]:
        far = self._rng.uniform(2 * self._low, 2 * self._high)
        kind = int(self._rng.integers(5))
        if not self._does(Misbehaviour.ECHO):
            return dict(action)
        if kind == 0:  # what would be wished for, or anything else
            values = far
        elif kind == 1:
            values = np.where(far > 0, self._high, self._low)
        elif kind == 2:
            values = np.array(self._start)
        elif kind == 3:
            values = np.full(len(far), math.nan)
        else:
            return {}
        return _named(self._names, values)


def _named(names: Sequence[str], values: Floats) -> dict[str, float]:
    return {name: float(value) for name, value in zip(names, values, strict=True)}
