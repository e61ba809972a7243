"""What an engine brings: its physics, and what it declares that it can do.

An engine advances many worlds of one compiled model. Everything a twin adds to the model (the
models of commands, sensors, delays and friction, parameters, the remainder) is shared by all
engines: `TwinWorlds` puts it around a `Physics`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import mujoco
import torch
from torch import Tensor

from sim2real.twin import Twin
from sim2real.worlds.abilities import EngineAbilities
from sim2real.worlds.protocol import Worlds


@dataclass(frozen=True, kw_only=True)
class WorldsRequest:
    """What someone wants of an engine."""

    count: int
    """Number of worlds."""
    period_s: float
    """Length of a control period [s]."""
    seed: int = 0
    """Keys noise, jitter and losses."""
    threads: int = 0
    """Threads, where the engine has some; 0 for all cores. No result depends on it."""
    switches: bool = False
    """Whether commands of nan switch actuators off."""
    remainder: bool = False
    """Whether the twin's learned remainder acts."""
    device: str = ""
    """Where to compute, as torch names it; '' for the engine's own choice."""


@dataclass(frozen=True, kw_only=True)
class Engine:
    """An engine that can be asked for."""

    abilities: EngineAbilities
    """Its name, and what it can do on any device; worlds that are open may be able to do more."""
    open: Callable[[Twin, WorldsRequest], Worlds]


class WorldsFailedError(Exception):
    """The physics cannot compute a start: the parameters make no possible world."""

    def __init__(self, world: int, why: str) -> None:
        super().__init__(why)
        self.world = world
        """The first such world."""


class Physics(Protocol):
    """Many worlds of one compiled model, advanced together; every tensor is on `device`.

    `ids` (n,) are indices of worlds. What is said of some worlds changes nothing in the others.
    """

    device: torch.device
    abilities: EngineAbilities

    @property
    def forces_at_start(self) -> bool:
        """Whether `forward` computes forces, or stops once velocities are known."""

    def state(self, name: str) -> Tensor:
        """The live (worlds, ...) float64 tensor of a state field, and `history`."""

    def derived(self, name: str) -> Tensor:
        """The live (worlds, ...) tensor of a computed field."""

    def field(self, name: str) -> Tensor:
        """The live (worlds, elements) tensor of a field of the model, which may now differ."""

    def set_constants(self, ids: Tensor) -> None:
        """Compute anew what follows from the fields of the model; may be a `WorldsFailedError`."""

    def reset(self, ids: Tensor) -> None:
        """Put worlds into the model's initial state."""

    def forward(self, ids: Tensor) -> None:
        """Compute derived fields from the states; may be a `WorldsFailedError`."""

    def advance(self, steps: Tensor) -> Tensor:
        """Do (worlds,) physics steps, counted on the host; the (worlds,) mask that broke down."""

    def world(
        self, index: int, model: mujoco.MjModel | None
    ) -> tuple[mujoco.MjModel, mujoco.MjData]:
        """One world computed forward, written into `model` where there is one."""

    def snapshot(self) -> Tensor:
        """(worlds, numbers) a copy of all that the next step depends on, but the model."""

    def restore(self, rows: Tensor) -> None:
        """Continue from a snapshot of as many worlds of this model."""


PhysicsOf = Callable[[mujoco.MjModel, WorldsRequest], Physics]
"""Makes the physics of a compiled model."""
