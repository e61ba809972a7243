"""Hardware effects that act once per control period, on tensors of the worlds' device.

The command model stands between the policy and the actuators, the sensor model between the
simulated quantities and what the robot's computer reads. Effects whose nominal value is neutral
and which no parameter moves cost nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields

import mujoco
import torch
from torch import Tensor

from sim2real.params import Key, Parameter
from sim2real.twin import (
    EFFECTS,
    CompiledTwin,
    Effect,
    Effects,
    elements,
    event_attributes,
    resolve,
)
from sim2real.worlds.noise import NoiseStream
from sim2real.worlds.trapezoid_profile import towards

_ASYMMETRY = {"dof_frictionloss": "friction_asymmetry", "dof_damping": "damping_asymmetry"}
"""Fields of the model that depend on the direction of motion, and the effect that says how."""

_BY_LOAD = ("load_friction", "load_friction_quadratic")


class EffectTables:
    """Per-world values of every effect that lives beside the model: (worlds, things) each."""

    def __init__(
        self,
        compiled: CompiledTwin,
        parameters: Iterable[Parameter],
        *,
        count: int,
        device: torch.device,
    ) -> None:
        self._device = device
        self._count = count
        model, effects = compiled.model, compiled.effects
        self._tables: dict[str, Tensor] = {}
        self._live: set[str] = set()
        widths = {"actuator": model.nu, "sensor": model.nsensordata, "joint": model.nv}
        for kind, width in widths.items():
            self._add(kind, _spread(model, effects, kind), width)
        for column, event in enumerate(compiled.events.values()):
            for name, value in event_attributes(event).items():
                key = f"environment.{name}"
                table = self._tables.setdefault(key, self._empty(len(compiled.events), 0.0))
                table[:, column] = value
                self._live.add(key)
        if compiled.remainder is not None:
            weights = [weight for joint in compiled.remainder.joints for weight in joint.weights]
            self._tables["remainder.weight"] = self._empty(len(weights), 0.0)
            self._tables["remainder.weight"] += torch.tensor(weights, device=device)
        for parameter in parameters:
            for address in resolve(compiled, parameter.name):
                self._live.update(
                    w.field[len("effect.") :] for w in address.writes if w.field.startswith("eff")
                )

    def __getitem__(self, key: str) -> Tensor:
        return self._tables[key]

    def live(self, key: str) -> bool:
        """Whether the effect differs from neutral in any world, now or by a parameter."""
        return key in self._live

    def _add(self, kind: str, declared: Mapping[int, Effect], width: int) -> None:
        neutral = EFFECTS[kind]()
        for field in fields(neutral):
            default = getattr(neutral, field.name)
            if isinstance(default, str):
                continue
            key = f"{kind}.{field.name}"
            table = self._tables[key] = self._empty(width, default)
            for element, effects in declared.items():
                table[:, element] = getattr(effects, field.name)
                if getattr(effects, field.name) != default:
                    self._live.add(key)

    def _empty(self, width: int, value: float) -> Tensor:
        return torch.full((self._count, width), value, dtype=torch.float32, device=self._device)


def _spread(model: mujoco.MjModel, effects: Effects, kind: str) -> dict[int, Effect]:
    """Declared effects of a kind by element: control, sensor number or degree of freedom."""
    return {
        element: declared
        for name, declared in effects.of(kind).items()
        for element in elements(model, kind, getattr(model, kind)(name).id)
    }


class CommandModel:
    """How a device carries out commands: loss, hold, slew, acceleration and resolution."""

    def __init__(
        self, tables: EffectTables, worlds: Tensor, width: int, *, seed: int, period_s: float
    ) -> None:
        self._tables = tables
        self._period_s = period_s
        self._lost = NoiseStream(Key.of(seed, "actuator/missed"), worlds=worlds, channels=width)
        self._waits = tables.live("actuator.period")
        self._loses = tables.live("actuator.missed")
        self._slews = tables.live("actuator.slew")
        self.accelerates = tables.live("actuator.acceleration")
        """Whether any device goes to its command with limited acceleration."""
        self._rounds = tables.live("actuator.quantum")
        shape = (len(worlds), width)
        self.target = torch.zeros(shape, dtype=torch.float32, device=worlds.device)
        """The command each device took last."""
        self.last = torch.zeros(shape, dtype=torch.float32, device=worlds.device)
        """Where each device is on its way to that, at its slew rate."""
        self.speed = torch.zeros(shape, dtype=torch.float32, device=worlds.device)
        """Its speed on the way, if its acceleration is limited [control units/s]."""
        self.unchanged = torch.zeros(shape, dtype=torch.float32, device=worlds.device)
        """How long its command has not changed, if its acceleration is limited [s]."""
        self.waited = torch.zeros(shape, dtype=torch.float32, device=worlds.device)
        """Time since each device took a command [s]."""

    def __call__(self, command: Tensor, tick: int) -> Tensor:
        """The command as the devices carry it out, (worlds, controls)."""
        moves = self._slews or self.accelerates
        if not (self._waits or self._loses or self._rounds or moves):
            return command
        tables, taken = self._tables, command.float()
        if self._rounds:
            taken = _rounded(taken, tables["actuator.quantum"])
        if self._waits:
            due = _due(self.waited, tables["actuator.period"], self._period_s)
            taken = torch.where(due, taken, self.target)
        if self._loses:
            lost = self._lost.at(tick) < tables["actuator.missed"]
            taken = torch.where(lost, self.target, taken)
        if self.accelerates:
            return self._on_the_way(taken)
        self.target.copy_(taken)
        if self._slews:
            reach = tables["actuator.slew"] * self._period_s
            taken = torch.clamp(taken, self.last - reach, self.last + reach)
        self.last.copy_(taken)
        return taken

    def _on_the_way(self, goal: Tensor) -> Tensor:
        """Where devices with limited acceleration are in the middle of the period."""
        tables, half_s = self._tables, 0.5 * self._period_s
        self.unchanged.copy_(torch.where(goal == self.target, self.unchanged + self._period_s, 0.0))
        self.target.copy_(goal)
        acceleration, top = tables["actuator.acceleration"], tables["actuator.slew"]
        limited = self.unchanged < tables["actuator.settle"] - half_s
        acceleration = torch.where(limited, acceleration, torch.inf)
        limits = {"acceleration": acceleration, "top": top}
        middle, speed = towards(self.last, self.speed, goal, after_s=half_s, **limits)
        place, speed = towards(middle, speed, goal, after_s=half_s, **limits)
        self.last.copy_(place)
        self.speed.copy_(speed)
        return torch.where(torch.isinf(acceleration), place, middle)

    def begin(self, ids: Tensor, command: Tensor) -> None:
        """Start worlds `ids` with their devices holding `command` (n, controls)."""
        self.target[ids] = command.float()
        self.last[ids] = command.float()
        self.speed[ids] = 0.0
        self.unchanged[ids] = 0.0
        # The first command is taken at once.
        self.waited[ids] = self._tables["actuator.period"][ids] - self._period_s


class SensorModel:
    """What a computer reads of a quantity: with noise, bias, scale, resolution, hold and loss."""

    def __init__(
        self, tables: EffectTables, worlds: Tensor, widths: Tensor, *, seed: int, period_s: float
    ) -> None:
        """`widths` (sensors,) are the numbers of each sensor's reading."""
        width = int(widths.sum())
        self._tables = tables
        self._period_s = period_s
        self._white = NoiseStream(
            Key.of(seed, "sensor/noise"), worlds=worlds, channels=width, gaussian=True
        )
        self._wander = NoiseStream(
            Key.of(seed, "sensor/walk"), worlds=worlds, channels=width, gaussian=True
        )
        # A sensor loses its reading as a whole, all numbers of it.
        self._sensor = torch.arange(len(widths), device=worlds.device).repeat_interleave(widths)
        self._lost = NoiseStream(
            Key.of(seed, "sensor/dropout"), worlds=worlds, channels=max(1, len(widths))
        )
        live = {
            name: tables.live(f"sensor.{name}")
            for name in ("noise", "bias", "walk", "scale", "quantum", "period", "dropout")
        }
        self._live = live
        self._holds = live["period"] or live["dropout"]
        shape = (len(worlds), width)
        self.drift = torch.zeros(shape, dtype=torch.float32, device=worlds.device)
        """The random walk of each bias [sensor units]."""
        self.last = torch.zeros(shape, dtype=torch.float32, device=worlds.device)
        """The reading each sensor shows."""
        self.waited = torch.zeros(shape, dtype=torch.float32, device=worlds.device)
        """Time since each sensor's last new reading [s]."""

    def __call__(self, quantity: Tensor, tick: int) -> Tensor:
        """Readings of true quantities (worlds, numbers), float32; kept in `last`."""
        tables, live = self._tables, self._live
        if live["walk"]:
            step = tables["sensor.walk"] * math.sqrt(self._period_s)
            self.drift += step * self._wander.at(tick)
        reading = self._distort(quantity.float(), self.drift, slice(None))
        if live["noise"]:
            reading = torch.addcmul(reading, tables["sensor.noise"], self._white.at(tick))
        if live["quantum"]:
            reading = _rounded(reading, tables["sensor.quantum"])
        if self._holds:
            if live["period"]:
                fresh = _due(self.waited, tables["sensor.period"], self._period_s)
                reading = torch.where(fresh, reading, self.last)
            if live["dropout"]:
                lost = self._lost.at(tick)[:, self._sensor] < tables["sensor.dropout"]
                reading = torch.where(lost, self.last, reading)
        self.last.copy_(reading)
        return self.last

    def begin(self, ids: Tensor, quantity: Tensor, tick: int) -> None:
        """Start worlds `ids` at true quantities (n, numbers): a fresh reading, no drift yet."""
        self.drift[ids] = 0.0
        self.waited[ids] = 0.0
        reading = self._distort(quantity.float(), self.drift[ids], ids)
        if self._live["noise"]:
            reading = reading + self._tables["sensor.noise"][ids] * self._white.at(tick)[ids]
        if self._live["quantum"]:
            reading = _rounded(reading, self._tables["sensor.quantum"][ids])
        self.last[ids] = reading

    def _distort(self, value: Tensor, drift: Tensor, rows: Tensor | slice) -> Tensor:
        if self._live["scale"]:
            value = value * self._tables["sensor.scale"][rows]
        if self._live["bias"]:
            value = value + self._tables["sensor.bias"][rows]
        if self._live["walk"]:
            value = value + drift
        return value


