"""From a parameter's path to the numbers it moves.

The rule is regular: `kind/object/attribute` is the field `<prefix>_<attribute>` of MuJoCo's
model, in the rows of the objects that match. A short table adds the attributes that move several
numbers at once (a mass takes its inertia along, `kp` is in two fields), and the hardware
effects, whose numbers live beside the model. Whatever a parameter moves, it moves from the
nominal value: `quantity = a + b * value`, never from the last draw.
"""

from __future__ import annotations

import fnmatch
import math
from dataclasses import fields

import mujoco
import numpy as np
from mujoco.batch import MODEL_FIELDS

from sim2real.errors import Sim2RealError, nearest
from sim2real.params import Parameter, split_path
from sim2real.twin.attributes import DERIVED, PSEUDO_INERTIA, whole_size
from sim2real.twin.compiled import Address, CompiledTwin, Write, components, split_index
from sim2real.twin.effects import EFFECTS, added_names
from sim2real.twin.events import event_attributes
from sim2real.twin.objects import KINDS, elements, names

_GREY_COLOURS = {"diffuse", "ambient", "specular"}
"""Colours whose three components one number may set."""
_FIXED_FIELDS = {"delay_max", "encoder", "drive"}
"""Fields of effects that no parameter can move."""


def resolve(compiled: CompiledTwin, name: str) -> list[Address]:
    """Addresses of every object a path matches; an unknown name is a `Sim2RealError` with hints."""
    kind, pattern, attribute = split_path(name)
    stem, index = split_index(attribute)
    if kind == "option":
        return [_option(compiled.model, name, stem, index)]
    if kind == "environment":
        return [_environment(compiled, name, pattern, stem)]
    if kind == "object":
        return _object(compiled, name, pattern, attribute)
    if kind not in KINDS:
        raise Sim2RealError(f"{name}: a model has no kind of object {kind!r}{nearest(kind, KINDS)}")
    added = {"", *added_names(compiled.effects)}
    valid = [thing for thing in names(compiled.model, kind) if thing not in added]
    matched = fnmatch.filter(valid, pattern)
    if not matched:
        raise Sim2RealError(f"{name}: the model has no {kind} {pattern!r}{nearest(pattern, valid)}")
    if kind == "body" and pattern not in matched:
        # A wildcard means the bodies that have a mass, not the world and empty frames.
        matched = [body for body in matched if compiled.model.body(body).mass[0] > 0] or matched
    return [_thing(compiled, name, kind, thing, stem, index) for thing in matched]


def nominal_of(compiled: CompiledTwin, name: str) -> float | None:
    """The nominal quantity of a path, or None where matched objects differ."""
    values = {address.nominal for address in resolve(compiled, name)}
    return values.pop() if len(values) == 1 else None


def quantity(parameter: Parameter, address: Address) -> tuple[float, float]:
    """(a, b) such that the quantity is `a + b * value`."""
    if parameter.operation == "scale":
        return 0.0, address.nominal
    if parameter.operation == "add":
        return address.nominal, 1.0
    return 0.0, 1.0


def known_attributes(compiled: CompiledTwin, kind: str) -> list[str]:
    """Every attribute a parameter of this kind may name."""
    plain = {
        field[len(prefix) :]
        for prefix in _prefixes(kind)
        for field in MODEL_FIELDS
        if field.startswith(prefix) and getattr(compiled.model, field).dtype.kind == "f"
    }
    derived = {attribute for owner, attribute in DERIVED if owner == kind}
    return sorted((plain | derived | _effects_of(kind)) - _FIXED_FIELDS)


