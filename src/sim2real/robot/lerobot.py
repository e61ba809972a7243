"""A LeRobot robot as a `Robot`: names and units translated, velocities added, a safe stop.

LeRobot is not a dependency. It is looked for in the environment only when a robot is built from a
file.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol

from sim2real.errors import Sim2RealError, nearest
from sim2real.robot.abilities import RobotAbilities
from sim2real.robot.connect import WallClock
from sim2real.robot.driver_errors import driver_says, said_by
from sim2real.robot.driver_names import DriverNames
from sim2real.robot.motor_temperatures import MotorTemperatures
from sim2real.robot.protocol import ControlClock

STOPS = ("hold", "limp")
"""Safe stops: 'hold' sends the present position and stays stiff, 'limp' switches motors off."""
VELOCITY_SPAN_S = 0.015
"""Shortest time that a velocity is taken over [s]."""
_MAX_SPAN_S = 1.0
"""Longest time that a velocity is taken over; after a longer silence it is zero [s]."""
_TRIES = 3
"""How often a reading or a stop is tried on a bus that loses packets."""


class LeRobotDriver(Protocol):
    """What `LeRobotRobot` uses of a LeRobot robot; `name`, `id` and `bus` if it has them."""

    @property
    def observation_features(self) -> Mapping[str, object]:
        """What it can be read for, by key."""

    @property
    def action_features(self) -> Mapping[str, object]:
        """What it takes, by key."""

    @property
    def is_connected(self) -> bool:
        """Whether it is connected."""

    @property
    def is_calibrated(self) -> bool:
        """Whether it knows its joints' zeros."""

    def connect(self, *, calibrate: bool) -> None:
        """Connect to the motors."""

    def get_observation(self) -> Mapping[str, float]:
        """Readings, by key."""

    def send_action(self, action: dict[str, float]) -> object:
        """Send commands, by key; what was sent, from most robots."""

    def disconnect(self) -> None:
        """Disconnect from the motors."""


