"""What a task is: observation, action, reward, success and reset, on tensors of many worlds.

A task says what its actor sees as a list of terms, each naming the sensors that give it. A term
is handed only measurements, never the simulated truth; what the critic may see besides is a
second list, and its terms get the worlds themselves.
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
        """What `compute` gives, worked out once a period however many terms use it."""
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
        """Forget what was worked out: a new period has begun."""
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
    """A term that is the readings of sensors as they are."""
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
    """PPO settings that suit a task; the trainer's own options override them."""

    worlds: int = 1024
    """Worlds trained in at once."""
    iterations: int = 300
    """Updates of the policy."""
    steps: int = 24
    """Control periods of every world in one update."""
    hidden: tuple[int, ...] = (128, 128)
    """Widths of the hidden layers, of actor and critic each."""
    gamma: float = 0.99
    """Discount a control period."""
    lam: float = 0.95
    """Discount of the advantage estimate."""
    learning_rate: float = 1e-3
    """First learning rate; it adapts to keep the policy's change in bounds."""
    desired_kl: float = 0.01
    """Change of the policy in one update that is aimed at."""
    entropy: float = 0.002
    """Reward for staying undecided."""
    noise: float = 0.7
    """First standard deviation of the exploration."""
    epochs: int = 5
    """Passes over the data of one update."""
    batches: int = 4
    """Parts the data of one update is split into."""


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
    """How long the goal must have been held when the episode ends, to count as a success [s]."""
    actions: ClassVar[tuple[str, ...]]
    """Names of the actions, in order, each within about -1 to 1."""
    draws: ClassVar[tuple[str, ...]] = ()
    """Names of the random numbers a reset needs."""
    goals: ClassVar[Mapping[str, int]] = {}
    """Goals given to the robot: name and width."""
    actor: tuple[Term, ...]
    """What the policy sees."""
    critic: tuple[PrivilegedTerm, ...] = ()
    """What only the critic sees, besides."""
    history: ClassVar[int] = 1
    """Periods of the actor's terms the policy sees, oldest first."""
    training: ClassVar[Training] = Training()
    """Settings that suit it."""
    again: ClassVar[float] = 0.5
    """Updates of a training that begins with a trained policy, against those of a fresh one."""
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
        """(worlds, controls) command that keeps the robot where it is, or lets it go limp."""
        return torch.zeros_like(m.command)

    @abstractmethod
    def reward(self, action: Tensor) -> Tensor:
        """(worlds,) reward of the period just simulated."""

    def failed(self) -> Tensor | None:
        """(worlds,) whether the episode cannot go on; None for a task that cannot fail early."""
        return None

    @abstractmethod
    def reached(self) -> Tensor:
        """(worlds,) whether the goal is met at this moment, judged from the truth."""


def check_actor(task: Task, measurements: Measurements) -> None:
    """Refuse an actor that sees what no sensor gives, or other than it declares."""
    model = task.worlds.model
    known = {*task.goals, "action", "command"}
    known |= {model.sensor(k).name for k in range(model.nsensor)}
    for term in task.actor:
        if not term.sources:
            raise Sim2RealError(
                f"task {task.name!r}: the actor reads {term.name!r}, which no sensor gives; make it"
                " a critic's term or name its sensors"
            )
        for source in term.sources:
            if source not in known:
                raise Sim2RealError(
                    f"task {task.name!r}: the actor reads {term.name!r} from {source!r}, which no"
                    f" sensor gives{nearest(source, known)}"
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
    """Move the simulated truth under a term's feet: one that notices has looked at it."""
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
            f"task {task.name!r}: the actor's {term.name!r} changes with the simulated truth, which"
            " no sensor gives"
        )