def _thing(
    compiled: CompiledTwin, name: str, kind: str, thing: str, stem: str, index: int | None
) -> Address:
    special = DERIVED.get((kind, stem))
    if special is not None:
        nominal, writes = special(compiled, name, thing, index)
        return Address(thing, nominal, tuple(writes))
    if stem in _effects_of(kind):
        return _effect(compiled, name, kind, thing, stem, index)
    model = compiled.model
    row = getattr(model, kind)(thing).id
    for prefix in _prefixes(kind):
        field = prefix + stem
        if field in MODEL_FIELDS and getattr(model, field).dtype.kind == "f":
            width = int(np.prod(getattr(model, field).shape[1:]))
            if prefix == "dof_":
                row = int(model.jnt_dofadr[row])
                width = min([int(a) for a in model.jnt_dofadr if a > row], default=model.nv) - row
                return _plain(model, name, thing, field, row, width, index)
            if field == "actuator_ctrlrange":
                row = _elements(model, name, "actuator", thing)[0]
            return _plain(model, name, thing, field, row * width, width, index)
    raise Sim2RealError(
        f"{name}: a {kind} has no {stem!r}{nearest(stem, known_attributes(compiled, kind))}"
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
    flat = getattr(model, field).reshape(-1)
    places = [first + component for component in components(name, width, index)]
    values = [float(flat[place]) for place in places]
    if len(places) == 1 or not any(values):
        return Address(thing, values[0], tuple(Write(field, place) for place in places))
    # Several components moved by one number keep their ratios.
    nominal = next(value for value in values if value)
    return Address(thing, nominal, tuple(Write(field, place, power=1.0) for place in places))


def _elements(model: mujoco.MjModel, name: str, kind: str, thing: str) -> range:
    """The `elements` of a named thing; an actuator without a control takes no command."""
    found = elements(model, kind, getattr(model, kind)(thing).id)
    if not found:
        raise Sim2RealError(f"{name}: has no effect, since actuator {thing!r} takes no command")
    return found


def _option(model: mujoco.MjModel, name: str, stem: str, index: int | None) -> Address:
    field = f"opt.{stem}"
    if field not in MODEL_FIELDS:
        options = [f[4:] for f in MODEL_FIELDS if f.startswith("opt.")]
        raise Sim2RealError(f"{name}: the simulator has no option {stem!r}{nearest(stem, options)}")
    values = np.atleast_1d(np.asarray(getattr(model.opt, stem), dtype=float)).reshape(-1)
    if len(values) > 1 and index is None:
        raise Sim2RealError(f"{name}: has {len(values)} components; name one, as in {name}[2]")
    at = components(name, len(values), index or 0)[0]
    return Address("", float(values[at]), (Write(field, at),))


def _environment(compiled: CompiledTwin, name: str, thing: str, stem: str) -> Address:
    event = compiled.events.get(thing)
    if event is None:
        raise Sim2RealError(
            f"{name}: the twin declares no event {thing!r}{nearest(thing, compiled.events)}"
        )
    attributes = event_attributes(event)
    if stem not in attributes:
        raise Sim2RealError(
            f"{name}: a {event.kind} event has no {stem!r}{nearest(stem, attributes)}"
        )
    column = list(compiled.events).index(thing)
    return Address(thing, attributes[stem], (Write(f"effect.environment.{stem}", column),))


def _object(compiled: CompiledTwin, name: str, pattern: str, attribute: str) -> list[Address]:
    """A handled thing: its body's attributes, and its geoms' where the body has none."""
    model = compiled.model
    bodies = [body for body in names(model, "body") if body]
    matched = fnmatch.filter(bodies, pattern)
    if not matched:
        raise Sim2RealError(f"{name}: the model has no body {pattern!r}{nearest(pattern, bodies)}")
    stem, index = split_index(attribute)
    found = []
    for body in matched:
        if stem != "size" and ((("body", stem) in DERIVED) or f"body_{stem}" in MODEL_FIELDS):
            found.append(_thing(compiled, name, "body", body, stem, index))
            continue
        row = model.body(body).id
        first, count = int(model.body_geomadr[row]), int(model.body_geomnum[row])
        geoms = list(range(first, first + count))
        if stem == "size":
            found.append(whole_size(compiled, name, body, geoms))
            continue
        unnamed = [geom for geom in geoms if not model.geom(geom).name]
        if unnamed:
            raise Sim2RealError(f"{name}: geom {unnamed[0]} of body {body!r} has no name; name it")
        found.extend(
            _thing(compiled, name, "geom", model.geom(geom).name, stem, index) for geom in geoms
        )
    return found


def _effect(
    compiled: CompiledTwin, name: str, kind: str, thing: str, stem: str, index: int | None
) -> Address:
    """A number that lives beside the model, in the tables of hardware effects."""
    model = compiled.model
    declared = compiled.effects.of(kind).get(thing)
    whole = stem in ("delay", "delay_jitter", "period", "dropout", "missed")
    if whole and index is not None:
        raise Sim2RealError(f"{name}: applies to the whole {kind}; drop the index")
    if stem in ("delay", "delay_jitter") and not getattr(declared, "delay_max", 0.0):
        raise Sim2RealError(
            f"{name}: has no effect, since {kind} {thing!r} has no history buffer; declare"
            f" delay_max in [effects.{kind}.{thing}]"
        )
    nominal = float(getattr(declared or EFFECTS[kind](), stem))
    places = _elements(model, name, kind, thing)
    if kind == "sensor" and index is not None:
        places = places[components(name, len(places), index)[0] :][:1]
    writes = tuple(Write(f"effect.{kind}.{stem}", place) for place in places)
    return Address(thing, nominal, writes)


def check_operation(parameter: Parameter) -> None:
    """Refuse an operation that has no meaning for the attribute."""
    _kind, _, attribute = split_path(parameter.name)
    stem, _index = split_index(attribute)
    if stem == "size" and parameter.operation != "scale":
        raise Sim2RealError(f"{parameter.name}: a shape is scaled; use operation = 'scale'")
    if stem == PSEUDO_INERTIA and parameter.operation != "add":
        raise Sim2RealError(
            f"{parameter.name}: a pseudo-inertia is perturbed; use operation = 'add'"
        )
    if math.isinf(parameter.nominal) and parameter.operation != "set":
        raise Sim2RealError(
            f"{parameter.name}: an infinite nominal value can only be set; use operation = 'set'"
        )


def vector_needs_index(compiled: CompiledTwin, parameter: Parameter) -> bool:
    """Whether a plain vector is set or shifted as if it were one number."""
    kind, _, attribute = split_path(parameter.name)
    stem, index = split_index(attribute)
    if parameter.operation == "scale" or index is not None or stem in _GREY_COLOURS:
        return False
    if (kind, stem) in DERIVED or stem in _effects_of(kind) or kind in ("option", "environment"):
        return False
    return any(
        len(address.writes) > 1
        for address in resolve(compiled, parameter.name)
        if all(write.field.endswith(f"_{stem}") for write in address.writes)
    )


def _effects_of(kind: str) -> set[str]:
    """Attributes of the hardware effects of a kind."""
    return {f.name for f in fields(EFFECTS[kind])} - _FIXED_FIELDS if kind in EFFECTS else set()


def _prefixes(kind: str) -> tuple[str, ...]:
    """What the names of a kind's fields begin with."""
    return ("jnt_", "dof_") if kind == "joint" else (f"{KINDS[kind]}_",)