class FrictionModel:
    """Joint friction that follows the load and the direction of motion."""

    def __init__(self, tables: EffectTables, model: mujoco.MjModel, count: int) -> None:
        self._tables = tables
        self.loaded = any(tables.live(f"joint.{name}") for name in _BY_LOAD)
        """Whether friction follows the load."""
        self.leans = {
            field
            for field, share in _ASYMMETRY.items()
            if tables.live(f"joint.{share}") or (self.loaded and field == "dof_frictionloss")
        }
        """Fields of the model that are written here; parameters go to `nominal` instead."""
        device = tables["joint.friction_asymmetry"].device
        self.nominal = {
            field: torch.from_numpy(getattr(model, field)).repeat(count, 1).to(device)
            for field in self.leans
        }
        """(worlds, degrees of freedom) values of these fields at rest and without load."""

    def __call__(
        self, field: str, velocity: Tensor, load: Tensor | None, ids: Tensor | slice
    ) -> Tensor:
        """(n, degrees of freedom) what a field is at velocities and loads of worlds `ids`."""
        value = self.nominal[field][ids]
        if load is not None and field == "dof_frictionloss":
            linear, quadratic = (self._tables[f"joint.{name}"][ids] for name in _BY_LOAD)
            value = value + (linear + quadratic * load.abs()) * load.abs()
        return value * (1.0 + self._tables[f"joint.{_ASYMMETRY[field]}"][ids] * velocity.sign())


def _due(waited: Tensor, period: Tensor, tick_s: float) -> Tensor:
    """Whether a device's own period is over, counting on in `waited`; the mean rate is exact."""
    waited += tick_s
    due = waited >= period - 0.5 * tick_s
    waited.copy_(torch.where(due, (waited - period).clamp(-tick_s, tick_s), waited))
    return due


def _rounded(value: Tensor, quantum: Tensor) -> Tensor:
    safe = torch.where(quantum > 0, quantum, 1.0)
    return torch.where(quantum > 0, torch.round(value / safe) * safe, value)
