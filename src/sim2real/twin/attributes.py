"""Attributes that move several numbers at once.

A mass takes its inertia along, `kp` is in two fields, a backlash has two ends. Each function
returns the nominal quantity and everything that moves with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import mujoco

from sim2real.errors import Sim2RealError
from sim2real.twin import effects as hardware
from sim2real.twin.compiled import Address, CompiledTwin, Write, components

PSEUDO_INERTIA = "pseudo_inertia"
_Moved = tuple[float, list[Write]]
"""The nominal quantity, and every number that moves with it."""
_Attribute = Callable[[CompiledTwin, str, str, int | None], _Moved]
"""Returns what moves with an attribute, for (twin, path, object, index)."""
_SHAPED_BY_ASSETS = {
    int(kind)
    for kind in (
        mujoco.mjtGeom.mjGEOM_MESH,
        mujoco.mjtGeom.mjGEOM_HFIELD,
        mujoco.mjtGeom.mjGEOM_SDF,
    )
}


def _mass(compiled: CompiledTwin, name: str, thing: str, index: int | None) -> _Moved:
    body = compiled.model.body(thing).id
    inertia = [Write("body_inertia", 3 * body + k, power=1.0, owned=False) for k in range(3)]
    return float(compiled.model.body_mass[body]), [Write("body_mass", body), *inertia]


def _pseudo_inertia(compiled: CompiledTwin, name: str, thing: str, index: int | None) -> _Moved:
    if index is None or index > 9:
        raise Sim2RealError(f"{name}: name one of the ten components, {PSEUDO_INERTIA}[0] to [9]")
    body = compiled.model.body(thing).id
    return 0.0, [Write(PSEUDO_INERTIA, 10 * body + index)]


def _friction(compiled: CompiledTwin, name: str, thing: str, index: int | None) -> _Moved:
    """Sliding friction of a geom; torsional and rolling are friction[1] and friction[2]."""
    geom = compiled.model.geom(thing).id
    at = components(name, 3, index or 0)[0]
    return float(compiled.model.geom_friction[geom, at]), [Write("geom_friction", 3 * geom + at)]


def _pair_friction(compiled: CompiledTwin, name: str, thing: str, index: int | None) -> _Moved:
    """Both sliding directions of a pair."""
    pair = compiled.model.pair(thing).id
    at = [0, 1] if index is None else components(name, 5, index)
    return (
        float(compiled.model.pair_friction[pair, at[0]]),
        [Write("pair_friction", 5 * pair + k) for k in at],
    )


def _solref(field: str, component: int) -> _Attribute:
    def address(compiled: CompiledTwin, name: str, thing: str, index: int | None) -> _Moved:
        kind = field.split("_", maxsplit=1)[0]
        row = getattr(compiled.model, kind)(thing).id
        nominal = -float(getattr(compiled.model, field)[row, component])
        return nominal, [Write(field, 2 * row + component, -1.0)]

    return address


def _geom_size(compiled: CompiledTwin, name: str, thing: str, index: int | None) -> _Moved:
    """Uniform scale of one collision shape, with its bounding volumes."""
    if index is not None:
        raise Sim2RealError(f"{name}: a geom is scaled as a whole; use geom/{thing}/size")
    return 1.0, _size_writes(compiled.model, name, compiled.model.geom(thing).id)


def _size_writes(model: mujoco.MjModel, name: str, geom: int) -> list[Write]:
    if int(model.geom_type[geom]) in _SHAPED_BY_ASSETS:
        raise Sim2RealError(
            f"{name}: the shape of geom {geom} comes from an asset; scale the asset"
        )
    return [
        *(Write("geom_size", 3 * geom + k, power=1.0) for k in range(3)),
        Write("geom_rbound", geom, power=1.0, owned=False),
        *(Write("geom_aabb", 6 * geom + k, power=1.0, owned=False) for k in range(6)),
    ]


def whole_size(compiled: CompiledTwin, name: str, body: str, geoms: list[int]) -> Address:
    """Uniform scale of a whole body: shapes, sites, their places, and inertia at constant mass."""
    model = compiled.model
    row = model.body(body).id

    def follow(field: str, thing: int, power: float) -> list[Write]:
        return [Write(field, 3 * thing + k, power=power, owned=False) for k in range(3)]

    writes = [*follow("body_inertia", row, 2.0), *follow("body_ipos", row, 1.0)]
    for geom in geoms:
        writes += _size_writes(model, name, geom) + follow("geom_pos", geom, 1.0)
    for site in range(model.nsite):
        if model.site_bodyid[site] == row:
            writes += follow("site_pos", site, 1.0)
    return Address(body, 1.0, tuple(writes))


def actuator_kind(model: mujoco.MjModel, row: int) -> str:
    """'position servo', 'velocity servo', 'DC motor', 'plain motor', or 'special actuator'."""
    bias, gain = int(model.actuator_biastype[row]), int(model.actuator_gaintype[row])
    prm = model.actuator_biasprm[row]
    if bias == int(mujoco.mjtBias.mjBIAS_DCMOTOR):
        return "DC motor"
    if bias == int(mujoco.mjtBias.mjBIAS_AFFINE) and gain == int(mujoco.mjtGain.mjGAIN_FIXED):
        if prm[1] < 0:
            return "position servo"
        if prm[1] == 0 and prm[2] < 0:
            return "velocity servo"
    if bias == int(mujoco.mjtBias.mjBIAS_NONE) and gain == int(mujoco.mjtGain.mjGAIN_FIXED):
        return "plain motor"
    return "special actuator"


def _actuator(**places: list[tuple[str, int, float]]) -> _Attribute:
    """An attribute of the kinds of actuator that have it: (field, component, gain) each."""

    def address(compiled: CompiledTwin, name: str, thing: str, index: int | None) -> _Moved:
        model = compiled.model
        row = model.actuator(thing).id
        kind = actuator_kind(model, row)
        found = places.get(kind.replace(" ", "_"))
        if found is None:
            raise Sim2RealError(f"{name}: has no effect, since actuator {thing!r} is a {kind}")
        field, component, gain = found[0]
        nominal = float(getattr(model, field)[row, component]) / gain
        return nominal, [Write(f, row * getattr(model, f).shape[1] + c, g) for f, c, g in found]

    return address


def _force_limit(compiled: CompiledTwin, name: str, thing: str, index: int | None) -> _Moved:
    model, row = compiled.model, compiled.model.actuator(thing).id
    low, high = (float(edge) for edge in model.actuator_forcerange[row])
    if not model.actuator_forcelimited[row] or high <= 0:
        raise Sim2RealError(
            f"{name}: has no effect, since actuator {thing!r} has no forcerange to limit it"
        )
    return high, [
        Write("actuator_forcerange", 2 * row + 1),
        Write("actuator_forcerange", 2 * row, low / high),
    ]


def _gear(compiled: CompiledTwin, name: str, thing: str, index: int | None) -> _Moved:
    row = int(compiled.model.actuator_outadr[compiled.model.actuator(thing).id])
    at = components(name, 6, index or 0)[0]
    return float(compiled.model.actuator_gear[row, at]), [Write("actuator_gear", 6 * row + at)]


def _backlash(compiled: CompiledTwin, name: str, thing: str, index: int | None) -> _Moved:
    declared = compiled.effects.joints.get(thing)
    if declared is None or declared.backlash <= 0:
        raise Sim2RealError(
            f"{name}: has no effect; declare a nominal backlash > 0 in [effects.joint.{thing}]"
        )
    row = compiled.model.joint(hardware.backlash_joint(thing)).id
    return declared.backlash, [
        Write("jnt_range", 2 * row, -0.5),
        Write("jnt_range", 2 * row + 1, 0.5),
    ]


def _actuator_backlash(compiled: CompiledTwin, name: str, thing: str, index: int | None) -> _Moved:
    """The backlash of the joint that an actuator drives."""
    row = compiled.model.actuator(thing).id
    if compiled.model.actuator_trntype[row] != int(mujoco.mjtTrn.mjTRN_JOINT):
        raise Sim2RealError(f"{name}: actuator {thing!r} does not drive a joint")
    joint = compiled.model.joint(int(compiled.model.actuator_trnid[row, 0])).name
    return _backlash(compiled, name, joint, index)


def _stribeck(component: int) -> _Attribute:
    def address(compiled: CompiledTwin, name: str, thing: str, index: int | None) -> _Moved:
        declared = compiled.effects.joints.get(thing)
        if declared is None or declared.static_friction <= 0:
            raise Sim2RealError(
                f"{name}: has no effect; declare a nominal static_friction > 0 in"
                f" [effects.joint.{thing}]"
            )
        row = compiled.model.actuator(hardware.stribeck_actuator(thing)).id
        nominal = float(compiled.model.actuator_biasprm[row, component])
        width = compiled.model.actuator_biasprm.shape[1]
        return nominal, [Write("actuator_biasprm", row * width + component)]

    return address


def _springref(compiled: CompiledTwin, name: str, thing: str, index: int | None) -> _Moved:
    """Where the spring of a hinge or slide is at rest."""
    model, row = compiled.model, compiled.model.joint(thing).id
    if mujoco.mjtJoint(int(model.jnt_type[row])) not in (
        mujoco.mjtJoint.mjJNT_HINGE,
        mujoco.mjtJoint.mjJNT_SLIDE,
    ):
        raise Sim2RealError(f"{name}: joint {thing!r} is not a hinge or a slide")
    at = int(model.jnt_qposadr[row])
    return float(model.qpos_spring[at]), [Write("qpos_spring", at)]


_GAIN, _BIAS = "actuator_gainprm", "actuator_biasprm"
_TORQUE_KP = _actuator(
    position_servo=[(_GAIN, 0, 1.0), (_BIAS, 1, -1.0)], DC_motor=[(_GAIN, 4, 1.0)]
)
_TORQUE_KV = _actuator(
    position_servo=[(_BIAS, 2, -1.0)],
    velocity_servo=[(_GAIN, 0, 1.0), (_BIAS, 2, -1.0)],
    DC_motor=[(_GAIN, 6, 1.0)],
)


def _sets_voltage(compiled: CompiledTwin, thing: str) -> bool:
    """Whether an actuator is a servo whose firmware sets a voltage."""
    declared = compiled.effects.actuators.get(thing)
    return declared is not None and declared.drive == "voltage"


def _kp(compiled: CompiledTwin, name: str, thing: str, index: int | None) -> _Moved:
    """Gain of a servo: torque, or volts where its firmware sets a voltage."""
    nominal, writes = _TORQUE_KP(compiled, name, thing, index)
    if not _sets_voltage(compiled, thing):
        return nominal, writes
    resistance, motorconst = compiled.model.actuator_gainprm[compiled.model.actuator(thing).id, :2]
    torque = float(motorconst / resistance)
    return nominal / torque, [replace(write, gain=torque * write.gain) for write in writes]


def _kv(compiled: CompiledTwin, name: str, thing: str, index: int | None) -> _Moved:
    if _sets_voltage(compiled, thing):
        raise Sim2RealError(
            f"{name}: a servo that sets a voltage is braked by its back-EMF; use motorconst, or the"
            " damping of the joint"
        )
    return _TORQUE_KV(compiled, name, thing, index)


def _motor(component: int, kp_power: float, kv_power: float) -> _Attribute:
    """A constant of a DC motor; the effect of a voltage and the braking follow it."""
    plain = _actuator(DC_motor=[(_GAIN, component, 1.0)])

    def address(compiled: CompiledTwin, name: str, thing: str, index: int | None) -> _Moved:
        nominal, writes = plain(compiled, name, thing, index)
        if _sets_voltage(compiled, thing):
            first = writes[0].index - component
            writes += [
                Write(_GAIN, first + 4, power=kp_power, owned=False),
                Write(_GAIN, first + 6, power=kv_power, owned=False),
            ]
        return nominal, writes

    return address


def _remainder(compiled: CompiledTwin, name: str, thing: str, index: int | None) -> _Moved:
    """One weight of the learned force on a joint."""
    found = compiled.remainder
    if found is None or thing not in found.names:
        raise Sim2RealError(f"{name}: joint {thing!r} has no learned remainder")
    if index is None:
        raise Sim2RealError(f"{name}: name one of the {found.count} weights, as in {name}[0]")
    row, at = found.names.index(thing), components(name, found.count, index)[0]
    write = Write("effect.remainder.weight", row * found.count + at)
    return found.joints[row].weights[at], [write]


DERIVED: dict[tuple[str, str], _Attribute] = {
    ("body", "mass"): _mass,
    ("body", PSEUDO_INERTIA): _pseudo_inertia,
    ("geom", "friction"): _friction,
    ("geom", "size"): _geom_size,
    ("geom", "stiffness"): _solref("geom_solref", 0),
    ("geom", "damping"): _solref("geom_solref", 1),
    ("pair", "friction"): _pair_friction,
    ("pair", "stiffness"): _solref("pair_solref", 0),
    ("pair", "damping"): _solref("pair_solref", 1),
    ("joint", "backlash"): _backlash,
    ("joint", "remainder"): _remainder,
    ("joint", "springref"): _springref,
    ("joint", "coulomb_friction"): _stribeck(3),
    ("joint", "static_friction"): _stribeck(4),
    ("joint", "stribeck_velocity"): _stribeck(5),
    ("actuator", "backlash"): _actuator_backlash,
    ("actuator", "gear"): _gear,
    ("actuator", "force_limit"): _force_limit,
    ("actuator", "kp"): _kp,
    ("actuator", "kd"): _kv,
    ("actuator", "kv"): _kv,
    ("actuator", "ki"): _actuator(DC_motor=[(_GAIN, 5, 1.0)]),
    ("actuator", "gain"): _actuator(plain_motor=[(_GAIN, 0, 1.0)]),
    ("actuator", "resistance"): _motor(0, -1.0, -1.0),
    ("actuator", "motorconst"): _motor(1, 1.0, 2.0),
    ("actuator", "voltage_limit"): _actuator(DC_motor=[(_GAIN, 7, 1.0)]),
    ("actuator", "cogging"): _actuator(DC_motor=[(_BIAS, 0, 1.0)]),
}
