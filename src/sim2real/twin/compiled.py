"""A twin as compiled, and the numbers in it that a parameter's path leads to."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco

from sim2real.errors import Sim2RealError
from sim2real.twin.effects import Effects
from sim2real.twin.events import Event
from sim2real.twin.remainder import Remainder


@dataclass(frozen=True)
class Write:
    """One number that a parameter moves.

    Its value is `gain * quantity`, or, for one that only follows, the nominal value times
    `(quantity / nominal quantity) ** power`.
    """

    field: str
    """Field of the model, or `effect.<group>.<attribute>` of the tables beside it."""
    index: int
    """Element of the flattened field."""
    gain: float = 1.0
    power: float | None = None
    """Set for a number that follows the quantity's ratio to its nominal."""
    owned: bool = True
    """Whether no other parameter may move it; several may move a consequence such as an inertia."""


@dataclass(frozen=True)
class Address:
    """What one parameter moves for one matched object."""

    thing: str
    nominal: float
    """The quantity in the model as written."""
    writes: tuple[Write, ...]


@dataclass(frozen=True)
class CompiledTwin:
    """A twin's model with what stands beside it: effects, events and a learned remainder."""

    model: mujoco.MjModel
    effects: Effects
    events: dict[str, Event]
    remainder: Remainder | None = None


def components(name: str, width: int, index: int | None) -> list[int]:
    """The components of a vector that a path names: one, or all where it has no index."""
    if index is not None:
        if index >= width:
            raise Sim2RealError(f"{name}: index {index} is beyond the {width} components")
        return [index]
    return list(range(width))


def split_index(attribute: str) -> tuple[str, int | None]:
    """(name, index) of an attribute: `ipos[2]` is ("ipos", 2)."""
    if "[" not in attribute:
        return attribute, None
    stem, index = attribute[:-1].split("[")
    return stem, int(index)
