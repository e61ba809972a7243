"""Worlds on the CPU: `mujoco.batch.Batch` with per-world parameters.

One call per control period advances every world on a pool of threads; there is no Python loop over
worlds or over physics steps. Results are bit-identical at any number of threads.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import mujoco
import numpy as np
import torch
from mujoco.batch import Batch, SimulationError
from numpy.typing import NDArray
from torch import Tensor

from sim2real.arrays import Array
from sim2real.worlds.abilities import EngineAbilities
from sim2real.worlds.engine import Engine, WorldsFailedError, WorldsRequest
from sim2real.worlds.twin_worlds import TwinWorlds

_BEFORE_ACCELERATIONS = frozenset(
    [
        "sensordata",
        "xpos",
        "xquat",
        "xmat",
        "xipos",
        "xiquat",
        "ximat",
        "xanchor",
        "xaxis",
        "geom_xpos",
        "geom_xmat",
        "geom_xquat",
        "site_xpos",
        "site_xmat",
        "site_xquat",
        "cam_xpos",
        "cam_xmat",
        "light_xpos",
        "light_xdir",
        "subtree_com",
        "cdof",
        "cinert",
        "ten_length",
        "ten_velocity",
        "actuator_length",
        "actuator_velocity",
        "cvel",
        "qfrc_bias",
        "qfrc_passive",
        "qfrc_spring",
        "qfrc_damper",
        "qfrc_gravcomp",
        "ncon",
        "energy",
    ]
)
"""Derived fields that MuJoCo computes before accelerations."""
_ACC = int(mujoco.mjtStage.mjSTAGE_ACC)
_VEL = int(mujoco.mjtStage.mjSTAGE_VEL)


class BatchPhysics:
    """`Physics` on this machine's processor cores; tensors are views of the batch's memory."""

    def __init__(self, model: mujoco.MjModel, request: WorldsRequest) -> None:
        self.device = torch.device("cpu")
        self.abilities = CPU.abilities
        self._count = request.count
        self._batch = Batch(model, request.count, request.threads)
        self._fields: dict[str, Tensor] = {}
        self._start_stage = _ACC if (model.sensor_needstage == _ACC).any() else _VEL
        """The stage at which a start is complete."""
        self._batch.reset(stage=int(mujoco.mjtStage.mjSTAGE_NONE))
        self._rows_of_state = torch.from_numpy(self._batch.state)
        self._first_row = self._rows_of_state[0].clone()

    @property
    def forces_at_start(self) -> bool:
        """Whether `forward` computes forces, or stops once velocities are known."""
        return self._start_stage == _ACC

    def state(self, name: str) -> Tensor:
        """The live (worlds, ...) tensor of a state field."""
        if name not in self._fields:
            self._fields[name] = _alias(self._bound(name))
        return self._fields[name]

    def derived(self, name: str) -> Tensor:
        """The live (worlds, ...) tensor of a computed field."""
        if name not in _BEFORE_ACCELERATIONS:
            # Without it, a start would leave another world's value there.
            self._start_stage = _ACC
        return _alias(self._bound(name))

    def field(self, name: str) -> Tensor:
        """The live (worlds, elements) tensor of a model field."""
        if name not in self._fields:
            values = self._batch.expand(name)
            self._fields[name] = _alias(values.reshape(self._count, -1))
        return self._fields[name]

    def set_constants(self, ids: Tensor) -> None:
        """Compute anew what follows from the fields of the model."""
        self._guarded(lambda: self._batch.set_const(self._rows(ids)))

    def reset(self, ids: Tensor) -> None:
        """Put worlds into the model's initial state."""
        if "opt.timestep" in self._fields:
            self._batch.reset(self._rows(ids), stage=int(mujoco.mjtStage.mjSTAGE_NONE))
        else:
            # A world is its row of state, and every first row is the same: copying it is much
            # cheaper than a reset of the engine's whole data.
            self._rows_of_state[ids] = self._first_row

    def forward(self, ids: Tensor) -> None:
        """Compute derived fields from the states."""
        self._guarded(lambda: self._batch.forward(self._rows(ids), self._start_stage))

    def advance(self, steps: Tensor) -> Tensor:
        """Do (worlds,) physics steps; the (worlds,) mask of those that broke down."""
        broken = torch.zeros(self._count, dtype=torch.bool)
        counts = torch.unique(steps) if "opt.timestep" in self._fields else steps[:1]
        for substeps in counts.tolist():
            rows = np.flatnonzero(steps == substeps) if len(counts) > 1 else None
            try:
                self._batch.step(rows, nstep=substeps)
            except SimulationError as error:
                broken[torch.from_numpy(error.ids.astype(np.int64))] = True
        warning = self._batch.warning[:, :, 1]
        if warning.any():
            broken |= torch.from_numpy(warning.any(axis=1))
            self._batch.warning[:] = 0
        return broken

    def world(
        self, index: int, model: mujoco.MjModel | None
    ) -> tuple[mujoco.MjModel, mujoco.MjData]:
        """One world computed forward, written into `model` where there is one."""
        model, data = self._batch.get_model(index, model), self._batch.get_data(index)
        mujoco.mj_forward(model, data)
        return model, data

    def snapshot(self) -> Tensor:
        """(worlds, numbers) a copy of the states."""
        return torch.from_numpy(self._batch.state.copy())

    def restore(self, rows: Tensor) -> None:
        """Continue from a snapshot."""
        self._batch.state[:] = rows.numpy()

    def _bound(self, name: str) -> Array:
        bound: Array = self._batch.bind(name)
        return bound

    def _guarded(self, call: Callable[[], None]) -> None:
        try:
            call()
        except SimulationError as error:
            raise WorldsFailedError(int(error.ids[0]), str(error)) from None

    def _rows(self, ids: Tensor) -> NDArray[np.int32] | None:
        return None if len(ids) == self._count else ids.numpy().astype(np.int32)


CPU = Engine(
    abilities=EngineAbilities(
        engine="cpu",
        simulator="mujoco",
        version=mujoco.__version__,
        bit_identical=True,
        switches=True,
        remainder=True,
        delays=True,
        varied_timestep=True,
    ),
    open=lambda twin, request: TwinWorlds(twin, request, BatchPhysics),
)


def _alias(array: Array) -> Tensor:
    """A tensor over the array's memory, also where the array is marked read-only."""
    # A first use inside inference mode must not make a tensor that only works there.
    with warnings.catch_warnings(), torch.inference_mode(False):
        warnings.simplefilter("ignore", UserWarning)
        return torch.from_numpy(array)
