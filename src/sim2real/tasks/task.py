"""What a task is: observation, action, reward, success and reset, on tensors of many worlds.

A task lists what its actor observes as terms, each naming the sensors that it comes from. A term
gets only measurements, never the simulated truth; what the critic observes besides is a second
list, whose terms get the worlds themselves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor

from sim2real.errors import Sim2RealError, nearest
from sim2real.worlds import Worlds


class Measurements:
    """What the robot's computer knows: sensor readings, goals, its last action and command."""

    def __init__(
        self, worlds: Worlds, goals: Sequence[str], given: Mapping[str, Tensor] | None = None
    ) -> None:
        """Those of the worlds, or `given`: readings, action, command and each goal by its name."""
        self._worlds = worlds
        self._goals = tuple(goals)
        self._given = given
        self._columns: dict[tuple[str, ...], Tensor | slice] = {}
        self.used: set[str] = set()
        """Sources read since the last `clear`, for checking a term against its declaration."""
        self._computed: dict[str, tuple[Tensor, frozenset[str]]] = {}

    def once(self, name: str, compute: Callable[[Measurements], Tensor]) -> Tensor:
        """The result of `compute`, computed once per period for all terms that use it."""
        if name not in self._computed:
            before = set(self.used)
            self.used.clear()
            value = compute(self)
            self._computed[name] = (value, frozenset(self.used))
            self.used |= before
        value, sources = self._computed[name]
        self.used |= sources
        return value

    def renew(self) -> None:
        """Forget computed results: a new period has begun."""
        self._computed.clear()

    def sensor(self, *names: str) -> Tensor:
        """(worlds, numbers) float32 readings of the named sensors, in that order."""
        if names not in self._columns:
            self._columns[names] = self._find(names)
        self.used.update(names)
        readings = self._worlds.measured if self._given is None else self._given["readings"]
        return readings[:, self._columns[names]]

    @property
    def action(self) -> Tensor:
        """(worlds, actions) the policy's last output."""
        return self._kept("action")

    @property
    def command(self) -> Tensor:
        """(worlds, controls) what was last sent to the actuators."""
        return self._kept("command")

    def goal(self, name: str) -> Tensor:
        """A goal that was given to the robot."""
        if name not in self._goals:
            raise Sim2RealError(f"{name!r} is not a goal of the task{nearest(name, self._goals)}")
        return self._kept(name)

    def _kept(self, name: str) -> Tensor:
        self.used.add(name)
        return (self._worlds.memory if self._given is None else self._given)[name]

    def _find(self, names: tuple[str, ...]) -> Tensor | slice:
        model = self._worlds.model
        valid = [model.sensor(k).name for k in range(model.nsensor)]
        columns: list[int] = []
        for name in names:
            if name not in valid:
                raise Sim2RealError(f"the model has no sensor {name!r}{nearest(name, valid)}")
            row = model.sensor(name).id
            first = int(model.sensor_adr[row])
            columns.extend(range(first, first + int(model.sensor_dim[row])))
        if columns == list(range(columns[0], columns[0] + len(columns))):
            return slice(columns[0], columns[0] + len(columns))
        return torch.tensor(columns, device=self._worlds.device)


@dataclass(frozen=True, kw_only=True)
class Term:
    """One named part of the actor's observation."""

    name: str
    unit: str
    """Unit of the values before scaling."""
    sources: tuple[str, ...]
    """Sensors, goals, 'action' or 'command': everything the term is computed from."""
    read: Callable[[Measurements], Tensor]
    """(worlds, numbers) values in `unit`."""
    scale: float = 1.0
    """Factor that brings the values to about one for the network."""


def sensed(name: str, *sensors: str, unit: str, scale: float = 1.0) -> Term:
    """A term with the readings of sensors as they are."""
    return Term(
        name=name, unit=unit, sources=sensors, scale=scale, read=lambda m: m.sensor(*sensors)
    )


@dataclass(frozen=True, kw_only=True)
class PrivilegedTerm:
    """One named part of what only the critic sees, computed from the simulated truth."""

    name: str
    read: Callable[[Worlds], Tensor]
    scale: float = 1.0


class Draw:
    """Keyed uniform draws for a task's resets: functions of (seed, name, world, episode)."""

    def __init__(self, names: Sequence[str], p: Tensor) -> None:
        self._columns = {name: column for column, name in enumerate(names)}
        self._p = p

    def uniform(self, name: str, low: float, high: float) -> Tensor:
        """(n,) draws between two bounds; `name` is one of the task's `draws`."""
        if name not in self._columns:
            raise Sim2RealError(f"the task draws no {name!r}{nearest(name, self._columns)}")
        return low + (high - low) * self._p[:, self._columns[name]]


