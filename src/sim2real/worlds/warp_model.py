"""A twin's model on MuJoCo Warp's device: room for contacts, and fields that differ by world."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import mujoco
import mujoco_warp as mjw
import numpy as np
import torch
import warp as wp
from torch import Tensor

from sim2real.arrays import Array
from sim2real.errors import Sim2RealError, explaining, nearest

_MOST_CONTACTS, _MOST_ROWS = 128, 512
"""Room for a world's contacts and rows of constraints, where it could have more."""
_ROOM = ("warp_nconmax", "warp_njmax")
"""Numbers (`<custom><numeric …>`) of a model that asks for another room."""
_FEW = {
    frozenset({"mjGEOM_PLANE", "mjGEOM_BOX"}): 4,
    frozenset({"mjGEOM_PLANE", "mjGEOM_CYLINDER"}): 4,
    frozenset({"mjGEOM_PLANE", "mjGEOM_CAPSULE"}): 2,
    frozenset({"mjGEOM_CAPSULE"}): 2,
    frozenset({"mjGEOM_CAPSULE", "mjGEOM_BOX"}): 2,
}
"""Most contacts of two shapes; a sphere has one, all others up to eight."""
_CONSTANTS = (
    "body_subtreemass",
    "body_invweight0",
    "dof_invweight0",
    "tendon_length0",
    "tendon_invweight0",
    "actuator_acc0",
    "eq_data",
    "geom_aabb",
    "geom_rbound",
    "cam_pos0",
    "cam_poscom0",
    "cam_mat0",
    "light_pos0",
    "light_poscom0",
    "light_dir0",
)
"""What follows from other fields of the model, and differs where they do."""
_FROM_NOMINAL = {
    "body_gravcomp",
    "actuator_armature",
    "actuator_damping",
    "actuator_dampingpoly",
    "tendon_armature",
    "tendon_stiffness",
    "tendon_damping",
    "jnt_springyield",
    "tendon_springyield",
    "geom_adhesion",
    "pair_adhesion",
    "geom_surfacevel",
    "opt.density",
    "opt.viscosity",
    "opt.wind",
}
"""Fields that the engine leaves out of its computation where the nominal model has only zeros."""


def _varied() -> Iterator[str]:
    for kind, prefix in ((mjw.Model, ""), (mjw.Option, "opt.")):
        for field in fields(kind):
            spec: Any = field.type  # how the library writes the shapes of its arrays
            varied = getattr(spec, "shape", ())[:1] == ("*",)
            if varied and spec.dtype not in (int, bool, wp.vec2i):
                yield prefix + field.name


VARIED_FIELDS = frozenset(_varied()) - {"opt.timestep", "opt.impratio_invsqrt"}
"""Fields of a model that may differ from world to world."""


