"""The machine-checked interface of a policy: what it receives and what it returns.

The trainer, the exporter, the robot and the doctor all read this one object. Everything has a name,
an order, a unit and a width; nothing is left to memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sim2real.contract.features import Feature, ImageFeature, NumbersFeature, TextFeature
from sim2real.errors import Sim2RealError
from sim2real.plain import AtLeastOne, PlainData, Positive

SCHEMA = 2
"""Version of the contract's format; a newer one is refused."""
_FIRST_SCHEMA = 1
"""The version that has numbers only; contracts without pictures and texts are still written so."""


@dataclass(frozen=True, kw_only=True)
class SensorSpec:
    """One sensor that the robot must read."""

    name: str
    unit: str
    width: AtLeastOne
    kind: str = ""
    """Kind of sensor: 'jointpos', 'gyro', 'framequat', …"""
    of: str = ""
    """Joint, site or body that it measures."""
    frame: str = ""
    """Frame of a vector or a pose: 'world', 'site', …; '' without one."""
    quaternion: str = ""
    """Order of a quaternion's components, 'wxyz'; '' for other readings."""
    channel: str = ""
    """Its channel in real logs, if that has another name."""
    delay_s: float = 0.0
    """Expected time from the event to the reading [s]."""

    @property
    def numbers(self) -> tuple[str, ...]:
        """A name for each of its numbers, with an index if there are several."""
        several = tuple(f"{self.name}[{k}]" for k in range(self.width))
        return several if self.width > 1 else (self.name,)


@dataclass(frozen=True, kw_only=True)
class GoalSpec:
    """Something the robot is told to reach."""

    name: str
    width: AtLeastOne


@dataclass(frozen=True, kw_only=True)
class TermSpec:
    """One part of the observation, in the order the network sees it."""

    name: str
    unit: str
    """Unit before scaling."""
    width: AtLeastOne
    scale: float
    """The network sees value * scale."""
    sources: tuple[str, ...]
    """Sensors, goals, 'action' or 'command' it is computed from."""


@dataclass(frozen=True, kw_only=True)
class ActionSpec:
    """One output of the network."""

    name: str
    low: float = -1.0
    high: float = 1.0
    """Range that the output is clipped to before it becomes a command."""


@dataclass(frozen=True, kw_only=True)
class CommandSpec:
    """One number that is sent to an actuator."""

    name: str
    """Actuator."""
    joint: str
    unit: str
    low: float
    high: float
    default: float
    """Value at the default pose."""
    stiffness: float = 0.0
    """Gain of the actuator's own position loop [N m/rad or N/m]; 0 for a torque."""
    damping: float = 0.0
    """Gain of its velocity loop."""
    delay_s: float = 0.0
    """Expected time from sending the command to its torque [s]."""


@dataclass(frozen=True, kw_only=True)
class Contract(PlainData, schema=SCHEMA, also=("images?", "texts?")):
    """Everything that must agree between the simulated robot and the real one."""

    schema: int = _FIRST_SCHEMA
    """The oldest version of the format that can hold it, whatever is given."""
    task: str
    robot: str
    """Name of the twin."""
    twin_version: str
    rate_hz: Positive
    """Control rate [Hz]."""
    history: AtLeastOne
    """Periods of observations the network sees."""
    history_order: str = "oldest first"
    episode_s: float = 0.0
    """Length of one attempt [s]; 0 if it is not limited."""
    sensors: tuple[SensorSpec, ...]
    goals: tuple[GoalSpec, ...] = ()
    observations: tuple[TermSpec, ...] = ()
    actions: tuple[ActionSpec, ...] = ()
    commands: tuple[CommandSpec, ...]
    images: tuple[ImageFeature, ...] = ()
    """Pictures that the policy sees beside the observation."""
    texts: tuple[TextFeature, ...] = ()
    """Texts that it is given."""

    def __post_init__(self) -> None:
        second = bool(self.images or self.texts)
        object.__setattr__(self, "schema", SCHEMA if second else _FIRST_SCHEMA)
        names = [feature.name for feature in self.features]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice and second:
            raise Sim2RealError(f"the contract has two features of the name {twice[0]!r}")

    @property
    def features(self) -> tuple[Feature, ...]:
        """Everything that the policy sees, in order: the observation's terms, images, texts."""
        numbers = (
            NumbersFeature(name=term.name, unit=term.unit, width=self.history * term.width)
            for term in self.observations
        )
        return (*numbers, *self.images, *self.texts)

    @property
    def readings_width(self) -> int:
        """Numbers of all sensors together."""
        return sum(sensor.width for sensor in self.sensors)

    @property
    def frame_width(self) -> int:
        """Numbers of one period's observation."""
        return sum(term.width for term in self.observations)

    @property
    def input_width(self) -> int:
        """Numbers the network takes: all periods, oldest first."""
        return self.history * self.frame_width

    @property
    def goals_width(self) -> int:
        """Numbers of all goals together."""
        return sum(goal.width for goal in self.goals)

    def columns(self, kind: str) -> dict[str, int]:
        """Column among the readings, by joint, of its sensor of a kind such as 'jointpos'."""
        found: dict[str, int] = {}
        column = 0
        for sensor in self.sensors:
            if sensor.kind == kind:
                found.setdefault(sensor.of, column)
            column += sensor.width
        return found

    def differences(self, other: Contract) -> Iterator[str]:
        """Where another contract differs, one line each."""
        yield from _differences("", self.to_dict(), other.to_dict())


def _differences(path: str, one: object, other: object) -> Iterator[str]:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in dict.fromkeys((*one, *other)):
            mine, theirs = one.get(key, []), other.get(key, [])  # a schema may lack some
            yield from _differences(f"{path}.{key}" if path else key, mine, theirs)
    elif isinstance(one, list | tuple) and isinstance(other, list | tuple):
        ours, others = (
            [row.get("name", k) if isinstance(row, Mapping) else row for k, row in enumerate(rows)]
            for rows in (one, other)
        )
        if ours != others:
            yield f"{path}: {', '.join(map(str, ours))} against {', '.join(map(str, others))}"
            return
        for name, left, right in zip(ours, one, other, strict=True):
            if isinstance(left, Mapping):
                yield from _differences(f"{path}.{name}", left, right)
    elif one != other:
        yield f"{path}: {one!r} against {other!r}"
