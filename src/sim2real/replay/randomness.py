"""What is random in a twin: its motion and its readings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from sim2real.params import Parameter
from sim2real.twin import Twin

Randomness = Literal["none", "motion", "all"]

_READING = {"sensor": ("noise", "walk", "dropout", "quantum", "period")}
"""Random effects on a single reading, and its resolution in value and time."""
_RANDOM = {
    "actuator": ("delay_jitter", "missed"),
    "sensor": ("delay_jitter", *_READING["sensor"]),
}
"""Effects that a prediction leaves out: those, and the ones that make motion random."""


def with_randomness(twin: Twin, randomness: Randomness) -> tuple[Twin, list[int]]:
    """The twin with no randomness, that of its motion or all, and its remaining parameters."""
    off: Mapping[str, tuple[str, ...]] = {} if randomness == "all" else _RANDOM
    if randomness == "motion":
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
    """Whether a parameter only affects randomness, which no prediction shows."""
    return _moves(parameter, _RANDOM)


def moves_randomly(twin: Twin) -> bool:
    """Whether the twin's motion, or the times of its readings, are random."""
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
