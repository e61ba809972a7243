"""A driver's names and units, translated into a contract's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from sim2real.errors import Sim2RealError, nearest
from sim2real.units import si_unit

_PLAIN_UNITS = ("rad", "deg", "rad/s", "deg/s", "m", "mm", "m/s", "N m", "N")
_RANGE_UNITS = {"percent": (-100.0, 100.0), "range_0_100": (0.0, 100.0)}
"""Units that are a share of a range, and their values at its ends."""
UNITS = (*_PLAIN_UNITS, *_RANGE_UNITS)


@dataclass(frozen=True, kw_only=True)
class DriverQuantity:
    """One number of a driver, and what it is in SI units: `sign * scale * value + offset`."""

    key: str
    """The driver's name for it."""
    unit: str
    """The driver's unit, one of `UNITS`."""
    sign: Literal[1, -1] = 1
    """-1 if the driver's positive direction is the opposite one."""
    scale: float = 1.0
    """Factor after the conversion to SI units, such as a gear ratio."""
    offset: float = 0.0
    """Its value in SI units where the driver reads zero [rad or m]."""
    range: tuple[float, float] | None = None
    """Ends of the range of a percentage, in SI units before sign, scale and offset."""

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise Sim2RealError(
                f"{self.key}: unknown unit {self.unit!r}{nearest(self.unit, UNITS)}"
            )
        if not self.scale > 0:
            raise Sim2RealError(
                f"{self.key}: scale must be positive, not {self.scale:g}; to reverse the direction,"
                " use sign = -1"
            )
        if (self.range is not None) != (self.unit in _RANGE_UNITS):
            raise Sim2RealError(
                f"{self.key}: {self.unit!r} and a range do not go together: the units"
                f" {', '.join(_RANGE_UNITS)} need a range = [low, high], the others have none"
            )
        if self.range is not None and not self.range[0] < self.range[1]:
            low, high = self.range
            raise Sim2RealError(f"{self.key}: range [{low:g}, {high:g}] must go from low to high")

    def to_si(self, value: float) -> float:
        """The driver's number in SI units."""
        if self.range is None:
            plain = value * si_unit(self.unit).factor
        else:
            low, high = _RANGE_UNITS[self.unit]
            part = (value - low) / (high - low)
            plain = self.range[0] + part * (self.range[1] - self.range[0])
        return self.sign * self.scale * plain + self.offset

    def from_si(self, value: float) -> float:
        """The driver's number for one in SI units."""
        plain = (value - self.offset) / (self.sign * self.scale)
        if self.range is None:
            return plain / si_unit(self.unit).factor
        low, high = _RANGE_UNITS[self.unit]
        part = (plain - self.range[0]) / (self.range[1] - self.range[0])
        return low + part * (high - low)


@dataclass(frozen=True, kw_only=True)
class DriverNames:
    """What a driver reads and takes, by the contract's names."""

    sensors: Mapping[str, DriverQuantity]
    commands: Mapping[str, DriverQuantity]
    velocities: Mapping[str, str]
    """Velocities that the driver does not have, each with the position sensor to differentiate."""


@dataclass(frozen=True, kw_only=True)
class DriverJoint(DriverQuantity):
    """A position servo: two sensors and a command."""

    position: str = ""
    """Sensor of its position; '' for NAME_pos."""
    velocity: str = ""
    """Sensor of its velocity; '' for NAME_vel."""
    command: str = ""
    """Its command; '' for NAME."""


@dataclass(frozen=True, kw_only=True)
class DriverTables:
    """Joints, and other sensors and commands, of a driver, by the contract's names."""

    joints: Mapping[str, DriverJoint] = field(default_factory=dict)
    sensors: Mapping[str, DriverQuantity] = field(default_factory=dict)
    commands: Mapping[str, DriverQuantity] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.names.commands:
            raise Sim2RealError("it has neither joints nor commands")

    @cached_property
    def names(self) -> DriverNames:
        """What the driver reads and takes; a name that occurs twice is a `Sim2RealError`."""
        sensors: list[tuple[str, DriverQuantity]] = []
        commands: list[tuple[str, DriverQuantity]] = []
        velocities: dict[str, str] = {}
        for name, joint in self.joints.items():
            position = joint.position or f"{name}_pos"
            sensors.append((position, joint))
            commands.append((joint.command or name, joint))
            velocities[joint.velocity or f"{name}_vel"] = position
        sensors += self.sensors.items()
        commands += self.commands.items()
        for name in (*self.sensors, *self.commands):
            velocities.pop(name, None)  # a velocity the driver has is better than a difference
        return DriverNames(sensors=_once(sensors), commands=_once(commands), velocities=velocities)


def _once(named: Sequence[tuple[str, DriverQuantity]]) -> dict[str, DriverQuantity]:
    found: dict[str, DriverQuantity] = {}
    for name, quantity in named:
        if name in found:
            raise Sim2RealError(f"{name!r} occurs twice")
        found[name] = quantity
    return found
