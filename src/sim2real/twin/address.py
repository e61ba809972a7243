"""From a parameter's path to the numbers it moves.

The rule is regular: `kind/object/attribute` is the field `<prefix>_<attribute>` of MuJoCo's
model, in the rows of the objects that match. A short table adds the attributes that move several
numbers at once (a mass takes its inertia along, `kp` stands in two places), and the hardware
effects, whose numbers live beside the model. Whatever a parameter moves, it moves from the
nominal value: `quantity = a + b * value`, never from the last draw.
"""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any

import mujoco
import numpy as np
from mujoco.batch import MODEL_FIELDS

from sim2real.errors import Sim2RealError, nearest
from sim2real.params import Parameter, split_path
from sim2real.twin import effects as hardware
from sim2real.twin.events import Event, event_attributes

PREFIXES = {
    "body": ("body_",),
    "joint": ("jnt_", "dof_"),
    "geom": ("geom_",),
    "pair": ("pair_",),
    "actuator": ("actuator_",),
    "sensor": ("sensor_",),
    "camera": ("cam_",),
    "light": ("light_",),
    "material": ("mat_",),
    "site": ("site_",),
    "tendon": ("tendon_",),
    "equality": ("eq_",),
}
PSEUDO_INERTIA = "pseudo_inertia"
_SHAPED_BY_ASSETS = {
    int(kind)
    for kind in (
        mujoco.mjtGeom.mjGEOM_MESH,
        mujoco.mjtGeom.mjGEOM_HFIELD,
        mujoco.mjtGeom.mjGEOM_SDF,
    )
}
_GREY = {"diffuse", "ambient", "specular"}
_EFFECT_ONLY = {
    "actuator": {"delay", "delay_jitter", "quantum", "slew", "period", "missed"},
    "joint": {"load_friction"},
}


@dataclass(frozen=True)
class Write:
    """One number that a parameter moves.

    Its value is `gain * quantity`, or, where it only follows, the nominal times
    `(quantity / nominal quantity) ** power`.
    """

    field: str
    """Field of the model, or `effect.<group>.<attribute>` of the tables beside it."""
    index: int
    """Element of the flattened field."""
    gain: float = 1.0
    power: float | None = None
    """Set for a number that follows the quantity's ratio to its nominal."""
    owned: bool = True
    """Whether no other parameter may move it; a mere consequence (an inertia) may have several."""


@dataclass(frozen=True)
class Address:
    """What one parameter moves for one matched object."""

    parameter: str
    thing: str
    nominal: float
    """The quantity in the model as written."""
    writes: tuple[Write, ...]


@dataclass(frozen=True)
class Place:
    """A model with what stands beside it, where paths are looked up."""

    model: mujoco.MjModel
    effects: hardware.Effects
    events: dict[str, Event]


def resolve(place: Place, name: str) -> list[Address]:
    """Addresses of every object a path matches; an unknown name says what is near."""
    kind, pattern, attribute = split_path(name)
    stem, index = _split_index(attribute)
    if kind == "option":
        return [_option(place.model, name, stem, index)]
    if kind == "environment":
        return [_environment(place, name, pattern, stem)]
    if kind == "object":
        return _object(place, name, pattern, attribute)
    if kind not in PREFIXES:
        raise Sim2RealError(
            f"{name}: nothing in a model is of kind {kind!r}{nearest(kind, PREFIXES)}"
        )
    valid = [thing for thing in hardware.names(place.model, kind) if thing]
    valid = [thing for thing in valid if thing not in hardware.added_names(place.effects)]
    matched = fnmatch.filter(valid, pattern)
    if not matched:
        raise Sim2RealError(f"{name}: the model has no {kind} {pattern!r}{nearest(pattern, valid)}")
    if kind == "body" and pattern not in matched:
        # A wildcard means the bodies that have a mass, not the world and empty frames.
        matched = [body for body in matched if place.model.body(body).mass[0] > 0] or matched
    return [_thing(place, name, kind, thing, stem, index) for thing in matched]


def nominal_of(place: Place, name: str) -> float | None:
    """The nominal quantity of a path, or None where matched objects differ."""
    values = {address.nominal for address in resolve(place, name)}
    return values.pop() if len(values) == 1 else None


