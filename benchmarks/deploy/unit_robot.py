"""A unit of stand-in hardware in this process and in virtual time; its wire may be in trouble.

It speaks like the unit behind its socket, and keeps the true trace, which the runner never sees.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

import numpy as np

from benchmarks.deploy.trouble import Trouble
from benchmarks.deploy.true_trace import Departure, TrueTrace
from sim2real.errors import Sim2RealError
from sim2real.reality.breakage import Firmware
from sim2real.reality.device import Device
from sim2real.robot import RobotAbilities

_START_UP_S = 0.55


class Killed(BaseException):
    """The runner's process is gone; nothing that it does afterwards reaches anything."""


class UnitRobot:
    """A `Robot` and the clock that paces it."""

    name = "unit"

    def __init__(
        self, task: str, number: int, *, seed: int, old: bool = False, firmware: Firmware
    ) -> None:
        """The unit of that number with its drives on, at the beginning of trial `seed`."""
        self.device = Device(task, number, old=old, firmware=firmware)
        self.serial = f"unit-{number}"
        self.safe_stop = "damp" if self.device.torque_driven else "hold"
        self.abilities = _abilities(self.device, firmware)
        self.is_connected = True
        self.stopped_itself = ""
        self.dead = False
        """Whether the runner's process is gone."""
        self.trouble = Trouble(begin_s=np.inf)
        self.goals = self.device.reset(seed)
        self.device.enable()
        self.device.advance(self.device.now_s + _START_UP_S)
        self.trace = TrueTrace(self.device)

    def begin(self, trouble: Trouble) -> None:
        """Let a trouble come."""
        self.trouble = trouble
        self.trace.keep_from_s = trouble.begin_s - 0.01
        if trouble.body is not None:
            self.device.breaks(trouble.body)

    # What the runner calls.

    def connect(self) -> None:
        """It is connected."""

    def disconnect(self) -> None:
        """Stop, as a robot does that is let go of."""
        self.stop()

    def get_observation(self) -> Mapping[str, object]:
        """The newest readings, as far as the trouble lets them come."""
        self._alive()
        return self.trouble.observe(self)

    def send_action(self, action: Mapping[str, float]) -> Mapping[str, float]:
        """Send commands, as far as the trouble lets them go."""
        self._alive()
        return self.trouble.send(self, {name: float(action[name]) for name in self.device.names})

    def stop(self) -> None:
        """Ask for the safe stop, if that comes through."""
        self._alive()
        self.trouble.stop(self)

    def relax(self) -> None:
        """Ask the drives to relax, if that comes through."""
        self._alive()
        self.trouble.relax(self)

    def now(self) -> float:
        """The unit's clock."""
        return self.device.now_s

    def sleep_until(self, moment_s: float) -> None:
        """Wait until a moment of that clock."""
        self._alive()
        self.trouble.sleep(self)
        self.let_pass(moment_s)

    # What troubles call: the same without any trouble.

    def read(self) -> dict[str, object]:
        """A packet of readings; empty where it is lost."""
        found = self.device.read()
        self._hear()
        return found or {}

    def pass_on(self, values: Mapping[str, float]) -> dict[str, float]:
        """Put a command onto the bus; its echo."""
        given = np.array([values[name] for name in self.device.names])
        leaves_s = self.now()
        if not np.isfinite(given).all() or np.abs(given).max() > 1e3:
            self._departed(leaves_s, given, None)
            raise Sim2RealError("a command is of finite numbers")
        self._departed(leaves_s, given, self.device.send(given))
        self._hear()
        return dict(values)

    def vanish(self, values: Mapping[str, float]) -> None:
        """A command leaves the runner and comes nowhere."""
        given = np.array([values[name] for name in self.device.names])
        self._departed(self.now(), given, None)

    def halt(self) -> None:
        """The safe stop."""
        self.device.stop()
        self._hear()

    def let_go(self) -> None:
        """Take the torque off the drives."""
        self.device.relax("asked to relax")
        self._hear()

    def let_pass(self, moment_s: float) -> None:
        """Let time pass, with whatever others do meanwhile."""
        while True:
            event_s = self.trouble.next_event_s(self.now())
            self.device.advance(min(event_s, moment_s))
            if event_s > moment_s:
                return
            self.trouble.happen(self, event_s)

    def die(self) -> None:
        """The runner's process is killed here."""
        self.dead = True
        raise Killed

    def _alive(self) -> None:
        if self.dead:
            raise Killed

    def _hear(self) -> None:
        device = self.device
        told = device.state in ("tripped", "off")
        self.stopped_itself = (device.why or device.state) if told else ""

    def _departed(self, leaves_s: float, given: np.ndarray, arrives_s: float | None) -> None:
        values = tuple(float(value) for value in given)
        obeys = self.device.state == "ready"
        self.trace.departures.append(
            Departure(leaves_s=leaves_s, values=values, arrives_s=arrives_s if obeys else None)
        )


def _abilities(device: Device, firmware: Firmware) -> RobotAbilities:
    """What the unit declares, as far as this version of the package knows such abilities."""
    declared: dict[str, object] = {
        "actuators": tuple(device.names),
        "reports_why_stopped": True,
        "measures_torque": True,
        "reports_commands": True,
        "virtual_time": True,
        "simulated": True,
        "holds_position": not device.torque_driven,
        "relaxes": not device.torque_driven,
        "watchdog_s": firmware.watchdog_s if np.isfinite(firmware.watchdog_s) else 0.0,
    }
    known = {field.name for field in fields(RobotAbilities)}
    return RobotAbilities(**{k: v for k, v in declared.items() if k in known})  # type: ignore[arg-type]
