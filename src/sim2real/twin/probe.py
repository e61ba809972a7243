"""Finding parameters that do nothing.

A parameter without an effect easily costs a week: a mass of a body that cannot move, a friction
that a rougher partner overrules, a limit that is switched off. Each parameter is moved through its
range in a few simulated motions; one that leaves every number bit for bit the same is an error.
Contacts may not happen in such short motions, so contact parameters are judged by the model's
collision rules, and visual ones (lights, cameras, colours) by whether there is anything to see.
"""

from __future__ import annotations

import math

import mujoco
import numpy as np
import torch
from mujoco.batch import Batch, SimulationError

from sim2real.arrays import Floats
from sim2real.errors import Sim2RealError
from sim2real.params import Dimension, Parameter, split_path
from sim2real.twin.address import quantity, resolve
from sim2real.twin.apply import Applier
from sim2real.twin.compiled import Address, CompiledTwin
from sim2real.twin.twin import Twin

_START_STATES = 6
_STEPS = 40
"""Physics steps of each motion."""
_VISUAL_KINDS = ("light", "camera", "material", "site")


def check_effects(twin: Twin) -> None:
    """Raise `Sim2RealError` for the first parameter of the twin that moves nothing."""
    compiled = twin.compile()
    Applier(compiled, twin.parameters)
    moved = []
    for parameter in twin.parameters:
        kind, _, _attribute = split_path(parameter.name)
        addresses = resolve(compiled, parameter.name)
        writes = [write for address in addresses for write in address.writes]
        if parameter.operation == "scale" and not any(address.nominal for address in addresses):
            raise Sim2RealError(
                f"{parameter.name}: has no effect, since it scales a nominal value of zero"
            )
        if all(write.field.startswith("effect.") for write in writes):
            continue  # effect tables act by construction
        if kind in _VISUAL_KINDS or parameter.dimension == Dimension.VISUAL:
            _check_seen(compiled, parameter)
        elif all(w.field.startswith(("geom_", "pair_")) for w in writes):
            _check_contact(compiled, parameter)
        else:
            moved.append(parameter)
    idle = idle_parameters(compiled, moved)
    if idle:
        raise Sim2RealError(f"{idle[0]}: has no effect on the model's motion or sensors")


def idle_parameters(compiled: CompiledTwin, parameters: list[Parameter]) -> list[str]:
    """Names of those parameters whose whole range leaves every simulated number unchanged."""
    if not parameters:
        return []
    ends = [_ends(parameter) for parameter in parameters]
    variants = 1 + 2 * len(parameters)
    values = torch.tensor([[p.nominal for p in parameters]] * variants, dtype=torch.float64)
    for k, (low, high) in enumerate(ends):
        values[1 + 2 * k, k], values[2 + 2 * k, k] = low, high
    values = values.repeat_interleave(_START_STATES, dim=0)
    model = compiled.model
    batch = Batch(model, len(values), 1)
    applier = Applier(compiled, parameters)
    applier(values, torch.arange(len(values)), lambda field: _field(batch, field))
    batch.reset(stage=int(mujoco.mjtStage.mjSTAGE_NONE))
    try:
        if applier.needs_constants:
            batch.set_const()
        record = _motions(model, batch, variants)
    except SimulationError:
        return []  # a range that breaks the simulation does have an effect
    same = (record == record[:, :1]).all(axis=(0, 2))
    return [
        parameter.name
        for k, parameter in enumerate(parameters)
        if same[1 + 2 * k] and same[2 + 2 * k]
    ]