def quantity(parameter: Parameter, address: Address) -> tuple[float, float]:
    """(a, b) such that the quantity is `a + b * value`."""
    if parameter.operation == "scale":
        return 0.0, address.nominal
    if parameter.operation == "add":
        return address.nominal, 1.0
    return 0.0, 1.0


def known_attributes(place: Place, kind: str) -> list[str]:
    """Every attribute a parameter of this kind may name."""
    plain = {
        field[len(prefix) :]
        for prefix in PREFIXES[kind]
        for field in MODEL_FIELDS
        if field.startswith(prefix) and _array(place.model, field).dtype.kind == "f"
    }
    derived = {attribute for owner, attribute in _DERIVED if owner == kind}
    effect = {f.name for f in fields(_effect_class(kind))} if _effect_class(kind) else set()
    return sorted((plain | derived | effect) - {"delay_max", "encoder"})


def _thing(place: Place, name: str, kind: str, thing: str, stem: str, index: int | None) -> Address:
    special = _DERIVED.get((kind, stem))
    if special is not None:
        nominal, writes = special(place, name, thing, index)
        return Address(name, thing, nominal, tuple(writes))
    if stem in _EFFECT_ONLY.get(kind, ()) or (kind == "sensor" and _is_effect(kind, stem)):
        return _effect(place, name, kind, thing, stem, index)
    model = place.model
    row = getattr(model, kind)(thing).id
    for prefix in PREFIXES[kind]:
        field = prefix + stem
        if field in MODEL_FIELDS and _array(model, field).dtype.kind == "f":
            width = int(np.prod(_array(model, field).shape[1:]))
            if prefix == "dof_":
                row = int(model.jnt_dofadr[row])
                width = min([int(a) for a in model.jnt_dofadr if a > row], default=model.nv) - row
                return _plain(model, name, thing, field, row, width, index)
            if field == "actuator_ctrlrange":
                row = _controls(model, name, thing)[0]
            return _plain(model, name, thing, field, row * width, width, index)
    raise Sim2RealError(
        f"{name}: a {kind} has no {stem!r}{nearest(stem, known_attributes(place, kind))}"
    )


def _plain(
    model: mujoco.MjModel,
    name: str,
    thing: str,
    field: str,
    first: int,
    width: int,
    index: int | None,
) -> Address:
    flat = _array(model, field).reshape(-1)
    elements = [first + component for component in _components(name, width, index)]
    values = [float(flat[element]) for element in elements]
    if len(elements) == 1 or not any(values):
        return Address(name, thing, values[0], tuple(Write(field, e) for e in elements))
    # Several components moved by one number keep their ratios.
    nominal = next(value for value in values if value)
    return Address(name, thing, nominal, tuple(Write(field, e, power=1.0) for e in elements))


def _controls(model: mujoco.MjModel, name: str, thing: str) -> list[int]:
    """Controls of an actuator; one without any takes no command."""
    row = model.actuator(thing).id
    first, count = int(model.actuator_ctrladr[row]), int(model.actuator_ctrlnum[row])
    if count == 0:
        raise Sim2RealError(f"{name}: has no effect, since actuator {thing!r} takes no command")
    return list(range(first, first + count))


def _components(name: str, width: int, index: int | None) -> list[int]:
    if index is not None:
        if index >= width:
            raise Sim2RealError(f"{name}: index {index} is beyond the {width} components")
        return [index]
    return list(range(width))


def _option(model: mujoco.MjModel, name: str, stem: str, index: int | None) -> Address:
    field = f"opt.{stem}"
    if field not in MODEL_FIELDS:
        options = [f[4:] for f in MODEL_FIELDS if f.startswith("opt.")]
        raise Sim2RealError(f"{name}: the simulator has no option {stem!r}{nearest(stem, options)}")
    values = np.atleast_1d(np.asarray(getattr(model.opt, stem), dtype=float)).reshape(-1)
    if len(values) > 1 and index is None:
        raise Sim2RealError(f"{name}: has {len(values)} components; name one, as in {name}[2]")
    at = _components(name, len(values), index or 0)[0]
    return Address(name, "", float(values[at]), (Write(field, at),))


