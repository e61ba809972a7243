"""Temperatures of servos on a LeRobot bus, read now and then between the positions."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from sim2real.errors import Sim2RealError, nearest

_EVERY_S = 1.0
"""Time between two readings: a motor warms up over minutes, and each reading costs bus time [s]."""
_KNOWN_FOR_S = 10.0
"""How long a temperature counts that cannot be read again [s]."""


class MotorTemperatures:
    """Temperatures of the motors behind some commands, in their order [degC]."""

    def __init__(self, bus: Any, keys: Iterable[str], robot: str) -> None:
        """`keys` are LeRobot's names of commands, as "gripper.pos" for the motor "gripper"."""
        self._motors = [key.partition(".")[0] for key in keys]
        motors = getattr(bus, "motors", {})
        if not hasattr(bus, "sync_read"):
            raise Sim2RealError(f"{robot} does not tell temperatures: use temperature = false")
        for motor in self._motors:
            if motor not in motors:
                raise Sim2RealError(
                    f"{robot} has no motor {motor!r} whose temperature it could tell"
                    f"{nearest(motor, motors)}: use temperature = false"
                )
        self._bus = bus
        self._known: list[float] = []
        self._tried_s = self._read_s = float("-inf")

    def at(self, now_s: float) -> list[float]:
        """The newest ones; empty where they could not be read for long."""
        if now_s - self._tried_s >= _EVERY_S:
            self._tried_s = now_s
            with suppress(Exception):  # a lost packet
                told = self._bus.sync_read("Present_Temperature", normalize=False)
                self._known = [float(told[motor]) for motor in self._motors]
                self._read_s = now_s
        return self._known if now_s - self._read_s < _KNOWN_FOR_S else []
