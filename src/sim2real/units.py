"""Units as people write them, and what turns them into SI.

A unit is written as products and quotients of names: 'deg/s', 'N mm', 'rad/s^2', 'rpm'.
"""

from __future__ import annotations

import math
import re
from functools import cache
from typing import NamedTuple

from sim2real.errors import Sim2RealError, nearest

_UNITS: dict[str, tuple[float, str]] = {
    "s": (1.0, "s"), "ms": (1e-3, "s"), "us": (1e-6, "s"), "ns": (1e-9, "s"), "min": (60.0, "s"),
    "h": (3600.0, "s"),
    "m": (1.0, "m"), "cm": (1e-2, "m"), "mm": (1e-3, "m"), "um": (1e-6, "m"), "in": (0.0254, "m"),
    "rad": (1.0, "rad"), "mrad": (1e-3, "rad"), "deg": (math.pi / 180, "rad"),
    "rev": (2 * math.pi, "rad"), "rpm": (2 * math.pi / 60, "rad/s"),
    "N": (1.0, "N"), "mN": (1e-3, "N"), "kN": (1e3, "N"), "kgf": (9.80665, "N"),
    "Nm": (1.0, "N m"), "mNm": (1e-3, "N m"), "Ncm": (1e-2, "N m"), "Nmm": (1e-3, "N m"),
    "kg": (1.0, "kg"), "g": (1e-3, "kg"),
    "V": (1.0, "V"), "mV": (1e-3, "V"), "A": (1.0, "A"), "mA": (1e-3, "A"),
    "W": (1.0, "W"), "mW": (1e-3, "W"), "J": (1.0, "J"), "Ohm": (1.0, "Ohm"),
    "Hz": (1.0, "Hz"), "kHz": (1e3, "Hz"),
    "Pa": (1.0, "Pa"), "kPa": (1e3, "Pa"), "bar": (1e5, "Pa"), "T": (1.0, "T"), "uT": (1e-6, "T"),
    "K": (1.0, "K"), "degC": (1.0, "K"),
    "%": (0.01, ""), "counts": (1.0, ""), "ratio": (1.0, ""), "1": (1.0, ""),
}  # fmt: skip
_ABSOLUTE = {"degC": 273.15}
_PART = re.compile(r"([A-Za-z%]+|1)(?:\^?(-?\d))?$")


class SiUnit(NamedTuple):
    """What turns a value into SI: `factor * value + offset`, which is in `unit`."""

    factor: float
    offset: float
    unit: str


class JointUnit(NamedTuple):
    """SI units of one quantity of a joint: of one that turns, and of one that slides."""

    turning: str
    sliding: str


POSITION = JointUnit("rad", "m")
VELOCITY = JointUnit("rad/s", "m/s")
ACCELERATION = JointUnit("rad/s^2", "m/s^2")
EFFORT = JointUnit("N m", "N")


def counted(count: int, noun: str) -> str:
    """A number of things, as '1 recording' or '2 recordings'."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


@cache
def si_unit(unit: str) -> SiUnit:
    """What turns values in `unit` into SI.

    An unknown unit is a `Sim2RealError` that names the nearest known ones.
    """
    unit = unit.strip()
    if not unit:
        return SiUnit(1.0, 0.0, "")
    if unit in _ABSOLUTE:
        return SiUnit(_UNITS[unit][0], _ABSOLUTE[unit], _UNITS[unit][1])
    factor = 1.0
    above: list[str] = []
    below: list[str] = []
    for place, side in enumerate(unit.split("/")):
        for part in re.split(r"[\s*·]+", side.strip()):
            found = _PART.match(part)
            name, power = (found[1], int(found[2] or 1)) if found else (part, 1)
            if name not in _UNITS:
                raise Sim2RealError(f"unit {unit!r} is not known{nearest(name, _UNITS)}")
            scale, si = _UNITS[name]
            factor *= scale ** (power if place == 0 else -power)
            if si:
                named = f"{si}^{power}" if power != 1 else si
                (above if place == 0 else below).append(named)
    # An SI unit that is itself a quotient (rpm) or a product would read wrong inside a longer one.
    crossed = (len(above) > 1 or below) and any("/" in part for part in (*above, *below))
    if crossed or any(" " in part for part in below):
        raise Sim2RealError(f"unit {unit!r} is too complex to convert: give a 'scale' instead")
    return SiUnit(factor, 0.0, "/".join([" ".join(above) or ("1" if below else ""), *below]))


def known_si_unit(unit: str) -> SiUnit | None:
    """What turns values in `unit` into SI, or None where the unit is not known."""
    try:
        return si_unit(unit)
    except Sim2RealError:
        return None