def _environment(place: Place, name: str, thing: str, stem: str) -> Address:
    event = place.events.get(thing)
    if event is None:
        raise Sim2RealError(
            f"{name}: the twin declares no event {thing!r}{nearest(thing, place.events)}"
        )
    attributes = event_attributes(event)
    if stem not in attributes:
        raise Sim2RealError(
            f"{name}: a {event.kind} event has no {stem!r}{nearest(stem, attributes)}"
        )
    column = list(place.events).index(thing)
    return Address(name, thing, attributes[stem], (Write(f"effect.environment.{stem}", column),))


def _object(place: Place, name: str, pattern: str, attribute: str) -> list[Address]:
    """A handled thing: its body's attributes, and its geoms' where the body has none."""
    model = place.model
    bodies = [body for body in hardware.names(model, "body") if body]
    matched = fnmatch.filter(bodies, pattern)
    if not matched:
        raise Sim2RealError(f"{name}: the model has no body {pattern!r}{nearest(pattern, bodies)}")
    stem, index = _split_index(attribute)
    found = []
    for body in matched:
        if stem != "size" and ((("body", stem) in _DERIVED) or f"body_{stem}" in MODEL_FIELDS):
            found.append(_thing(place, name, "body", body, stem, index))
            continue
        row = model.body(body).id
        first, count = int(model.body_geomadr[row]), int(model.body_geomnum[row])
        geoms = list(range(first, first + count))
        if stem == "size":
            found.append(_whole_size(place, name, body, geoms))
            continue
        unnamed = [geom for geom in geoms if not model.geom(geom).name]
        if unnamed:
            raise Sim2RealError(f"{name}: geom {unnamed[0]} of body {body!r} has no name; name it")
        found.extend(
            _thing(place, name, "geom", model.geom(geom).name, stem, index) for geom in geoms
        )
    return found


def _effect(
    place: Place, name: str, kind: str, thing: str, stem: str, index: int | None
) -> Address:
    """A number that lives beside the model, in the tables of hardware effects."""
    model = place.model
    tables: dict[str, Any] = {
        "actuator": place.effects.actuators,
        "sensor": place.effects.sensors,
        "joint": place.effects.joints,
    }
    cls = _effect_class(kind)
    declared = tables[kind].get(thing)
    whole = stem in ("delay", "delay_jitter", "period", "dropout", "missed")
    if whole and index is not None:
        raise Sim2RealError(f"{name}: belongs to the whole {kind}; leave the index out")
    if stem in ("delay", "delay_jitter") and (declared is None or not declared.delay_max):
        raise Sim2RealError(
            f"{name}: has no effect, since {kind} {thing!r} has no history buffer; declare"
            f" delay_max in [effects.{kind}.{thing}]"
        )
    nominal = float(getattr(declared or cls(), stem))
    row = getattr(model, kind)(thing).id
    if kind == "sensor":
        start, width = int(model.sensor_adr[row]), int(model.sensor_dim[row])
        elements = [start + c for c in _components(name, width, index)]
    elif kind == "joint":
        elements = [int(model.jnt_dofadr[row])]
    else:
        elements = _controls(model, name, thing)
    writes = tuple(Write(f"effect.{kind}.{stem}", element) for element in elements)
    return Address(name, thing, nominal, writes)


def _mass(place: Place, name: str, thing: str, index: int | None) -> tuple[float, list[Write]]:
    body = place.model.body(thing).id
    inertia = [Write("body_inertia", 3 * body + k, power=1.0, owned=False) for k in range(3)]
    return float(place.model.body_mass[body]), [Write("body_mass", body), *inertia]


def _pseudo_inertia(
    place: Place, name: str, thing: str, index: int | None
) -> tuple[float, list[Write]]:
    if index is None or index > 9:
        raise Sim2RealError(f"{name}: name one of the ten components, {PSEUDO_INERTIA}[0] to [9]")
    body = place.model.body(thing).id
    return 0.0, [Write(PSEUDO_INERTIA, 10 * body + index)]


