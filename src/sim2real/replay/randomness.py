"""What is random in a twin: how its motion scatters, and how its readings do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from sim2real.params import Parameter
from sim2real.twin import Twin

Chance = Literal["none", "motion", "all"]

_READING = {"sensor": ("noise", "walk", "dropout", "quantum", "period")}
"""Effects on a single reading: chance, and the steps it comes in."""
_RANDOM = {
    "actuator": ("delay_jitter", "missed"),
    "sensor": ("delay_jitter", *_READING["sensor"]),
}
"""Effects that a prediction leaves out: those, and what makes the motion itself random."""


def with_chance(twin: Twin, chance: Chance) -> tuple[Twin, list[int]]:
    """The twin with none of its chance, that of its motion or all, and the parameters it keeps."""
    off: Mapping[str, tuple[str, ...]] = {} if chance == "all" else _RANDOM
    if chance == "motion":
        off = _READING
    effects: dict[str, Any] = {}
    for group, tables in twin.effects.items():
        effects[group] = {
            pattern: {n: value for n, value in table.items() if n not in off.get(group, ())}
            for pattern, table in tables.items()
        }
    columns = [k for k, p in enumerate(twin.parameters) if not _moves(p, off)]
    kept = tuple(twin.parameters[k] for k in columns)
    return replace(twin, effects=effects, parameters=kept), columns


def is_random(parameter: Parameter) -> bool:
    """Whether a parameter moves only how readings scatter, which no prediction shows."""
    return _moves(parameter, _RANDOM)


def moves_by_chance(twin: Twin) -> bool:
    """Whether something random moves the twin, or when it is read."""
    return any(
        value != 0 and name in _RANDOM.get(group, ()) and name not in _READING.get(group, ())
        for group, tables in twin.effects.items()
        for table in tables.values()
        for name, value in table.items()
    )


def _moves(parameter: Parameter, effects: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether a parameter is one of those effects."""
    kind, *_, attribute = parameter.name.split("/")
    return attribute.split("[")[0] in effects.get(kind, ())