def _motions(model: mujoco.MjModel, batch: Batch, variants: int) -> Floats:
    """(states, variants, numbers) of each variant, from the same starts and commands."""
    rng = np.random.default_rng(0)
    qpos = np.tile(model.qpos0, (_START_STATES, 1))
    for joint in range(model.njnt):
        at = model.jnt_qposadr[joint]
        if model.jnt_type[joint] >= int(mujoco.mjtJoint.mjJNT_SLIDE):
            low, high = model.jnt_range[joint] if model.jnt_limited[joint] else (-1.0, 1.0)
            # Reach past the limits, so that their stiffness shows too.
            qpos[:, at] = rng.uniform(
                low - 0.02 * (high - low), high + 0.02 * (high - low), _START_STATES
            )
    batch.bind("qpos")[:] = np.tile(qpos, (variants, 1))
    batch.bind("qvel")[:] = np.tile(rng.normal(0, 2.0, (_START_STATES, model.nv)), (variants, 1))
    outputs = [batch.bind(name) for name in ("sensordata", "qfrc_actuator", "xpos")]
    numbers = []
    for _ in range(4):
        reach = np.where(model.actuator_ctrllimited[:, None], model.actuator_ctrlrange, [-1.0, 1.0])
        ctrl = rng.uniform(reach[:, 0], reach[:, 1], (_START_STATES, model.nu))
        batch.bind("ctrl")[:] = np.tile(ctrl, (variants, 1))
        batch.step(nstep=_STEPS // 4)
        parts = [batch.bind("qpos"), batch.bind("qvel"), *outputs]
        numbers.append(np.concatenate([p.reshape(len(p), -1) for p in parts], axis=1))
    record = np.concatenate(numbers, axis=1).reshape(variants, _START_STATES, -1)
    numbers_first: Floats = np.nan_to_num(record).transpose(1, 0, 2)
    return numbers_first


def _ends(parameter: Parameter) -> tuple[float, float]:
    """Two values to try: the ends of the prior, or of the bounds, or near the nominal."""
    found = []
    for bound, p in zip(parameter.bounds, (0.01, 0.99), strict=True):
        at = float(parameter.prior.quantiles(p))
        if at == parameter.nominal and math.isfinite(bound):
            at = bound
        if at == parameter.nominal:
            shift = 0.1 * abs(parameter.nominal) or 0.1
            at = parameter.nominal + (shift if p > 0.5 else -shift)
        found.append(min(max(at, parameter.bounds[0]), parameter.bounds[1]))
    return found[0], found[1]


def _field(batch: Batch, name: str) -> torch.Tensor:
    if name.startswith("effect."):
        return torch.zeros(batch.nsim, 4096, dtype=torch.float64)
    return torch.from_numpy(batch.expand(name).reshape(batch.nsim, -1))


def _check_contact(compiled: CompiledTwin, parameter: Parameter) -> None:
    model = compiled.model
    for address in resolve(compiled, parameter.name):
        field, index = address.writes[0].field, address.writes[0].index
        if field.startswith("pair_"):
            continue
        geom = index // int(np.prod(getattr(model, field).shape[1:]) or 1)
        name = model.geom(geom).name
        partners = _partners(model, geom)
        if not partners:
            raise Sim2RealError(
                f"{parameter.name}: has no effect, since geom {name!r} collides with nothing"
            )
        if field == "geom_friction":
            _check_friction(model, parameter, address, partners)


def _check_friction(
    model: mujoco.MjModel, parameter: Parameter, address: Address, partners: list[int]
) -> None:
    geom, component = divmod(address.writes[0].index, 3)
    offset, slope = quantity(parameter, address)
    highest = offset + slope * _ends(parameter)[1]
    rank = model.geom_priority
    for partner in partners:
        if rank[geom] > rank[partner]:
            return
        if rank[geom] == rank[partner] and highest > model.geom_friction[partner, component]:
            return
    rival = model.geom(partners[0])
    raise Sim2RealError(
        f"{parameter.name}: has no effect, since MuJoCo takes the larger friction of two geoms"
        f" (or that of the higher priority) and {rival.name!r} has {rival.friction[component]:g};"
        f" raise the priority of {model.geom(geom).name!r} or use a pair"
    )


def _partners(model: mujoco.MjModel, geom: int) -> list[int]:
    """Geoms that the collision rules let touch this one."""
    body = model.geom_bodyid[geom]
    weld = model.body_weldid[body]
    found = []
    excluded = {int(signature) for signature in model.exclude_signature}
    for other in range(model.ngeom):
        first, second = sorted((int(body), int(model.geom_bodyid[other])))
        if (first << 16) + second in excluded:
            continue
        if model.body_weldid[model.geom_bodyid[other]] == weld:
            continue
        if (model.geom_contype[geom] & model.geom_conaffinity[other]) or (
            model.geom_contype[other] & model.geom_conaffinity[geom]
        ):
            found.append(other)
    return found


def _check_seen(compiled: CompiledTwin, parameter: Parameter) -> None:
    model = compiled.model
    kind, _, _ = split_path(parameter.name)
    for address in resolve(compiled, parameter.name):
        if kind == "light" and not model.light(address.thing).active[0]:
            raise Sim2RealError(f"{parameter.name}: has no effect, since the light is off")
        if kind == "material" and not (model.geom_matid == model.material(address.thing).id).any():
            raise Sim2RealError(f"{parameter.name}: has no effect, since no geom uses it")