def _friction(place: Place, name: str, thing: str, index: int | None) -> tuple[float, list[Write]]:
    """Sliding friction of a geom; torsional and rolling are friction[1] and friction[2]."""
    geom = place.model.geom(thing).id
    at = _components(name, 3, index or 0)[0]
    return float(place.model.geom_friction[geom, at]), [Write("geom_friction", 3 * geom + at)]


def _pair_friction(
    place: Place, name: str, thing: str, index: int | None
) -> tuple[float, list[Write]]:
    """Both sliding directions of a pair."""
    pair = place.model.pair(thing).id
    at = [0, 1] if index is None else _components(name, 5, index)
    return (
        float(place.model.pair_friction[pair, at[0]]),
        [Write("pair_friction", 5 * pair + k) for k in at],
    )


def _solref(field: str, component: int) -> Callable[..., tuple[float, list[Write]]]:
    def address(
        place: Place, name: str, thing: str, index: int | None
    ) -> tuple[float, list[Write]]:
        kind = field.split("_", maxsplit=1)[0]
        row = getattr(place.model, kind)(thing).id
        nominal = -float(getattr(place.model, field)[row, component])
        return nominal, [Write(field, 2 * row + component, -1.0)]

    return address


def _geom_size(place: Place, name: str, thing: str, index: int | None) -> tuple[float, list[Write]]:
    """Uniform scale of one collision shape, with its bounding volumes."""
    if index is not None:
        raise Sim2RealError(f"{name}: a geom is scaled as a whole; use geom/{thing}/size")
    return 1.0, _size_writes(place.model, name, place.model.geom(thing).id)


def _size_writes(model: mujoco.MjModel, name: str, geom: int) -> list[Write]:
    if int(model.geom_type[geom]) in _SHAPED_BY_ASSETS:
        raise Sim2RealError(f"{name}: the shape of geom {geom} comes from an asset; scale that")
    return [
        *(Write("geom_size", 3 * geom + k, power=1.0) for k in range(3)),
        Write("geom_rbound", geom, power=1.0, owned=False),
        *(Write("geom_aabb", 6 * geom + k, power=1.0, owned=False) for k in range(6)),
    ]


def _whole_size(place: Place, name: str, body: str, geoms: list[int]) -> Address:
    """Uniform scale of a whole body: shapes, sites, their places, and inertia at constant mass."""
    model = place.model
    row = model.body(body).id

    def follow(field: str, thing: int, power: float) -> list[Write]:
        return [Write(field, 3 * thing + k, power=power, owned=False) for k in range(3)]

    writes = [*follow("body_inertia", row, 2.0), *follow("body_ipos", row, 1.0)]
    for geom in geoms:
        writes += _size_writes(model, name, geom) + follow("geom_pos", geom, 1.0)
    for site in range(model.nsite):
        if model.site_bodyid[site] == row:
            writes += follow("site_pos", site, 1.0)
    return Address(name, body, 1.0, tuple(writes))


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


def _actuator(**places: list[tuple[str, int, float]]) -> Callable[..., tuple[float, list[Write]]]:
    """An attribute of the kinds of actuator that have it: (field, component, gain) each."""

    def address(
        place: Place, name: str, thing: str, index: int | None
    ) -> tuple[float, list[Write]]:
        model = place.model
        row = model.actuator(thing).id
        kind = actuator_kind(model, row)
        found = places.get(kind.replace(" ", "_"))
        if found is None:
            raise Sim2RealError(f"{name}: has no effect, since actuator {thing!r} is a {kind}")
        field, component, gain = found[0]
        nominal = float(getattr(model, field)[row, component]) / gain
        return nominal, [Write(f, row * getattr(model, f).shape[1] + c, g) for f, c, g in found]

    return address


def _force_limit(
    place: Place, name: str, thing: str, index: int | None
) -> tuple[float, list[Write]]:
    model, row = place.model, place.model.actuator(thing).id
    low, high = (float(edge) for edge in model.actuator_forcerange[row])
    if not model.actuator_forcelimited[row] or high <= 0:
        raise Sim2RealError(
            f"{name}: has no effect, since actuator {thing!r} has no forcerange to limit it"
        )
    return high, [
        Write("actuator_forcerange", 2 * row + 1),
        Write("actuator_forcerange", 2 * row, low / high),
    ]