class WarpModel:
    """A model on a device, with rows for each world where its fields differ."""

    def __init__(self, model: mujoco.MjModel, count: int) -> None:
        """What MuJoCo Warp does not simulate is a `Sim2RealError` that names it."""
        self._host = model
        self._count = count
        self._tensors: dict[str, Tensor] = {}
        self._has_constants = False
        _refuse(model)
        with explaining(
            "engine 'warp' cannot simulate this model", NotImplementedError, ValueError
        ):
            self.on_device = mjw.put_model(model)
        # An overflow is an error or a divergence here, not a line on the terminal.
        self.on_device.opt.warn_overflow = 0

    def field(self, name: str) -> Tensor:
        """The live (worlds, elements) float32 tensor of a field."""
        if name not in self._tensors:
            self._tensors[name] = self._expanded(name)
        return self._tensors[name]

    def make_constants_differ(self) -> None:
        """Give what follows from other fields a row for each world."""
        if not self._has_constants:
            for name in _CONSTANTS:
                self.field(name)
        self._has_constants = True

    @property
    def expanded(self) -> int:
        """Number of fields that have a row for each world."""
        return len(self._tensors)

    def of_world(self, index: int, model: mujoco.MjModel | None) -> mujoco.MjModel:
        """The model of one world, written into `model` where there is one."""
        found = copy.copy(self._host) if model is None else model
        for name, tensor in self._tensors.items():
            row = tensor[index].cpu().numpy()
            place = _values(found, name)
            if place.ndim:
                place.reshape(-1)[:] = row
            else:
                setattr(found.opt, name.removeprefix("opt."), float(row[0]))
        return found

    def _expanded(self, name: str) -> Tensor:
        if name not in VARIED_FIELDS:
            raise Sim2RealError(
                f"engine 'warp' cannot give worlds different values of {name}"
                f"{nearest(name, VARIED_FIELDS)}"
            )
        owner = self.on_device.opt if name.startswith("opt.") else self.on_device
        attribute = name.removeprefix("opt.")
        if name in _FROM_NOMINAL and not _values(self._host, name).any():
            raise Sim2RealError(
                f"engine 'warp' leaves {name} out where the model has only zeros of it: give it a"
                " nominal value"
            )
        was = getattr(owner, attribute)
        shape = (self._count, *was.shape[1:])
        rows = np.repeat(was.numpy()[:1], self._count, axis=0)
        array = wp.array(rows, dtype=was.dtype, shape=shape, device=was.device)
        array._is_batched = True
        setattr(owner, attribute, array)
        return tensor_of(array).view(self._count, -1)


def tensor_of(array: wp.array) -> Tensor:
    """A tensor over the array's memory."""
    # A first use inside inference mode must not make a tensor that only works there.
    with torch.inference_mode(False):
        found: Tensor = wp.to_torch(array)
        return found


def room(model: mujoco.MjModel, on_device: mjw.Model) -> tuple[int, int]:
    """(contacts, rows of constraints) a world has room for.

    All that the shapes can make, up to a limit; a model that needs more, or should take less
    memory, says so in numbers called `warp_nconmax` and `warp_njmax`.
    """
    types = [mujoco.mjtGeom(int(kind)).name for kind in model.geom_type]
    pairs = on_device.nxn_geom_pair_filtered.numpy()
    contacts = sum(_contacts(types[first], types[second]) for first, second in pairs)
    contacts = max(1, min(contacts, _MOST_CONTACTS))
    dims = max([1, *model.geom_condim.tolist(), *model.pair_dim.tolist()])
    elliptic = int(model.opt.cone) == int(mujoco.mjtCone.mjCONE_ELLIPTIC)
    rows = contacts * (dims if elliptic else max(1, 2 * (dims - 1)))
    rows += model.nv + model.njnt + 2 * model.ntendon + 6 * model.neq
    # Kernels are compiled for a number of rows: models of about the same size share them.
    found = [contacts, min(math.ceil(rows / 32) * 32, _MOST_ROWS)]
    for place, name in enumerate(_ROOM):
        row = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_NUMERIC, name)
        if row >= 0:
            found[place] = max(1, int(model.numeric_data[model.numeric_adr[row]]))
    return found[0], found[1]


def _contacts(first: str, second: str) -> int:
    if "mjGEOM_SPHERE" in (first, second):
        return 1
    return _FEW.get(frozenset({first, second}), 8)


def _refuse(model: mujoco.MjModel) -> None:
    """Refuse what MuJoCo Warp would leave out without a word, or cannot do world by world."""
    sleeps = int(model.opt.enableflags) & int(mujoco.mjtEnableBit.mjENBL_SLEEP)
    for there, what in (
        (model.nflex, "flexible bodies"),
        (model.opt.disableactuator, "groups of actuators that are disabled"),
        (sleeps, "bodies that sleep"),
    ):
        if there:
            raise Sim2RealError(f"engine 'warp' cannot simulate this model: it has {what}")


def _values(model: mujoco.MjModel, name: str) -> Array:
    """A field of the model, as an array that is its memory where it is not a single number."""
    owner = model.opt if name.startswith("opt.") else model
    return np.asarray(getattr(owner, name.removeprefix("opt.")))
