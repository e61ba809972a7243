"""A driver's names and units, translated into a contract's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sim2real.errors import Sim2RealError, nearest, number_at, table_at
from sim2real.units import si_unit

_WHOLE = ("rad", "deg", "rad/s", "deg/s", "m", "mm", "m/s", "N m", "N")
_PARTS = {"percent": (-100.0, 100.0), "range_0_100": (0.0, 100.0)}
"""Units that are a part of a range, and their values at its ends."""
UNITS = (*_WHOLE, *_PARTS)
_QUANTITY = {"key", "unit", "sign", "scale", "offset", "range"}
_JOINT = _QUANTITY | {"position", "velocity", "command"}


@dataclass(frozen=True, kw_only=True)
class DriverQuantity:
    """One number of a driver, and what it is in SI units: `sign * scale * value + offset`."""

    key: str
    """Name the driver gives it."""
    unit: str
    """Unit the driver gives it in, one of `UNITS`."""
    sign: int = 1
    """-1 where the driver counts the other way round."""
    scale: float = 1.0
    """What the number is multiplied by after its unit, as by a gear ratio."""
    offset: float = 0.0
    """Its value in SI units where the driver says zero [rad or m]."""
    range: tuple[float, float] | None = None
    """Ends of the range behind a percentage, in SI units before sign, scale and offset."""

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise Sim2RealError(
                f"{self.key}: unknown unit {self.unit!r}{nearest(self.unit, UNITS)}"
            )
        if self.sign not in (1, -1):
            raise Sim2RealError(f"{self.key}: sign is 1 or -1, not {self.sign!r}")
        if not self.scale > 0:
            raise Sim2RealError(f"{self.key}: scale must be positive; sign turns it round")
        if (self.range is not None) != (self.unit in _PARTS):
            raise Sim2RealError(
                f"{self.key}: a range [low, high] belongs to the units {', '.join(_PARTS)}"
            )
        if self.range is not None and not self.range[0] < self.range[1]:
            raise Sim2RealError(f"{self.key}: the range's low end is not below its high one")

    def to_si(self, value: float) -> float:
        """The driver's number in SI units."""
        if self.range is None:
            plain = value * si_unit(self.unit).factor
        else:
            low, high = _PARTS[self.unit]
            part = (value - low) / (high - low)
            plain = self.range[0] + part * (self.range[1] - self.range[0])
        return self.sign * self.scale * plain + self.offset

    def from_si(self, value: float) -> float:
        """The driver's number for one in SI units."""
        plain = (value - self.offset) / (self.sign * self.scale)
        if self.range is None:
            return plain / si_unit(self.unit).factor
        low, high = _PARTS[self.unit]
        part = (plain - self.range[0]) / (self.range[1] - self.range[0])
        return low + part * (high - low)


@dataclass(frozen=True, kw_only=True)
class DriverNames:
    """What a driver reads and takes, by the contract's names."""

    sensors: Mapping[str, DriverQuantity]
    commands: Mapping[str, DriverQuantity]
    velocities: Mapping[str, str]
    """Velocities that the driver does not have, each with the position sensor it is taken from."""


def read_names(data: Mapping[str, object], where: str) -> DriverNames:
    """Names from the tables `joints`, `sensors` and `commands`; malformed ones are an error.

    A joint NAME is a position servo: it gives the sensors NAME_pos and NAME_vel and takes the
    command NAME, unless its `position`, `velocity` or `command` says otherwise.
    """
    sensors: dict[str, DriverQuantity] = {}
    commands: dict[str, DriverQuantity] = {}
    velocities: dict[str, str] = {}
    for name, table in table_at(data.get("joints", {}), f"{where}: [joints]").items():
        place = f"{where}: joint {name!r}"
        values = _checked(table, place, _JOINT)
        called = {"position": f"{name}_pos", "velocity": f"{name}_vel", "command": name}
        for key, usual in called.items():
            value = values.pop(key, usual)
            if not isinstance(value, str) or not value:
                raise Sim2RealError(f"{place}: {key} must be a name")
            called[key] = value
        quantity = _quantity(values, place)
        _add(sensors, called["position"], quantity, place)
        _add(commands, called["command"], quantity, place)
        velocities[called["velocity"]] = called["position"]
    for kind, found in (("sensors", sensors), ("commands", commands)):
        for name, table in table_at(data.get(kind, {}), f"{where}: [{kind}]").items():
            place = f"{where}: {kind.removesuffix('s')} {name!r}"
            _add(found, name, _quantity(_checked(table, place, _QUANTITY), place), place)
            velocities.pop(name, None)  # a velocity the driver has is better than a difference
    if not commands:
        raise Sim2RealError(f"{where} names no joint and no command")
    return DriverNames(sensors=sensors, commands=commands, velocities=velocities)


def _add(found: dict[str, DriverQuantity], name: str, quantity: DriverQuantity, place: str) -> None:
    if name in found:
        raise Sim2RealError(f"{place}: {name!r} is there twice")
    found[name] = quantity


def _checked(table: object, place: str, known: set[str]) -> dict[str, object]:
    values = dict(table_at(table, place))
    for key in values:
        if key not in known:
            raise Sim2RealError(f"{place} has no {key!r}{nearest(key, known)}")
    return values


def _quantity(values: Mapping[str, object], place: str) -> DriverQuantity:
    key, unit = (values.get(name) for name in ("key", "unit"))
    if not isinstance(key, str):
        raise Sim2RealError(f'{place} needs key = "…"')
    if not isinstance(unit, str):
        raise Sim2RealError(f'{place} needs unit = "…"')
    sign, scale, offset = (
        number_at(values.get(name, usual), f"{place}: {name}")
        for name, usual in (("sign", 1.0), ("scale", 1.0), ("offset", 0.0))
    )
    ends: tuple[float, float] | None = None
    if "range" in values:
        given = values["range"]
        if not isinstance(given, list) or len(given) != 2:
            raise Sim2RealError(f"{place}: range is [low, high]")
        ends = (number_at(given[0], f"{place}: range"), number_at(given[1], f"{place}: range"))
    try:
        return DriverQuantity(
            key=key,
            unit=unit,
            sign=int(sign) if sign in (1.0, -1.0) else 0,
            scale=scale,
            offset=offset,
            range=ends,
        )
    except Sim2RealError as error:
        raise Sim2RealError(f"{place}: {error}") from None
