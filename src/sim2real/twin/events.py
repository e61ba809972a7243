"""What the surroundings do to the robot: pushes and wind, declared by the twin.

Every number is the nominal value of a parameter `environment/<event>/<attribute>`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import ClassVar

import mujoco

from sim2real.errors import Sim2RealError, nearest, table_at
from sim2real.plain import PlainData


@dataclass(frozen=True, kw_only=True)
class Event(PlainData):
    """Something that acts on one body."""

    kind: ClassVar[str] = ""
    body: str
    """The body it acts on."""


@dataclass(frozen=True, kw_only=True)
class Push(Event):
    """Horizontal shoves at random moments, in random directions."""

    kind: ClassVar[str] = "push"
    force: float = 0.0
    """Size of the force [N]."""
    duration: float = 0.1
    """How long one push lasts [s]."""
    interval: float = 2.0
    """Mean time between pushes [s]."""


@dataclass(frozen=True, kw_only=True)
class Wind(Event):
    """A horizontal wind with gusts; its drag acts at the body's centre of mass."""

    kind: ClassVar[str] = "wind"
    speed: float = 0.0
    """Mean speed of the wind, along x [m/s]."""
    gust: float = 0.0
    """Standard deviation of the gusts [m/s]."""
    area: float = 0.01
    """Drag coefficient times the area it meets [m^2]."""


def event_attributes(event: Event) -> dict[str, float]:
    """The event's numbers by name."""
    return {name: value for name, value in asdict(event).items() if name != "body"}


def read_events(data: Mapping[str, object], model: mujoco.MjModel) -> dict[str, Event]:
    """Events from the `[events]` tables."""
    bodies = [model.body(i).name for i in range(1, model.nbody)]
    events: dict[str, Event] = {}
    for name, table in data.items():
        where = f"[events.{name}]"
        event = Event.from_dict({"kind": name} | dict(table_at(table, where)), where)
        if event.body not in bodies:
            raise Sim2RealError(
                f"{where}: the model has no body {event.body!r}{nearest(event.body, bodies)}"
            )
        events[name] = event
    return events