class LeRobotRobot:
    """A LeRobot robot, driven in SI units under the names of a contract.

    A velocity is the difference of two readings over the time between them: of the newest one and
    the newest that is at least `VELOCITY_SPAN_S` older, which at 66 Hz and slower is the one
    before. It is the mean over that span, so it is half a span older than the position; nothing
    else is filtered.
    """

    def __init__(
        self,
        robot: LeRobotDriver,
        *,
        names: DriverNames,
        stop: str = "hold",
        temperature: bool = False,
        clock: ControlClock | None = None,
    ) -> None:
        """Names of what the robot does not have are a `Sim2RealError`."""
        if stop not in STOPS:
            raise Sim2RealError(f"unknown safe stop {stop!r}{nearest(stop, STOPS)}")
        self.name = str(getattr(robot, "name", "") or type(robot).__name__)
        self.serial = str(getattr(robot, "id", "") or "")
        self.safe_stop = stop
        self._robot, self._names = robot, names
        self._bus: Any = getattr(robot, "bus", None)  # its class depends on the motors
        self._clock: ControlClock = clock or WallClock()
        self._past: deque[tuple[float, dict[str, float]]] = deque()
        self._speed = dict.fromkeys(names.velocities, 0.0)
        self._resting: dict[str, float] = {}
        self._present: dict[str, float] = {}
        self.stopped_itself = ""
        """Why it does not obey; '' while it does."""
        self.abilities = lerobot_abilities(names, stop=stop, temperature=temperature)
        keys = [quantity.key for quantity in names.commands.values()]
        self._temperatures = MotorTemperatures(self._bus, keys, self.name) if temperature else None
        self._driven = self._held = False
        readable, self._takes = dict(robot.observation_features), dict(robot.action_features)
        for what, given, has in (
            ("sensor", names.sensors, readable),
            ("command", names.commands, self._takes),
        ):
            for name, quantity in given.items():
                if quantity.key not in has:
                    raise Sim2RealError(
                        f"{what} {name!r}: {self.name} has no {quantity.key!r}"
                        f"{nearest(quantity.key, has)}"
                    )
        named = {quantity.key for quantity in names.commands.values()}
        for key in self._takes:
            if key not in named and key not in readable:
                raise Sim2RealError(f"{self.name} also takes {key!r}: add a command for it")
        if stop == "limp" and not hasattr(self._bus, "disable_torque"):
            raise Sim2RealError(f"{self.name} cannot switch its motors off: use stop = 'hold'")

    @property
    def is_connected(self) -> bool:
        """Whether the robot is connected."""
        with suppress(Exception):
            return bool(self._robot.is_connected)
        return False

    def connect(self) -> None:
        """Connect; a robot that is not calibrated, or does not answer, is a `Sim2RealError`.

        LeRobot calibrates in a dialogue at the terminal, which is left to its own tools.
        """
        with driver_says(f"cannot connect to {self.name}"):
            if not self._robot.is_connected:
                self._robot.connect(calibrate=False)
            calibrated = bool(self._robot.is_calibrated)
        if not calibrated:
            self.disconnect()
            raise Sim2RealError(
                f"{self.name} {self.serial} is not calibrated: run lerobot-calibrate for it first"
            )
        self._past.clear()
        self.stopped_itself, self._held = "", False
        self._rest()

    def enable(self) -> None:
        """Let a robot that was stopped move again, from where it is."""
        if self.stopped_itself and self.safe_stop == "limp":
            self._rest()
            with driver_says(f"{self.name} cannot switch its motors on"):
                self._send(self._present)
                self._bus.enable_torque()
        self.stopped_itself, self._held = "", False
        self._rest()

    def get_observation(self) -> Mapping[str, object]:
        """The readings of this moment; empty where a packet was lost on the bus."""
        seen = self._read()
        if not seen:
            return {}
        now = self._clock.now()
        self._keep(seen)
        found = {
            name: quantity.to_si(float(seen[quantity.key]))
            for name, quantity in self._names.sensors.items()
            if quantity.key in seen
        }
        self._differ(now, found)
        readings: dict[str, object] = {**found, **self._speed, "@age": 0.0}
        if self._temperatures is not None and (warm := self._temperatures.at(now)):
            readings["@temperature"] = warm
        return readings

    def send_action(self, action: Mapping[str, float]) -> Mapping[str, float]:
        """Send commands by name; what was really sent. A joint that is not named stays at rest."""
        if self.stopped_itself:
            raise Sim2RealError(f"{self.name} is stopped: {self.stopped_itself}")
        for name in action:
            if name not in self._names.commands:
                raise Sim2RealError(
                    f"{self.name} has no command {name!r}{nearest(name, self._names.commands)}"
                )
        given = {
            self._names.commands[name].key: self._names.commands[name].from_si(float(value))
            for name, value in action.items()
        }
        with driver_says(f"{self.name} did not take a command"):
            taken = self._send({**self._resting, **given})
        quantities = {name: self._names.commands[name] for name in action}
        return {
            name: quantity.to_si(float(taken.get(quantity.key, given[quantity.key])))
            for name, quantity in quantities.items()
        }

    def stop(self) -> None:
        """Hold the present position, or switch the motors off; then nothing moves it any more.

        Asked again, it holds the same position: to hold where it is would let it sink each time.
        """
        again = self._held
        self.stopped_itself = self.stopped_itself or "asked to"
        for attempt in range(_TRIES):
            try:
                if self.safe_stop == "limp":
                    self._bus.disable_torque()
                    return
                # If it cannot be read any more, it holds its last known position.
                if not again:
                    with suppress(Exception):
                        self._keep(self._robot.get_observation())
                self._send(dict(self._present))
                self._held = True
                return
            except Exception as error:
                if attempt == _TRIES - 1:
                    raise Sim2RealError(f"{self.name} does not stop: {said_by(error)}") from None

    def disconnect(self) -> None:
        """Disconnect, in the safe stop; a robot that was never commanded is sent nothing.

        Whether its motors stay stiff is a setting of LeRobot's, often
        `disable_torque_on_disconnect`.
        """
        if self.is_connected:
            if self._driven:
                with suppress(Sim2RealError):
                    self.stop()
            with driver_says(f"cannot disconnect from {self.name}"):
                self._robot.disconnect()

    def _rest(self) -> None:
        """Note where it is: the command of every joint that is never sent one."""
        for _ in range(_TRIES):
            seen = self._read()
            if seen:
                self._keep(seen)
                self._resting = dict(self._present)
                return
        raise Sim2RealError(f"{self.name} gives no readings")

    def _read(self) -> Mapping[str, float]:
        """The driver's readings; empty where a packet was lost on the bus."""
        with driver_says(f"{self.name} cannot be read"):
            try:
                return self._robot.get_observation()
            except ConnectionError as error:
                # A serial bus loses a packet now and then; a lost connection is another matter.
                if self.is_connected:
                    return {}
                raise Sim2RealError(
                    f"the connection to {self.name} is lost: {said_by(error)}"
                ) from None

    def _keep(self, seen: Mapping[str, float]) -> None:
        """Note where it is, in the driver's own numbers."""
        self._present.update({key: float(seen[key]) for key in self._takes if key in seen})

    def _send(self, values: dict[str, float]) -> Mapping[str, float]:
        self._driven = True
        taken = self._robot.send_action(values)
        return taken if isinstance(taken, Mapping) else values

    def _differ(self, now: float, found: Mapping[str, float]) -> None:
        """Bring the velocities up to date with readings of this moment."""
        past = self._past
        while len(past) > 1 and now - past[1][0] >= VELOCITY_SPAN_S:
            past.popleft()
        if past and now - past[0][0] >= VELOCITY_SPAN_S:
            before, values = past[0]
            for name, position in self._names.velocities.items():
                # After a long silence the mean speed says nothing about this moment.
                span = now - before
                known = position in found and position in values and span < _MAX_SPAN_S
                self._speed[name] = (found[position] - values[position]) / span if known else 0.0
        past.append((now, {key: float(value) for key, value in found.items()}))


def lerobot_abilities(names: DriverNames, *, stop: str, temperature: bool) -> RobotAbilities:
    """What a LeRobot robot can do."""
    return RobotAbilities(
        actuators=tuple(names.commands),
        enables=True,
        reports_why_stopped=True,
        holds_position=stop == "hold",
        measures_temperature=temperature,
    )
