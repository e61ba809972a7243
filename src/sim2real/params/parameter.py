"""One thing that can differ between simulation and reality."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from sim2real.errors import Sim2RealError, nearest, table_at
from sim2real.params.dimension import KINDS, Dimension, dimension_of
from sim2real.params.distributions import Distribution
from sim2real.plain import High, Low, of_plain

OPERATIONS = ("set", "scale", "add")
_PATH = re.compile(r"^[a-z]+/[^/\s]+/[a-z_0-9]+(\[\d+\])?$")
_OPTION = re.compile(r"^option/[a-z_0-9]+(\[\d+\])?$")


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A named quantity with its unit, nominal value, bounds and prior.

    The name is a path, `kind/object/attribute` (`option/attribute` for the simulator's own
    options); the object may hold wildcards, and the attribute one index: `body/pole/mass`,
    `geom/finger*/friction`, `body/pole/ipos[2]`.
    """

    name: str
    """Path of the parameter."""
    dimension: Dimension
    """The dimension of the gap it belongs to."""
    unit: str = ""
    """SI unit of the value; '' for a ratio."""
    operation: str = "set"
    """How the value changes the model: 'set' it, 'scale' the model's by it, or 'add' it."""
    nominal: float
    """The value that leaves the model as written (1 for 'scale', 0 for 'add')."""
    bounds: tuple[Low, High] = (-math.inf, math.inf)
    """Values outside are refused, by draws and by fits."""
    prior: Distribution
    """Its distribution before any data."""

    def __post_init__(self) -> None:
        kind, _, _ = split_path(self.name)
        if kind not in KINDS:
            raise Sim2RealError(f"{self.name}: unknown kind {kind!r}{nearest(kind, KINDS)}")
        if self.operation not in OPERATIONS:
            raise Sim2RealError(
                f"{self.name}: unknown operation {self.operation!r}"
                f"{nearest(self.operation, OPERATIONS)}"
            )
        low, high = self.bounds
        if not low <= high:
            raise Sim2RealError(
                f"{self.name}: the lower bound {low:g} is above the upper bound {high:g}"
            )
        if not math.isfinite(self.nominal):
            raise Sim2RealError(f"{self.name}: nominal value {self.nominal} is not finite")
        if not low <= self.nominal <= high:
            raise Sim2RealError(
                f"{self.name}: bounds {low:g} .. {high:g} exclude the nominal value"
                f" {self.nominal:g}"
            )
        least, most = self.prior.support
        slack = 1e-9 * max(1.0, abs(low), abs(high))
        if least < low - slack or most > high + slack:
            hint = "" if math.isfinite(most - least) else "; use a truncated-normal"
            raise Sim2RealError(
                f"{self.name}: prior reaches {least:g} .. {most:g}, outside the bounds"
                f" {low:g} .. {high:g}{hint}"
            )

    @property
    def prior_std(self) -> float:
        """Standard deviation of the prior: half the width of its middle 68 %."""
        low, high = self.prior.quantiles([0.1587, 0.8413])
        return float(high - low) / 2

    def to_dict(self) -> dict[str, object]:
        """The parameter as plain data for JSON or TOML, without its name."""
        # By hand: a version is the hash of this, TOML has infinities, and bounds may be left out.
        data: dict[str, object] = {
            "dimension": str(self.dimension),
            "unit": self.unit,
            "operation": self.operation,
            "nominal": self.nominal,
        }
        if any(math.isfinite(bound) for bound in self.bounds):
            data["bounds"] = list(self.bounds)
        data["prior"] = self.prior.to_dict()
        return data

    @classmethod
    def of_table(cls, name: str, data: object, *, nominal: float | None = None) -> Parameter:
        """Read a parameter; `nominal` is for 'set' parameters that do not state their own."""
        kind, _, attribute = split_path(name)
        values = dict(table_at(data, name))
        usual = {"scale": 1.0, "add": 0.0}.get(str(values.get("operation")), nominal)
        value = values.setdefault("nominal", usual)
        if value is None:
            raise Sim2RealError(f"{name}: no nominal value is given, and the model has none")
        values.setdefault("dimension", dimension_of(kind, attribute) if kind in KINDS else "")
        values.setdefault("prior", {"kind": "fixed", "value": value})
        return of_plain(cls, values | {"name": name}, name)


def split_path(name: str) -> tuple[str, str, str]:
    """(kind, object, attribute) of a parameter's path; options have the object ''."""
    if _OPTION.match(name):
        kind, attribute = name.split("/", 1)
        return kind, "", attribute
    if not _PATH.match(name):
        raise Sim2RealError(f"{name!r} is not a parameter path like 'body/pole/mass'")
    kind, thing, attribute = name.split("/")
    return kind, thing, attribute
