"""A twin's worlds on any engine: what stands between a policy and the physics.

The models of commands, sensors, delays and friction, the parameters, the remainder and what is
remembered from period to period are the same whatever advances the worlds; a `Physics` does that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import mujoco
import torch
from torch import Tensor

from sim2real.errors import Sim2RealError
from sim2real.twin import Applier, CompiledTwin, Event, Twin
from sim2real.worlds.delay_limits import DelayLimits
from sim2real.worlds.delays import DelayGroup
from sim2real.worlds.engine import PhysicsOf, WorldsFailedError, WorldsRequest
from sim2real.worlds.hardware import CommandModel, EffectTables, FrictionModel, SensorModel
from sim2real.worlds.protocol import WorldsState
from sim2real.worlds.remainder import RemainderForce


class TwinWorlds:
    """`Worlds` around the physics of an engine."""

    def __init__(self, twin: Twin, request: WorldsRequest, physics_of: PhysicsOf) -> None:
        """Worlds as requested; what their engine cannot do is a `Sim2RealError`."""
        self.twin = twin
        self.count = request.count
        self.period_s = request.period_s
        self.tick = 0
        self.features: Tensor | None = None
        self.memory: dict[str, Tensor] = {}
        compiled = twin.compile()
        self.model = compiled.model
        self.events: Mapping[str, Event] = compiled.events
        substeps = _substeps(request.period_s, self.model.opt.timestep)
        self._physics = physics_of(self.model, request)
        self.abilities = self._physics.abilities
        self.abilities.check_twin(twin, compiled)
        self.device = self._physics.device
        self._everyone = torch.arange(self.count, device=self.device)
        self._derived: dict[str, Tensor] = {}
        self._broken = torch.zeros((), dtype=torch.int64, device=self.device)
        self._applier = Applier(compiled, twin.parameters, device=self.device)
        self.tables = EffectTables(compiled, twin.parameters, count=self.count, device=self.device)
        nominal = [parameter.nominal for parameter in twin.parameters]
        row = torch.tensor(nominal, dtype=torch.float64, device=self.device)
        self.values = row.repeat(self.count, 1)
        self._substeps = torch.full((self.count,), substeps)
        self._varied_steps = "opt.timestep" in self._applier.fields
        self._delay_limits = DelayLimits(twin, compiled.effects)
        self._model_hardware(request.seed)
        # Weights that are parameters would move nothing without it.
        remainder = request.remainder or "effect.remainder.weight" in self._applier.fields
        self._remainder = self._force_of(compiled) if remainder else None
        self.derived("sensordata")
        if self.friction.loaded or self._remainder is not None:
            self.derived("qfrc_actuator")
        self._gear: Tensor | None = None
        """Gears of the actuators when switched on; None if none can be switched off."""
        if request.switches:
            self._gear = self.field("actuator_gear").clone()
            self._control_of_gear = _controls_of_gears(self.model).to(self.device)
        self.set_parameters(self.values.clone(), self._everyone)
        self.reset(self._everyone)
        self.begin(self._everyone)

    def _model_hardware(self, seed: int) -> None:
        """Models of commands, sensors, delays and friction, for the effects that are live."""
        self._commands = CommandModel(
            self.tables, self._everyone, self.model.nu, seed=seed, period_s=self.period_s
        )
        widths = torch.from_numpy(self.model.sensor_dim).long().to(self.device)
        self._sensors = SensorModel(
            self.tables, self._everyone, widths, seed=seed, period_s=self.period_s
        )
        self.measured = self._sensors.last
        self._command_delays, self._sensor_delays = (
            DelayGroup(kind, self.model, self.tables, self._live, worlds=self._everyone, seed=seed)
            for kind in ("actuator", "sensor")
        )
        self.friction = FrictionModel(self.tables, self.model, self.count)

    def _force_of(self, compiled: CompiledTwin) -> RemainderForce:
        if compiled.remainder is None:
            raise Sim2RealError(
                f"twin {self.twin.name!r} has no remainder: `sim2real identify --remainder` learns"
                " one"
            )
        return RemainderForce(
            self.model, compiled.remainder, self.tables, count=self.count, period_s=self.period_s
        )

    @property
    def diverged(self) -> int:
        """Worlds that have diverged since the start."""
        return int(self._broken)

    def state(self, name: str) -> Tensor:
        """The live (worlds, ...) tensor of a state field: qpos, qvel, ctrl, mocap_pos, …"""
        return self._physics.state(name)

    def derived(self, name: str) -> Tensor:
        """The (worlds, ...) tensor of a computed field, refreshed by every call. Read only."""
        if name not in self._derived:
            self._derived[name] = self._physics.derived(name)
        return self._derived[name]

    def field(self, name: str) -> Tensor:
        """The live (worlds, elements) tensor of a model field or an effect table."""
        if name.startswith("effect."):
            return self.tables[name[len("effect.") :]]
        return self._physics.field(name)

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
        self._delay_limits.check(values)
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
        if self._applier.needs_constants:
            self._guarded(lambda: self._physics.set_constants(ids))
        self._physics.reset(ids)

    def begin(self, ids: Tensor) -> None:
        """Start worlds `ids` from the state now written: derived fields, histories, readings."""
        if len(ids) == 0:
            return
        self._sensor_delays.suspend(ids)
        if self._gear is not None:
            self.field("actuator_gear")[ids] = self._gear[ids]
        command = self.state("ctrl")[ids]
        if self._physics.forces_at_start:
            # Forces are computed from the buffers, which must hold the command by then.
            self._command_delays.begin(ids, command)
        self._set_friction(ids, load=None)
        self._guarded(lambda: self._physics.forward(ids))
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
        broken = self._physics.advance(self._substeps)
        self._broken += broken.sum()
        self._sensors(self.derived("sensordata"), self.tick)
        return broken

    def world(
        self, index: int, *, model: mujoco.MjModel | None = None
    ) -> tuple[mujoco.MjModel, mujoco.MjData]:
        """One world as a model and its data, computed forward: to render it or to look inside.

        `model`, from an earlier call, is written into instead of a new one.
        """
        return self._physics.world(index, model)

    def state_dict(self) -> WorldsState:
        """Everything that a resumed run needs to continue bit for bit."""
        return {
            "tick": self.tick,
            "diverged": self.diverged,
            "values": self.values.clone(),
            "state": self._physics.snapshot(),
            "derived": {name: tensor.clone() for name, tensor in self._derived.items()},
            "memory": {name: tensor.clone() for name, tensor in self.memory.items()},
            "held": {name: tensor.clone() for name, tensor in self._held().items()},
        }

    def load_state_dict(self, state: WorldsState) -> None:
        """Continue from `state_dict`."""
        if state["state"].shape != self._physics.snapshot().shape:
            raise Sim2RealError(
                "the saved state belongs to another model or another number of worlds"
            )
        self.tick = int(state["tick"])
        self._broken.fill_(int(state["diverged"]))
        self.set_parameters(state["values"].to(self.device), self._everyone)
        if self._applier.needs_constants:
            self._guarded(lambda: self._physics.set_constants(self._everyone))
        self._physics.restore(state["state"])
        for name, tensor in state["derived"].items():
            self.derived(name).copy_(tensor)
        for name, tensor in state["memory"].items():
            # In place where it exists: tasks may hold on to their tensors.
            if name in self.memory:
                self.memory[name].copy_(tensor)
            else:
                self.memory[name] = tensor.to(self.device, copy=True)
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
        except WorldsFailedError as error:
            values = ", ".join(
                f"{parameter.name} = {float(value):.4g}"
                for parameter, value in zip(
                    self.twin.parameters, self.values[error.world], strict=True
                )
            )
            raise Sim2RealError(f"a world cannot start ({error}) with {values}") from None

    def _set_friction(self, ids: Tensor | slice, *, load: Tensor | None) -> None:
        """Write friction as it is at the present speeds and at `load` (n, degrees of freedom)."""
        for name in self.friction.leans:
            field, velocity = self.field(name), self.state("qvel")[ids]
            field[ids] = self.friction(name, velocity, load, ids).to(field.dtype)

    def _push_joints(self, remainder: RemainderForce, off: Tensor | None) -> None:
        """Write the period's learned forces, from the true state and the command as it acts."""
        remainder.note(self.state("ctrl"))
        load = self.derived("qfrc_actuator")
        self.features = remainder.features(
            self.state("qpos"), self.state("qvel"), load.double(), off
        )
        self.state("qfrc_applied")[:, remainder.dofs] = remainder(self.features)

    def _switched(self, command: Tensor, off: Tensor, gear: Tensor) -> Tensor:
        """Let go of joints that are `off`; their devices keep the command they have."""
        # An actuator with zero gear neither drives nor brakes its joint.
        always = torch.ones(self.count, 1, dtype=torch.bool, device=self.device)
        holds = torch.cat([~off, always], dim=1)
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


def _substeps(period_s: float, timestep_s: float) -> int:
    count = round(period_s / timestep_s)
    if count < 1 or abs(count * timestep_s - period_s) > 1e-9:
        raise Sim2RealError(
            f"a control period of {period_s:g} s is not a whole number of time steps of"
            f" {timestep_s:g} s"
        )
    return count
