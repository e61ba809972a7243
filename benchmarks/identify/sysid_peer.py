"""The same identification as `mujoco.sysid` does it: its specs, its residual, its optimiser.

Both sides get the same model, parameters, bounds, start and recording, which plain MuJoCo makes.
`mujoco.sysid` recompiles a spec for every parameter vector and shoots the whole recording from a
known first state; its own code gives the cost of either side's answer.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import mujoco
import mujoco.rollout
import numpy as np

from sim2real.logs.control_log import ControlLog
from sim2real.params import Parameter, Uniform
from sim2real.twin import Twin, twin_contract


class Given(Protocol):
    """A parameter as `mujoco.sysid` gives it to a modifier."""

    value: np.ndarray


Modifier = Callable[[mujoco.MjSpec, Given], None]
OPTIMIZERS = ("mujoco", "scipy_parallel_fd")
"""Its default, and the one that takes its finite differences in parallel too."""


@dataclass(frozen=True, kw_only=True)
class Shared:
    """What both sides are given."""

    twin: Twin
    """Has no effect but noise and delays, and flat priors as wide as the bounds."""
    truth: np.ndarray
    """(parameters,) planted values."""
    log: ControlLog
    control: np.ndarray
    """(time steps, commands) as plain MuJoCo was driven."""
    first: np.ndarray
    """Full physics state the recording begins from."""


def prepared(twin: Twin, names: tuple[str, ...]) -> Twin:
    """The twin with these parameters only, free within their bounds, without chance or rounding."""
    kept = {"actuator": ("delay", "delay_max"), "sensor": ("noise",)}
    effects = {
        group: {
            pattern: {key: value for key, value in table.items() if key in kept.get(group, ())}
            for pattern, table in tables.items()
        }
        for group, tables in twin.effects.items()
    }
    bare = replace(twin, effects=effects, events={}, parameters=())
    model = bare.compile().model
    return replace(bare, parameters=tuple(_free(twin, model, name) for name in names))


def _free(twin: Twin, model: mujoco.MjModel, name: str) -> Parameter:
    """A parameter that may be anything within its bounds: half to twice where there are none."""
    declared = {p.name: p for p in twin.parameters}.get(name)
    if declared is not None and declared.operation == "set":
        low, high = declared.bounds
        return replace(declared, prior=Uniform(low=low, high=high))
    kind, thing, attribute = name.split("/")
    if kind == "joint":
        dof = int(model.jnt_dofadr[model.joint(thing).id])
        nominal = float(getattr(model, f"dof_{attribute}")[dof])
    else:
        nominal = float(model.actuator_gainprm[model.actuator(thing).id, _DCMOTOR_KP])
    low, high = 0.5 * nominal, 2.0 * nominal
    data = {"bounds": [low, high], "prior": {"kind": "uniform", "low": low, "high": high}}
    return Parameter.of_table(name, data, nominal=nominal)


_DCMOTOR_KP = 4
"""Place of a servo's gain among the numbers of a DC motor."""


def spec_of(twin: Twin) -> mujoco.MjSpec:
    """The twin's spec with its effects, and with inertias that a modifier can write."""
    spec, model = twin.spec(), twin.compile().model
    for name in {p.name.split("/")[1] for p in twin.parameters if p.name.startswith("body/")}:
        body, row = spec.body(name), model.body(name).id
        body.explicitinertial = True
        body.mass, body.ipos = float(model.body_mass[row]), model.body_ipos[row].copy()
        body.inertia, body.iquat = model.body_inertia[row].copy(), model.body_iquat[row].copy()
    return spec


