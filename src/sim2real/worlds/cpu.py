"""Worlds on the CPU: `mujoco.batch.Batch` with per-world parameters.

One call per control period advances every world on a pool of threads; there is no Python loop over
worlds or over physics steps. Results are bit-identical at any number of threads.
"""

from __future__ import annotations

import fnmatch
import math
import warnings
from collections.abc import Callable, Mapping

import mujoco
import numpy as np
import torch
from mujoco.batch import Batch, SimulationError
from numpy.typing import NDArray
from torch import Tensor

from sim2real.arrays import Array
from sim2real.errors import Sim2RealError
from sim2real.twin import Applier, Effects, Event, Remainder, Twin
from sim2real.worlds.delays import DelayGroup
from sim2real.worlds.hardware import CommandModel, EffectTables, FrictionModel, SensorModel
from sim2real.worlds.protocol import WorldsState
from sim2real.worlds.remainder import RemainderForce

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


class CpuWorlds:
    """`Worlds` on this machine's processor cores."""

    def __init__(
        self,
        twin: Twin,
        *,
        count: int,
        period_s: float,
        seed: int = 0,
        threads: int = 0,
        switches: bool = False,
        remainder: bool = False,
    ) -> None:
        """`count` worlds of the twin; `threads` 0 takes every core.

        With `switches`, commands of nan switch actuators off. With `remainder` the twin's learned
        remainder acts; a twin without one is a `Sim2RealError`.
        """
        self.twin = twin
        self.count = count
        self.device = torch.device("cpu")
        self.period_s = period_s
        self.tick = 0
        self.diverged = 0
        """Worlds that have diverged since the start."""
        self.features: Tensor | None = None
        """(worlds, joints, features) the remainder saw in the last period, where it acts."""
        self.memory: dict[str, Tensor] = {}
        compiled = twin.compile()
        self.model = compiled.model
        self.events: Mapping[str, Event] = compiled.events
        self._batch = Batch(self.model, count, threads)
        self._everyone = torch.arange(count)
        self._fields: dict[str, Tensor] = {}
        self._derived: dict[str, Tensor] = {}
        self._applier = Applier(compiled, twin.parameters)
        self.tables = EffectTables(compiled, twin.parameters, count=count, device=self.device)
        nominal = torch.tensor([p.nominal for p in twin.parameters], dtype=torch.float64)
        self.values = nominal.repeat(count, 1)
        self._substeps = torch.full((count,), _substeps(period_s, self.model.opt.timestep))
        self._varied_steps = "opt.timestep" in self._applier.fields
        self._limited = _check_delays(twin, compiled.effects)
        self._model_hardware(seed)
        # Weights that are parameters would move nothing without it.
        remainder |= "effect.remainder.weight" in self._applier.fields
        self._remainder: RemainderForce | None = None
        if remainder:
            self._remainder = self._force_of(compiled.remainder)
        self._open_states()
        self._gear: Tensor | None = None
        """Gears of the actuators when switched on; None if none can be switched off."""
        if switches:
            self._gear = self.field("actuator_gear").clone()
            self._control_of_gear = _controls_of_gears(self.model)
        self.set_parameters(self.values.clone(), self._everyone)
        self.reset(self._everyone)
        self.begin(self._everyone)

    def _model_hardware(self, seed: int) -> None:
        """Models of commands, sensors, delays and friction, for the effects that are live."""
        self._commands = CommandModel(
            self.tables, self._everyone, self.model.nu, seed=seed, period_s=self.period_s
        )
        widths = torch.from_numpy(self.model.sensor_dim).long()
        self._sensors = SensorModel(
            self.tables, self._everyone, widths, seed=seed, period_s=self.period_s
        )
        self.measured = self._sensors.last
        self._command_delays, self._sensor_delays = (
            DelayGroup(kind, self.model, self.tables, self._live, worlds=self._everyone, seed=seed)
            for kind in ("actuator", "sensor")
        )
        self.friction = FrictionModel(self.tables, self.model, self.count)

    def _force_of(self, remainder: Remainder | None) -> RemainderForce:
        if remainder is None:
            raise Sim2RealError(
                f"twin {self.twin.name!r} has no remainder: `sim2real identify --remainder` learns"
                " one"
            )
        return RemainderForce(
            self.model, remainder, self.tables, count=self.count, period_s=self.period_s
        )

    def _open_states(self) -> None:
        """Take hold of the engine's states, and find the stage at which a start is complete."""
        stage_acc = int(mujoco.mjtStage.mjSTAGE_ACC)
        accelerations = (self.model.sensor_needstage == stage_acc).any()
        self._start_stage = stage_acc if accelerations else int(mujoco.mjtStage.mjSTAGE_VEL)
        self._batch.reset(stage=int(mujoco.mjtStage.mjSTAGE_NONE))
        self._rows_of_state = torch.from_numpy(self._batch.state)
        self._first_row = self._rows_of_state[0].clone()
        self.derived("sensordata")
        if self.friction.loaded or self._remainder is not None:
            self.derived("qfrc_actuator")

    def state(self, name: str) -> Tensor:
        """The live (worlds, ...) tensor of a state field: qpos, qvel, ctrl, mocap_pos, …"""
        if name not in self._fields:
            self._fields[name] = _alias(self._batch.bind(name))
        return self._fields[name]

    def derived(self, name: str) -> Tensor:
        """The (worlds, ...) tensor of a computed field, refreshed by every call. Read only."""
        if name not in self._derived:
            self._derived[name] = _alias(self._batch.bind(name))
            if name not in _BEFORE_ACCELERATIONS:
                # Without it, a start would leave another world's value there.
                self._start_stage = int(mujoco.mjtStage.mjSTAGE_ACC)
        return self._derived[name]

    def field(self, name: str) -> Tensor:
        """The live (worlds, elements) tensor of a model field or an effect table."""
        if name.startswith("effect."):
            return self.tables[name[len("effect.") :]]
        if name not in self._fields:
            values = self._batch.expand(name)
            self._fields[name] = _alias(values.reshape(self.count, -1))
        return self._fields[name]

    def ids(self, mask: Tensor) -> Tensor:
        """Indices of the worlds where a (worlds,) mask holds."""
        return mask.nonzero().squeeze(-1)

    def set_parameters(self, values: Tensor, ids: Tensor) -> None:
        """Give worlds `ids` (n,) the parameter values (n, parameters), from their next start."""
        if values.shape != (len(ids), len(self.twin.parameters)):
            raise Sim2RealError(
                f"values of shape {tuple(values.shape)} do not fit {len(ids)} worlds and"
                f" {len(self.twin.parameters)} parameters"
            )
        for column, name, longest in self._limited:
            if len(ids) and float(values[:, column].max()) > longest + 1e-12:
                raise Sim2RealError(
                    f"{name} = {float(values[:, column].max()):g} s is beyond the"
                    f" {longest:g} s its history buffer holds; raise delay_max"
                )
        self.values[ids] = values
        self._applier(values, ids, self._target)
        if self._varied_steps:
            step = self.field("opt.timestep")
            shortest = self.twin.shortest_step(self.model.opt.timestep)
            if len(ids) and float(step[ids].min()) < shortest * (1 - 1e-9):
                raise Sim2RealError(
                    f"option/timestep = {float(step[ids].min()):g} s is below the {shortest:g} s of"
                    " its prior, for which the delay buffers are made"
                )
            self._substeps[ids] = torch.round(self.period_s / step[ids, 0]).long().clamp(min=1)
            step[ids, 0] = self.period_s / self._substeps[ids].double()

    def reset(self, ids: Tensor) -> None:
        """Put worlds `ids` into the model's initial state; the task then writes its own."""
        if len(ids) == 0:
            return
        rows = self._rows(ids)
        if self._applier.needs_constants:
            self._guarded(lambda: self._batch.set_const(rows))
        if self._varied_steps:
            self._batch.reset(rows, stage=int(mujoco.mjtStage.mjSTAGE_NONE))
        else:
            # A world is its row of state, and every first row is the same: copying it is much
            # cheaper than a reset of the engine's whole data.
            self._rows_of_state[ids] = self._first_row

    def begin(self, ids: Tensor) -> None:
        """Start worlds `ids` from the state now written: derived fields, histories, readings."""
        if len(ids) == 0:
            return
        self._sensor_delays.suspend(ids)
        if self._gear is not None:
            self.field("actuator_gear")[ids] = self._gear[ids]
        command = self.state("ctrl")[ids]
        if self._start_stage == int(mujoco.mjtStage.mjSTAGE_ACC):
            # Forces are computed from the buffers, which must hold the command by then.
            self._command_delays.begin(ids, command)
        self._set_friction(ids, load=None)
        self._guarded(lambda: self._batch.forward(self._rows(ids), self._start_stage))
        quantities = self.derived("sensordata")[ids]
        # The forward pass may have noted the present in a buffer: the past goes in after it.
        self._command_delays.begin(ids, command)
        self._sensor_delays.begin(ids, quantities)
        self._commands.begin(ids, command)
        if self._remainder is not None:
            self._remainder.begin(ids, command)
        self._sensors.begin(ids, quantities, self.tick)

    def step(self, command: Tensor) -> Tensor:
        """Advance one control period; the (worlds,) mask of those that diverged.

        With `switches`, an actuator whose command is nan is switched off for the period.
        """
        self.tick += 1
        off = torch.isnan(command) if self._gear is not None else None
        if off is not None and self._gear is not None:
            command = self._switched(command, off, self._gear)
        self.state("ctrl").copy_(self._commands(command, self.tick))
        self._command_delays.jitter(self.tick)
        self._sensor_delays.jitter(self.tick)
        # Friction follows the force that the gear carried in the last physics step.
        load = self.derived("qfrc_actuator") if self.friction.loaded else None
        self._set_friction(slice(None), load=load)
        if self._remainder is not None:
            self._push_joints(self._remainder, off)
        broken = self._advance()
        self._sensors(self.derived("sensordata"), self.tick)
        return broken

    def world(
        self, index: int, *, model: mujoco.MjModel | None = None
    ) -> tuple[mujoco.MjModel, mujoco.MjData]:
        """One world as a model and its data, computed forward: to render it or to look inside.

        `model`, from an earlier call, is written into instead of a new one.
        """
        model, data = self._batch.get_model(index, model), self._batch.get_data(index)
        mujoco.mj_forward(model, data)
        return model, data

    def state_dict(self) -> WorldsState:
        """Everything that a resumed run needs to continue bit for bit."""
        return {
            "tick": self.tick,
            "diverged": self.diverged,
            "values": self.values.clone(),
            "state": torch.from_numpy(self._batch.state.copy()),
            "derived": {name: tensor.clone() for name, tensor in self._derived.items()},
            "memory": {name: tensor.clone() for name, tensor in self.memory.items()},
            "held": {name: tensor.clone() for name, tensor in self._held().items()},
        }

    def load_state_dict(self, state: WorldsState) -> None:
        """Continue from `state_dict`."""
        if state["state"].shape != self._batch.state.shape:
            raise Sim2RealError(
                "the saved state belongs to another model or another number of worlds"
            )
        self.tick, self.diverged = int(state["tick"]), int(state["diverged"])
        self.set_parameters(state["values"], self._everyone)
        if self._applier.needs_constants:
            self._batch.set_const()
        self._batch.state[:] = state["state"].numpy()
        for name, tensor in state["derived"].items():
            self.derived(name).copy_(tensor)
        for name, tensor in state["memory"].items():
            # In place where it exists: tasks may hold on to their tensors.
            if name in self.memory:
                self.memory[name].copy_(tensor)
            else:
                self.memory[name] = tensor.clone()
        for name, tensor in self._held().items():
            tensor.copy_(state["held"][name])
        for delays in (self._command_delays, self._sensor_delays):
            delays.restore(self._everyone)

    def _held(self) -> dict[str, Tensor]:
        """Live tensors that the models of hardware remember from period to period."""
        held = {} if self._remainder is None else {"past_commands": self._remainder.past}
        if self._commands.accelerates:
            held["command_speed"] = self._commands.speed
            held["command_unchanged"] = self._commands.unchanged
        return held | {
            "command": self._commands.last,
            "command_target": self._commands.target,
            "command_wait": self._commands.waited,
            "drift": self._sensors.drift,
            "reading": self._sensors.last,
            "reading_wait": self._sensors.waited,
        }

    def _guarded(self, call: Callable[[], None]) -> None:
        """Run a call of the engine; a world it cannot start is the parameters' fault."""
        try:
            call()
        except SimulationError as error:
            world = int(error.ids[0])
            values = ", ".join(
                f"{parameter.name} = {float(value):.4g}"
                for parameter, value in zip(self.twin.parameters, self.values[world], strict=True)
            )
            raise Sim2RealError(f"a world cannot start ({error}) with {values}") from None

    def _rows(self, ids: Tensor) -> NDArray[np.int32] | None:
        return None if len(ids) == self.count else ids.numpy().astype(np.int32)

    def _advance(self) -> Tensor:
        broken = torch.zeros(self.count, dtype=torch.bool)
        counts = torch.unique(self._substeps) if self._varied_steps else self._substeps[:1]
        for substeps in counts.tolist():
            rows = np.flatnonzero(self._substeps == substeps) if len(counts) > 1 else None
            try:
                self._batch.step(rows, nstep=substeps)
            except SimulationError as error:
                broken[torch.from_numpy(error.ids.astype(np.int64))] = True
        warning = self._batch.warning[:, :, 1]
        if warning.any():
            broken |= torch.from_numpy(warning.any(axis=1))
            self._batch.warning[:] = 0
        self.diverged += int(broken.sum())
        return broken

    def _set_friction(self, ids: Tensor | slice, *, load: Tensor | None) -> None:
        """Write friction as it is at the present speeds and at `load` (n, degrees of freedom)."""
        for field in self.friction.leans:
            velocity = self.state("qvel")[ids]
            self.field(field)[ids] = self.friction(field, velocity, load, ids)

    def _push_joints(self, remainder: RemainderForce, off: Tensor | None) -> None:
        """Write the period's learned forces, from the true state and the command as it acts."""
        remainder.note(self.state("ctrl"))
        self.features = remainder.features(
            self.state("qpos"), self.state("qvel"), self.derived("qfrc_actuator"), off
        )
        self.state("qfrc_applied")[:, remainder.dofs] = remainder(self.features)

    def _switched(self, command: Tensor, off: Tensor, gear: Tensor) -> Tensor:
        """Let go of joints that are `off`; their devices keep the command they have."""
        # An actuator with zero gear neither drives nor brakes its joint.
        holds = torch.cat([~off, torch.ones(self.count, 1, dtype=torch.bool)], dim=1)
        self.field("actuator_gear").copy_(gear * holds[:, self._control_of_gear])
        return torch.where(off, self.state("ctrl").to(command.dtype), command)

    def _live(self, name: str) -> Tensor:
        return self.state(name) if name == "history" else self.field(name)

    def _target(self, name: str) -> Tensor:
        """Where a parameter's values go: friction that changes has a table of nominal values."""
        if name == "actuator_gear" and self._gear is not None:
            return self._gear
        found = self.friction.nominal.get(name)
        return self.field(name) if found is None else found