def _gear(place: Place, name: str, thing: str, index: int | None) -> tuple[float, list[Write]]:
    row = int(place.model.actuator_outadr[place.model.actuator(thing).id])
    at = _components(name, 6, index or 0)[0]
    return float(place.model.actuator_gear[row, at]), [Write("actuator_gear", 6 * row + at)]


def _backlash(place: Place, name: str, thing: str, index: int | None) -> tuple[float, list[Write]]:
    declared = place.effects.joints.get(thing)
    if declared is None or declared.backlash <= 0:
        raise Sim2RealError(
            f"{name}: has no effect; declare a nominal backlash > 0 in [effects.joint.{thing}]"
        )
    row = place.model.joint(hardware.backlash_joint(thing)).id
    return declared.backlash, [
        Write("jnt_range", 2 * row, -0.5),
        Write("jnt_range", 2 * row + 1, 0.5),
    ]


def _actuator_backlash(
    place: Place, name: str, thing: str, index: int | None
) -> tuple[float, list[Write]]:
    """The play of the joint an actuator drives."""
    row = place.model.actuator(thing).id
    if place.model.actuator_trntype[row] != int(mujoco.mjtTrn.mjTRN_JOINT):
        raise Sim2RealError(f"{name}: actuator {thing!r} does not drive a joint")
    joint = place.model.joint(int(place.model.actuator_trnid[row, 0])).name
    return _backlash(place, name, joint, index)


def _stribeck(component: int) -> Callable[..., tuple[float, list[Write]]]:
    def address(
        place: Place, name: str, thing: str, index: int | None
    ) -> tuple[float, list[Write]]:
        declared = place.effects.joints.get(thing)
        if declared is None or declared.static_friction <= 0:
            raise Sim2RealError(
                f"{name}: has no effect; declare a nominal static_friction > 0 in"
                f" [effects.joint.{thing}]"
            )
        row = place.model.actuator(hardware.stribeck_actuator(thing)).id
        nominal = float(place.model.actuator_biasprm[row, component])
        width = place.model.actuator_biasprm.shape[1]
        return nominal, [Write("actuator_biasprm", row * width + component)]

    return address


_GAIN, _BIAS = "actuator_gainprm", "actuator_biasprm"
_KV = _actuator(
    position_servo=[(_BIAS, 2, -1.0)],
    velocity_servo=[(_GAIN, 0, 1.0), (_BIAS, 2, -1.0)],
    DC_motor=[(_GAIN, 6, 1.0)],
)
_DERIVED: dict[tuple[str, str], Callable[..., tuple[float, list[Write]]]] = {
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
    ("joint", "coulomb_friction"): _stribeck(3),
    ("joint", "static_friction"): _stribeck(4),
    ("joint", "stribeck_velocity"): _stribeck(5),
    ("actuator", "backlash"): _actuator_backlash,
    ("actuator", "gear"): _gear,
    ("actuator", "force_limit"): _force_limit,
    ("actuator", "kp"): _actuator(
        position_servo=[(_GAIN, 0, 1.0), (_BIAS, 1, -1.0)], DC_motor=[(_GAIN, 4, 1.0)]
    ),
    ("actuator", "kd"): _KV,
    ("actuator", "kv"): _KV,
    ("actuator", "ki"): _actuator(DC_motor=[(_GAIN, 5, 1.0)]),
    ("actuator", "gain"): _actuator(plain_motor=[(_GAIN, 0, 1.0)]),
    ("actuator", "resistance"): _actuator(DC_motor=[(_GAIN, 0, 1.0)]),
    ("actuator", "motorconst"): _actuator(DC_motor=[(_GAIN, 1, 1.0)]),
    ("actuator", "voltage_limit"): _actuator(DC_motor=[(_GAIN, 7, 1.0)]),
    ("actuator", "cogging"): _actuator(DC_motor=[(_BIAS, 0, 1.0)]),
}