def modifier(name: str, spec: mujoco.MjSpec) -> Modifier:
    """How a parameter is written into a spec, as a user of `mujoco.sysid` would."""
    kind, thing, attribute = name.split("/")
    if kind == "body" and attribute == "mass":
        nominal = spec.body(thing)
        ratio = np.array(nominal.inertia) / float(nominal.mass)

        def mass(changed: mujoco.MjSpec, parameter: Given) -> None:
            body = changed.body(thing)
            body.mass = parameter.value[0]
            body.inertia = ratio * parameter.value[0]

        return mass

    def write(changed: mujoco.MjSpec, parameter: Given) -> None:
        value = float(parameter.value[0])
        if kind == "body":
            place = np.array(changed.body(thing).ipos)
            place[int(attribute[-2])] = value
            changed.body(thing).ipos = place
        elif kind == "joint" and attribute == "damping":
            changed.joint(thing).damping[0] = value
        elif kind == "joint":
            setattr(changed.joint(thing), attribute, value)
        elif attribute == "delay":
            changed.actuator(thing).delay = value
        else:
            number = {"kp": _DCMOTOR_KP, "gain": 0}[attribute]
            changed.actuator(thing).gainprm[number] = value

    return write


class SysidPeer:
    """`mujoco.sysid` on what both sides share."""

    def __init__(self, shared: Shared, *, threads: int) -> None:
        from mujoco import sysid

        self._shared = shared
        spec = spec_of(shared.twin)
        model = spec.compile()
        log = shared.log
        steps = len(shared.control)
        times = np.arange(steps + 1) * model.opt.timestep
        held = np.concatenate([shared.control, shared.control[-1:]])
        sequences = sysid.ModelSequences(
            shared.twin.name,
            spec,
            "recording",
            shared.first,
            sysid.TimeSeries(times, held),
            sysid.TimeSeries.from_names(log.times[1:], log.readings[1:], model),
        )
        self._residual = sysid.build_residual_fn(models_sequences=[sequences], n_threads=threads)
        self.parameters = sysid.ParameterDict()
        for p in shared.twin.parameters:
            low, high = p.bounds
            self.parameters.add(
                sysid.Parameter(p.name, p.nominal, low, high, modifier=modifier(p.name, spec))
            )

    def fit(self, optimizer: str) -> np.ndarray:
        """(parameters,) what one of its optimisers finds, from the nominal values."""
        from mujoco import sysid

        begin = self.parameters.copy().move_off_bounds()
        with contextlib.redirect_stdout(io.StringIO()):
            # The scale is its own advice for parameters of different sizes.
            found, _ = sysid.optimize(
                begin, self._residual, optimizer=optimizer, verbose=False, x_scale="jac"
            )
        return np.array(found.as_vector())

    def cost(self, values: np.ndarray) -> float:
        """Half the sum of its squared residuals at (parameters,)."""
        residuals, _, _ = self._residual(values, self.parameters.copy())
        return 0.5 * float(np.square(np.concatenate(residuals)).sum())


def shared_recording(
    twin: Twin,
    truth: np.ndarray,
    command: np.ndarray,
    *,
    rate_hz: float,
    seed: int = 0,
) -> Shared:
    """A recording by plain MuJoCo under commands (periods, commands), with the sensors' noise."""
    from mujoco import sysid

    spec = spec_of(twin)
    for parameter, value in zip(twin.parameters, truth, strict=True):
        found = sysid.Parameter(parameter.name, value, *parameter.bounds)
        modifier(parameter.name, spec)(spec, found)
    model = spec.compile()
    data = mujoco.MjData(model)
    first = sysid.create_initial_state(model, data.qpos, data.qvel, data.act)
    substeps = round(1.0 / rate_hz / model.opt.timestep)
    control = np.repeat(command, substeps, axis=0)
    _, sensed = mujoco.rollout.rollout(model, data, first, control)
    mujoco.mj_resetData(model, data)
    mujoco.mj_forward(model, data)
    clean = np.concatenate([data.sensordata[None], sensed[0][substeps - 1 :: substeps]])
    contract = twin_contract(twin, rate_hz)
    effects = twin.compile().effects.sensors
    noise = np.array([effects[spec_.name].noise for spec_ in contract.sensors])
    rng = np.random.default_rng(seed)
    log = ControlLog(
        contract=contract,
        episode=f"plain-{seed}",
        times=np.arange(len(clean)) / rate_hz,
        readings=clean + noise * rng.normal(size=clean.shape),
        fresh=np.ones((len(clean), len(contract.sensors)), dtype=bool),
        command=np.concatenate([command, command[-1:]]),
    )
    return Shared(twin=twin, truth=truth, log=log, control=control, first=first)
