"""What truly happened to a unit, which the runner that drives it never sees."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from sim2real.arrays import Floats
from sim2real.reality.device import Device, DeviceState


@dataclass(frozen=True, kw_only=True)
class Departure:
    """A command as it left the runner's process."""

    leaves_s: float
    """On the unit's clock [s]."""
    values: tuple[float, ...]
    arrives_s: float | None
    """When it comes to the drives [s]; None where it is lost."""


@dataclass(frozen=True, kw_only=True)
class Motion:
    """A stretch of true motion, (times,) and (times, joints)."""

    times: Floats
    angles: Floats
    speeds: Floats
    tools: Floats
    """(times, 3) position of the tool [m]; (times, 0) without one."""
    torques: Floats
    """Torque of the drives [N m]."""

    def since(self, moment_s: float) -> Motion:
        """The part from a moment on."""
        k = int(np.searchsorted(self.times, moment_s - 1e-9))
        return Motion(
            times=self.times[k:],
            angles=self.angles[k:],
            speeds=self.speeds[k:],
            tools=self.tools[k:],
            torques=self.torques[k:],
        )

    def until(self, moment_s: float) -> Motion:
        """The part up to a moment."""
        k = int(np.searchsorted(self.times, moment_s + 1e-9))
        return Motion(
            times=self.times[:k],
            angles=self.angles[:k],
            speeds=self.speeds[:k],
            tools=self.tools[:k],
            torques=self.torques[:k],
        )


class TrueTrace:
    """The true motion of a device every 2 ms, its states, and moments to go back to."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._times: list[float] = []
        self._angles: list[Floats] = []
        self._speeds: list[Floats] = []
        self._tools: list[Floats] = []
        self._torques: list[Floats] = []
        self.states: list[tuple[float, str, str]] = []
        """(time, state, why) whenever the state changes."""
        self.departures: list[Departure] = []
        """Commands that left the runner."""
        self._moments: list[DeviceState] = []
        self._moment_times: list[float] = []
        self.keep_from_s = np.inf
        """From when on moments are kept to go back to [s]."""
        self.keep_to_s = np.inf
        device.watcher = self._note

    @property
    def motion(self) -> Motion:
        """What moved so far."""
        tools = self._tools or [np.zeros(0)] * len(self._times)
        return Motion(
            times=np.array(self._times),
            angles=np.array(self._angles),
            speeds=np.array(self._speeds),
            tools=np.array(tools),
            torques=np.array(self._torques),
        )

    def moment(self, time_s: float) -> DeviceState:
        """The first moment that was kept at or after a time; the last one where none is."""
        k = bisect_left(self._moment_times, time_s - 1e-9)
        return self._moments[min(k, len(self._moments) - 1)]

    def first_trip(self, since_s: float) -> tuple[float, str] | None:
        """(time, why) of the first safe stop since a moment; None without any."""
        found = ((t, why) for t, state, why in self.states if state == "tripped" and t >= since_s)
        return next(found, None)

    def _note(self) -> None:
        device = self._device
        self._times.append(device.now_s)
        self._angles.append(device.true_angles)
        self._speeds.append(device.true_speeds)
        self._torques.append(device.drive_torque)
        tool = device.true_tool
        if tool is not None:
            self._tools.append(tool)
        if not self.states or self.states[-1][1] != device.state:
            self.states.append((device.now_s, device.state, device.why))
        if self.keep_from_s <= device.now_s <= self.keep_to_s:
            self._moments.append(device.saved())
            self._moment_times.append(device.now_s)