def prepare_model(model: mujoco.MjModel, names: Iterable[str]) -> None:
    """Give the model the form that per-world values of these parameters need.

    Contact stiffness and damping need the direct form of `solref`; geoms and sites that will
    move must not be flagged as coinciding with their body's frame.
    """
    for name in names:
        kind, pattern, attribute = split_path(name)
        stem, _ = _split_index(attribute)
        geoms = _matching_geoms(model, kind, pattern)
        if stem in ("stiffness", "damping") and kind in ("geom", "pair", "object"):
            rows = (
                geoms
                if kind != "pair"
                else [
                    model.pair(n).id for n in fnmatch.filter(hardware.names(model, "pair"), pattern)
                ]
            )
            solref = model.pair_solref if kind == "pair" else model.geom_solref
            for row in rows:
                timeconst, dampratio = solref[row]
                if timeconst > 0:
                    solref[row] = -1 / (timeconst * dampratio) ** 2, -2 / timeconst
        if stem in ("pos", "quat", "size"):
            model.geom_sameframe[geoms] = 0
        if stem in ("pos", "quat", "size") and kind in ("site", "object"):
            model.site_sameframe[:] = 0


def moving_frames(model: mujoco.MjModel, names: Iterable[str]) -> list[str]:
    """Bodies whose inertial frame these parameters move within the body."""
    found = []
    for name in names:
        kind, pattern, attribute = split_path(name)
        stem, _ = _split_index(attribute)
        if kind in ("body", "object") and stem in ("ipos", "iquat", "size", PSEUDO_INERTIA):
            found += fnmatch.filter(hardware.names(model, "body"), pattern)
    return [body for body in dict.fromkeys(found) if body and body != "world"]


def _matching_geoms(model: mujoco.MjModel, kind: str, pattern: str) -> list[int]:
    if kind == "geom":
        return [model.geom(n).id for n in fnmatch.filter(hardware.names(model, "geom"), pattern)]
    if kind != "object":
        return []
    bodies = {model.body(n).id for n in fnmatch.filter(hardware.names(model, "body"), pattern)}
    return [g for g in range(model.ngeom) if int(model.geom_bodyid[g]) in bodies]


def check_operation(parameter: Parameter) -> None:
    """Refuse an operation that has no meaning for the attribute."""
    _kind, _, attribute = split_path(parameter.name)
    stem, _index = _split_index(attribute)
    if stem == "size" and parameter.operation != "scale":
        raise Sim2RealError(f"{parameter.name}: a shape is scaled; use operation = 'scale'")
    if stem == PSEUDO_INERTIA and parameter.operation != "add":
        raise Sim2RealError(f"{parameter.name}: a pseudo-inertia is perturbed; use 'add'")
    if math.isinf(parameter.nominal) and parameter.operation != "set":
        raise Sim2RealError(f"{parameter.name}: an infinite nominal can only be 'set'")


def vector_needs_index(place: Place, parameter: Parameter) -> bool:
    """Whether a plain vector is set or shifted as if it were one number."""
    kind, _, attribute = split_path(parameter.name)
    stem, index = _split_index(attribute)
    if parameter.operation == "scale" or index is not None or stem in _GREY:
        return False
    if (kind, stem) in _DERIVED or _is_effect(kind, stem) or kind in ("option", "environment"):
        return False
    return any(
        len(address.writes) > 1
        for address in resolve(place, parameter.name)
        if all(write.field.endswith(f"_{stem}") for write in address.writes)
    )


def _is_effect(kind: str, stem: str) -> bool:
    cls = _effect_class(kind)
    return cls is not None and stem in {f.name for f in fields(cls)} - {"delay_max", "encoder"}


def _effect_class(kind: str) -> Any:
    return {
        "actuator": hardware.ActuatorEffects,
        "sensor": hardware.SensorEffects,
        "joint": hardware.JointEffects,
    }.get(kind)


def _split_index(attribute: str) -> tuple[str, int | None]:
    if "[" not in attribute:
        return attribute, None
    stem, index = attribute[:-1].split("[")
    return stem, int(index)


def _array(model: mujoco.MjModel, field: str) -> np.ndarray:
    if field.startswith("opt."):
        return np.atleast_1d(np.asarray(getattr(model.opt, field[4:])))
    array: np.ndarray = getattr(model, field)
    return array