@dataclass(frozen=True, kw_only=True)
class Training:
    """PPO settings for a task; the trainer's own options override them."""

    worlds: int = 1024
    """Number of worlds at once."""
    iterations: int = 300
    """Updates of the policy."""
    steps: int = 24
    """Control periods of every world in one update."""
    hidden: tuple[int, ...] = (128, 128)
    """Widths of the hidden layers, of actor and critic each."""
    gamma: float = 0.99
    """Discount per control period."""
    lam: float = 0.95
    """Lambda of the generalised advantage estimate."""
    learning_rate: float = 1e-3
    """Initial learning rate; it adapts to the change of the policy in an update."""
    desired_kl: float = 0.01
    """Target for the change of the policy in an update (KL divergence)."""
    entropy: float = 0.002
    """Weight of the entropy bonus."""
    noise: float = 0.7
    """Initial standard deviation of the exploration noise."""
    epochs: int = 5
    """Passes over the data of one update."""
    batches: int = 4
    """Mini-batches per pass."""


class Task(ABC):
    """What the robot should do. One instance belongs to one set of worlds."""

    name: ClassVar[str]
    twin: ClassVar[Path]
    """Folder or TOML file of the twin it is trained with."""
    rate_hz: ClassVar[float]
    """Control rate [Hz]."""
    episode_s: ClassVar[float]
    """Length of an episode [s]."""
    hold_s: ClassVar[float]
    """Time for which the goal must have been held at the end of a successful episode [s]."""
    actions: ClassVar[tuple[str, ...]]
    """Names of the actions, in order, each within about -1 to 1."""
    draws: ClassVar[tuple[str, ...]] = ()
    """Names of the random numbers that a reset needs."""
    goals: ClassVar[Mapping[str, int]] = {}
    """Goals given to the robot: names and widths."""
    actor: tuple[Term, ...]
    """What the policy observes."""
    critic: tuple[PrivilegedTerm, ...] = ()
    """What only the critic observes."""
    history: ClassVar[int] = 1
    """Periods of the actor's terms that the policy observes, oldest first."""
    training: ClassVar[Training] = Training()
    """PPO settings."""
    again: ClassVar[float] = 0.5
    """Updates of a training that starts from a trained policy, as a share of `iterations`."""
    tool: ClassVar[str] = ""
    """Site that must stay in the workspace on a real robot; '' for none."""
    camera: ClassVar[str] = "front"
    """Camera that films it."""
    bench: ClassVar[str] = ""
    """Bench of the stand-in hardware that it is done at, as `sim2real-reality serve --task` knows
    it; '' if there is none."""

    def __init__(self, worlds: Worlds) -> None:
        self.worlds = worlds

    @abstractmethod
    def reset(self, ids: Tensor, draw: Draw) -> None:
        """Write the first state of worlds `ids`: qpos, qvel, ctrl, goals."""

    @abstractmethod
    def command(self, action: Tensor, m: Measurements) -> Tensor:
        """(worlds, controls) command for a clipped action (worlds, actions).

        Nothing but the action and the measurements decides it: a robot computes it the same way.
        """

    def rest(self, m: Measurements) -> Tensor:
        """(worlds, controls) command that holds the robot where it is, or lets it go limp."""
        return torch.zeros_like(m.command)

    @abstractmethod
    def reward(self, action: Tensor) -> Tensor:
        """(worlds,) reward of the period just simulated."""

    def failed(self) -> Tensor | None:
        """(worlds,) whether the episode cannot go on; None for a task that cannot fail early."""
        return None

    @abstractmethod
    def reached(self) -> Tensor:
        """(worlds,) whether the goal is reached at this moment, according to the true state."""


def check_actor(task: Task, measurements: Measurements) -> None:
    """Refuse an actor that observes what no sensor gives, or other sources than it declares."""
    model = task.worlds.model
    known = {*task.goals, "action", "command"}
    known |= {model.sensor(k).name for k in range(model.nsensor)}
    for term in task.actor:
        if not term.sources:
            raise Sim2RealError(
                f"task {task.name!r}: the actor's {term.name!r} names no sensor: name its sensors,"
                " or make it a term of the critic"
            )
        for source in term.sources:
            if source not in known:
                raise Sim2RealError(
                    f"task {task.name!r}: the actor's {term.name!r} reads {source!r}, which is not"
                    f" a sensor or goal{nearest(source, known)}"
                )
        measurements.renew()
        measurements.used.clear()
        before = term.read(measurements).clone()
        if measurements.used != set(term.sources):
            raise Sim2RealError(
                f"task {task.name!r}: the actor's {term.name!r} declares {sorted(term.sources)} but"
                f" reads {sorted(measurements.used)}"
            )
        _refuse_truth(task, term, measurements, before)


def _refuse_truth(task: Task, term: Term, measurements: Measurements, before: Tensor) -> None:
    """Refuse a term that changes with the simulated truth while the measurements stay the same."""
    fields = [task.worlds.state(name) for name in ("qpos", "qvel")]
    kept = [field.clone() for field in fields]
    for field in fields:
        field.add_(0.1234)
    measurements.renew()
    after = term.read(measurements)
    for field, value in zip(fields, kept, strict=True):
        field.copy_(value)
    if not torch.equal(before, after):
        raise Sim2RealError(
            f"task {task.name!r}: the actor's {term.name!r} depends on the simulated truth, which"
            " no sensor measures"
        )
