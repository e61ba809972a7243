"""The electronics of a unit: a bus with delays and losses, firmware with a watchdog of its own.

Everything follows the device's clock, `now_s`. Commands arrive late or never, and readings are not
fresh. Anything wrong with the link or the commands ends in the device's own safe stop.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from sim2real.arrays import Floats
from sim2real.reality.breakage import Breakage, Firmware
from sim2real.reality.plant import BodyState
from sim2real.reality.scene import Scene

WATCHDOG_S = 0.25
"""Time without a command after which the device stops by itself [s]."""
START_UP_S = 0.5
"""Time from enabling until it is ready [s]."""
FAULTS = ("encoder freeze", "dropped link", "brown-out", "stuck reading", "slow bus")
_TICK_S = 0.002
_BLIND_S = 0.024
"""Time for which the motors may turn, by their back-EMF, while the encoders stand still [s]."""
_TURNING = 0.3
_BREAKS_DOWN_V = 5.0
"""Voltage below which the supply has broken down [V]; a healthy one never falls below 6."""
_KEEP_S = 0.5


@dataclass(frozen=True, kw_only=True)
class DeviceState:
    """A moment of a device, to go on from."""

    body: BodyState
    numbers: Mapping[str, object]
    """Its other state, by attribute."""
    noise: Mapping[str, object]
    """State of its random numbers."""


_ATTRIBUTES = ("state", "why", "_ready_s", "_fed_s", "moved_blind_s", "_stuck", "_last_camera")


class Device:
    """One unit with its firmware."""

    def __init__(
        self,
        task: str,
        number: int,
        *,
        old: bool = False,
        firmware: Firmware = Firmware(watchdog_s=WATCHDOG_S),  # noqa: B008
    ) -> None:
        """`old` is the unit after years of work."""
        self._scene = Scene(task, number, old=old)
        self._firmware = firmware
        self.watcher: Callable[[], None] = lambda: None
        """Called every 2 ms of the device's time, by who wants to see what is true."""
        plant = self._scene.plant
        self._rng = np.random.default_rng([number, 7])
        self.names = plant.names
        self.state = "off"
        """'off', 'starting', 'ready', or 'tripped'."""
        self.why = ""
        self._ready_s = 0.0
        self._fed_s = 0.0
        self._pending: deque[tuple[float, Floats]] = deque()
        self._past: deque[tuple[float, Floats, dict[str, Floats]]] = deque()
        self._fault, self._fault_s = "", 0.0
        self.moved_blind_s = 0.0
        """How long it has truly moved with dead encoders in this trial [s]."""
        self._stuck: tuple[float, Floats, dict[str, Floats]] | None = None
        self._last_camera: tuple[float, Floats] | None = None
        self._note()

    @property
    def now_s(self) -> float:
        """The device's clock."""
        return self._scene.plant.time_s

    @property
    def goals(self) -> dict[str, list[float]]:
        """Goals of the trial that is set up; none before the first."""
        return self._scene.goals

    @property
    def torque_driven(self) -> bool:
        """Whether commands are torques; otherwise they are position targets."""
        return not self._scene.bench.drive.kp_v_rad

    @property
    def true_angles(self) -> Floats:
        """True joint angles [rad]."""
        return self._scene.plant.angles

    @property
    def true_speeds(self) -> Floats:
        """True joint speeds [rad/s]."""
        return self._scene.plant.speeds

    @property
    def true_tool(self) -> Floats | None:
        """True position of the tool [m]; None where there is none."""
        return self._scene.tool()

    @property
    def command(self) -> Floats:
        """What the drives follow now."""
        return self._scene.plant.command.copy()

    @property
    def drive_torque(self) -> Floats:
        """True torque of each drive [N m]."""
        return self._scene.plant.torque.copy()

    def saved(self) -> DeviceState:
        """This moment, to go on from it later; without the past that delayed readings show."""
        numbers: dict[str, object] = {name: getattr(self, name) for name in _ATTRIBUTES}
        numbers["_pending"] = deque(self._pending)
        noise = self._rng.bit_generator.state
        return DeviceState(body=self._scene.plant.saved(), numbers=numbers, noise=noise)

    def load(self, state: DeviceState) -> None:
        """Go back to a moment; from there on its body does what it did."""
        self._scene.plant.load(state.body)
        for name, value in state.numbers.items():
            setattr(self, name, deque(value) if isinstance(value, deque) else value)
        self._rng.bit_generator.state = dict(state.noise)

    def relax(self, why: str = "relaxed") -> None:
        """Take the torque off the drives, as when their power is cut."""
        if self.state != "tripped":
            self.state, self.why = "tripped", why
        self._pending.clear()
        self._scene.plant.relaxed = True

    def breaks(self, breakage: Breakage) -> None:
        """Let something break in its body."""
        self._scene.plant.broken = breakage

    def enable(self) -> None:
        """Power the drives; a tripped device has to be enabled again by its operator."""
        self.state, self.why = "starting", ""
        self._scene.plant.relaxed = False
        self._ready_s = self.now_s + START_UP_S
        self._pending.clear()
        self._scene.plant.damped = True

    def stop(self, why: str = "asked to") -> None:
        """The safe stop: hold the position, or brake a torque-driven device."""
        plant = self._scene.plant
        if self.state in ("ready", "starting"):
            self.state, self.why = "tripped", why
        self._pending.clear()
        if self.torque_driven:
            plant.damped = True
        else:
            plant.command = plant.encoders()

    def reset(self, seed: int) -> dict[str, list[float]]:
        """A person sets up the next trial with the drives off; returns its goals."""
        self.state, self._fault, self._stuck = "off", "", None
        plant = self._scene.plant
        plant.stuck, plant.broken, plant.relaxed, self.moved_blind_s = None, None, False, 0.0
        self._pending.clear()
        self._scene.plant.damped, self._scene.plant.held = True, not self.torque_driven
        self._scene.reset(seed)
        self._past.clear()
        self._last_camera = None
        self._note()
        return self.goals

    def fault(self, kind: str, after_s: float) -> None:
        """Let something break, `after_s` from now."""
        self._fault, self._fault_s = kind, self.now_s + after_s

    def send(self, command: Floats) -> float | None:
        """A command leaves the computer; when it arrives [s], None where it is lost."""
        hidden = self._scene.plant.hidden
        if self._faulty("dropped link") or self._rng.random() < hidden.lost:
            return None
        late = hidden.command_delay_s + hidden.command_jitter_s * self._rng.uniform(-1, 1)
        if self._faulty("slow bus"):
            late += 0.3
        arrives_s = self.now_s + max(late, 0.0)
        self._pending.append((arrives_s, command))
        return arrives_s

    def read(self) -> dict[str, object] | None:
        """Readings and their age [s]; None where the packet is lost."""
        hidden = self._scene.plant.hidden
        if self._faulty("dropped link") or self._rng.random() < hidden.lost:
            return None
        late = hidden.sensor_delay_s + hidden.sensor_jitter_s * self._rng.uniform(-1, 1)
        if self._faulty("slow bus"):
            late += 0.3
        time_s, angles, extras = self._at(self.now_s - max(late, 0.0))
        if self._faulty("stuck reading"):
            # The same packet again and again, with the time it was made.
            self._stuck = self._stuck or self._at(min(time_s, self._fault_s))
            time_s, angles, extras = self._stuck
        earlier_s, before, _ = self._at(time_s - hidden.velocity_window_s)
        speeds = (angles - before) / max(time_s - earlier_s, 1e-6)
        plant = self._scene.plant
        found: dict[str, object] = {
            "@age": self.now_s - time_s,
            "@torque": plant.currents().tolist(),
            "@command": plant.command.tolist(),
        }
        for k, name in enumerate(self.names):
            found[f"{name}_pos"] = float(angles[k])
            found[f"{name}_vel"] = float(speeds[k])
        for name, value in extras.items():
            found[name] = self._camera(name, value)
        return found

    def advance(self, until_s: float) -> None:
        """Advance the device's clock."""
        plant = self._scene.plant
        while plant.time_s + 0.5 * plant.model.opt.timestep < until_s:
            if self._faulty("encoder freeze") and plant.stuck is None:
                plant.stuck = plant.encoders()
            self._take_commands()
            self._look_after_itself()
            begin = plant.time_s
            plant.advance(min(until_s, plant.time_s + _TICK_S))
            if self.state == "ready" and plant.blind_speed() > _TURNING:
                self.moved_blind_s += plant.time_s - begin
            self._note()
            self._scene.watch()
            self.watcher()

    def succeeded(self) -> bool:
        """Whether the task is done, from the true state."""
        return self._scene.succeeded()

    def is_safe(self) -> bool:
        """Whether the device is in its safe stop or off."""
        return self.state in ("tripped", "off")

    def speed(self) -> float:
        """Fastest true joint speed [rad/s]: whether it really rests."""
        return float(np.abs(self._scene.plant.speeds).max())

    def _take_commands(self) -> None:
        plant = self._scene.plant
        if self.state == "starting" and self.now_s >= self._ready_s:
            self.state, self._fed_s = "ready", self.now_s
            plant.command = np.zeros(len(self.names)) if self.torque_driven else plant.encoders()
            plant.damped = plant.held = False
        while self._pending and self._pending[0][0] <= self.now_s:
            _, command = self._pending.popleft()
            if self.state == "ready":
                plant.command, self._fed_s = command, self.now_s

    def _look_after_itself(self) -> None:
        if self.state != "ready":
            return
        plant, firmware = self._scene.plant, self._firmware
        if self.now_s - self._fed_s > firmware.watchdog_s:
            self.stop("watchdog: no command")
        elif float(np.abs(plant.speeds).max()) > firmware.overspeed_rad_s:
            self.stop("overspeed")
        elif firmware.checks_encoders and self.moved_blind_s > _BLIND_S:
            self.stop("encoder error")
        elif self._faulty("brown-out") or (firmware.checks_supply and plant.volts < _BREAKS_DOWN_V):
            self.stop("brown-out: the supply broke down")

    def _note(self) -> None:
        plant = self._scene.plant
        angles = plant.encoders()
        if plant.broken is not None:
            angles = plant.broken.on_bus(angles, plant.time_s)
        self._past.append((plant.time_s, angles, dict(self._scene.extras())))
        while self._past and self._past[0][0] < plant.time_s - _KEEP_S:
            self._past.popleft()

    def _at(self, time_s: float) -> tuple[float, Floats, dict[str, Floats]]:
        past = self._past
        return next((entry for entry in reversed(past) if entry[0] <= time_s + 1e-9), past[0])

    def _camera(self, name: str, value: Floats) -> list[float]:
        """The tracker: thirty poses per second, delayed, biased and noisy."""
        hidden = self._scene.plant.hidden
        if self._last_camera is None or self.now_s - self._last_camera[0] >= 1 / 30:
            seen = self._at(self.now_s - hidden.tracker_delay_s)[2].get(name, value).copy()
            seen[:2] += hidden.tracker_bias_m
            seen += self._rng.normal(0.0, hidden.tracker_noise_m, 3)
            self._last_camera = (self.now_s, seen)
        return [float(part) for part in self._last_camera[1]]

    def _faulty(self, kind: str) -> bool:
        return self._fault == kind and self.now_s >= self._fault_s