def _controls_of_gears(model: mujoco.MjModel) -> Tensor:
    """Which control drives through each number of the gears; the one past the end for none."""
    found = torch.full((model.actuator_gear.size,), model.nu, dtype=torch.long)
    width = model.actuator_gear.shape[1]
    for row in range(model.nactuator):
        if model.actuator_ctrlnum[row]:
            first = width * int(model.actuator_outadr[row])
            last = first + width * int(model.actuator_outnum[row])
            found[first:last] = int(model.actuator_ctrladr[row])
    return found


def _check_delays(twin: Twin, effects: Effects) -> list[tuple[int, str, float]]:
    """(column, name, longest) of delay parameters, whose priors must fit their buffers."""
    found = []
    for column, parameter in enumerate(twin.parameters):
        if not parameter.name.endswith("/delay"):
            continue
        kind, pattern, _ = parameter.name.split("/")
        tables = effects.actuators if kind == "actuator" else effects.sensors
        for name in fnmatch.filter(tables, pattern):
            most = tables[name].delay_max - tables[name].delay_jitter
            longest = {
                "scale": most / (tables[name].delay or math.inf),
                "add": most - tables[name].delay,
            }.get(parameter.operation, most)
            reach = parameter.prior.support[1]
            if math.isfinite(reach) and reach > longest + 1e-12:
                raise Sim2RealError(
                    f"{parameter.name}: its prior reaches {reach:g}, but delay_max minus jitter of"
                    f" {kind} {name!r} is {most:g} s"
                )
            found.append((column, parameter.name, longest))
    return found


def _substeps(period_s: float, timestep_s: float) -> int:
    count = round(period_s / timestep_s)
    if count < 1 or abs(count * timestep_s - period_s) > 1e-9:
        raise Sim2RealError(
            f"a control period of {period_s:g} s is not a whole number of time steps of"
            f" {timestep_s:g} s"
        )
    return count


def _alias(array: Array) -> Tensor:
    """A tensor over the array's memory, also where the array is marked read-only."""
    # A first use inside inference mode must not make a tensor that only works there.
    with warnings.catch_warnings(), torch.inference_mode(False):
        warnings.simplefilter("ignore", UserWarning)
        return torch.from_numpy(array)
