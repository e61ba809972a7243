"""What every engine of worlds offers, whatever it runs on.

Worlds are many copies of one twin, each with its own parameters, advanced together by one call per
control period. Every tensor is on `device`; tasks, randomisation and sensor models compute there
and never look at a value from Python, so that they run unchanged on a GPU engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypedDict

import mujoco
import torch
from torch import Tensor

from sim2real.twin import Event, Twin
from sim2real.worlds.abilities import EngineAbilities
from sim2real.worlds.hardware import EffectTables, FrictionModel


class WorldsState(TypedDict):
    """What a resumed run needs of its worlds to continue bit for bit."""

    tick: int
    diverged: int
    values: Tensor
    """(worlds, parameters) values in force."""
    state: Tensor
    """The engine's own state, a row per world."""
    derived: dict[str, Tensor]
    memory: dict[str, Tensor]
    held: dict[str, Tensor]
    """What the models of hardware remember from period to period."""


class Worlds(Protocol):
    """Many simulated copies of a twin."""

    abilities: EngineAbilities
    twin: Twin
    model: mujoco.MjModel
    """The compiled nominal model, with the twin's hardware effects in it."""
    count: int
    """Number of worlds."""
    device: torch.device
    period_s: float
    """Length of a control period [s]."""
    tick: int
    """Control periods since the start, the same for all worlds; noise is keyed by it."""
    values: Tensor
    """(worlds, parameters) values in force, in the order of the twin's parameters."""
    measured: Tensor
    """(worlds, numbers) float32 readings of all sensors, after the sensor model."""
    events: Mapping[str, Event]
    """Events of the twin, in the order of the effect tables' columns."""
    tables: EffectTables
    """Per-world values of the hardware effects and events."""
    memory: dict[str, Tensor]
    """Per-world tensors of the task, saved and restored with the state."""
    features: Tensor | None
    """(worlds, joints, features) the remainder saw in the last period, where it acts."""
    friction: FrictionModel
    """Joint friction that follows load and direction, where the twin has some."""

    @property
    def diverged(self) -> int:
        """Worlds that have diverged since the start."""

    def state(self, name: str) -> Tensor:
        """The live (worlds, ...) tensor of a state field: qpos, qvel, ctrl, mocap_pos, …

        It is float64 whatever the engine computes in, and what is written into it counts from the
        next call on.
        """

    def derived(self, name: str) -> Tensor:
        """The (worlds, ...) tensor of a computed field: site_xpos, xpos, … Read only.

        Refreshed by every call; as with `mj_step`, one physics step behind the state.
        """

    def field(self, name: str) -> Tensor:
        """The live (worlds, elements) tensor of a model field, or of a table as `effect.TABLE`."""

    def ids(self, mask: Tensor) -> Tensor:
        """Indices of the worlds where a (worlds,) mask holds."""

    def set_parameters(self, values: Tensor, ids: Tensor) -> None:
        """Give worlds `ids` (n,) the parameter values (n, parameters), from their next start."""

    def reset(self, ids: Tensor) -> None:
        """Put worlds `ids` into the model's initial state; the task then writes its own."""

    def begin(self, ids: Tensor) -> None:
        """Start worlds `ids` from the state now written: derived fields, histories, readings."""

    def step(self, command: Tensor) -> Tensor:
        """Advance one control period under (worlds, controls) commands.

        Where worlds were opened with `switches`, a command of nan switches the actuator off for
        the period: it neither drives nor brakes. Returns the (worlds,) mask of worlds that
        diverged; they need a reset.
        """

    def world(
        self, index: int, *, model: mujoco.MjModel | None = None
    ) -> tuple[mujoco.MjModel, mujoco.MjData]:
        """One world as a model and its data, computed forward: to render it or to look inside.

        `model`, from an earlier call, is written into instead of a new one.
        """

    def state_dict(self) -> WorldsState:
        """Everything that a resumed run needs to continue bit for bit."""

    def load_state_dict(self, state: WorldsState) -> None:
        """Continue from `state_dict`."""
