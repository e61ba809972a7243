"""The longest delays that history buffers hold, against those that parameters ask for."""

from __future__ import annotations

import fnmatch
import math
from dataclasses import dataclass

from torch import Tensor

from sim2real.errors import Sim2RealError
from sim2real.twin import Effects, Twin


@dataclass(frozen=True)
class _Limit:
    column: int
    name: str
    longest: float


class DelayLimits:
    """Delay parameters of a twin, whose priors must fit the buffers that the twin declares."""

    def __init__(self, twin: Twin, effects: Effects) -> None:
        """A prior that reaches beyond its buffer is a `Sim2RealError`."""
        self._limits: list[_Limit] = []
        for column, parameter in enumerate(twin.parameters):
            if not parameter.name.endswith("/delay"):
                continue
            kind, pattern, _ = parameter.name.split("/")
            tables = effects.actuators if kind == "actuator" else effects.sensors
            for name in fnmatch.filter(tables, pattern):
                most = tables[name].delay_max - tables[name].delay_jitter
                longest = {
                    "scale": most / (tables[name].delay or math.inf),
                    "add": most - tables[name].delay,
                }.get(parameter.operation, most)
                reach = parameter.prior.support[1]
                if math.isfinite(reach) and reach > longest + 1e-12:
                    raise Sim2RealError(
                        f"{parameter.name}: its prior reaches {reach:g}, but delay_max minus"
                        f" jitter of {kind} {name!r} is {most:g} s"
                    )
                self._limits.append(_Limit(column, parameter.name, longest))

    def check(self, values: Tensor) -> None:
        """Refuse values (n, parameters) that no buffer holds."""
        for limit in self._limits if len(values) else ():
            most = float(values[:, limit.column].max())
            if most > limit.longest + 1e-12:
                raise Sim2RealError(
                    f"{limit.name} = {most:g} s is beyond the {limit.longest:g} s its history"
                    " buffer holds; raise delay_max"
                )
