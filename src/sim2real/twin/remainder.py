"""What parameters cannot explain: a small learned force per joint, zero outside its data.

The force of a joint is a sum of Gaussian bumps around places of its own state that were seen on
the robot, times a support that is one near those places and exactly zero away from them. A state
that was never recorded gets no remainder: the twin is then what its parameters make of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import mujoco
import numpy as np
import torch
from torch import Tensor

from sim2real.errors import Sim2RealError, nearest
from sim2real.plain import PlainData

_ONE_WAY = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))
_MAX_DISTANCE = 1e6
"""Larger distances make no difference; its square is still exact enough."""

REMAINDER_FEATURES = ("position", "velocity", "drive", "load")
"""What a joint's force may depend on: its position [rad or m] and velocity, the command of its
drive (a servo's distance to the commanded position, else the command itself), and the force of the
drive at the beginning of the period [N m or N]."""


@dataclass(frozen=True, kw_only=True)
class JointRemainder:
    """The remainder of one joint."""

    joint: str
    scales: tuple[float, ...]
    """How much of each feature is one unit of distance."""
    centres: tuple[tuple[float | None, ...], ...]
    """(bumps, features) where each bump is, in the features' units; None for what it ignores."""
    widths: tuple[float, ...]
    """(bumps,) standard deviation of each bump, as a distance."""
    weights: tuple[float, ...]
    """(bumps,) force of each bump [N m or N]."""
    seen: tuple[tuple[float, ...], ...]
    """(places, features) where there is data, in the features' units."""
    reach: float
    """Distance to the nearest place up to which the full force acts; at twice that it is zero."""
    turns: bool = False
    """Whether positions a whole turn apart are the same."""


@dataclass(frozen=True, kw_only=True)
class Remainder(PlainData, also=("features",)):
    """Learned forces of a twin's joints; all have equally many centres."""

    features: ClassVar[tuple[str, ...]] = REMAINDER_FEATURES
    joints: tuple[JointRemainder, ...]

    def __post_init__(self) -> None:
        for name in ("centres", "seen"):
            shapes = {
                (len(getattr(j, name)), len(p)) for j in self.joints for p in getattr(j, name)
            }
            if len(shapes) != 1 or {width for _, width in shapes} != {len(REMAINDER_FEATURES)}:
                raise Sim2RealError(
                    f"{name} of all joints must have the same length, each with a value for"
                    f" {', '.join(REMAINDER_FEATURES)}"
                )
        for j in self.joints:
            if not len(j.centres) == len(j.widths) == len(j.weights):
                raise Sim2RealError(f"{j.joint}: every bump needs a centre, a width and a weight")
            if (
                len(j.scales) != len(REMAINDER_FEATURES)
                or not min(*j.scales, *j.widths, j.reach) > 0
            ):
                raise Sim2RealError(f"{j.joint}: scales, widths and reach must be positive")

    @property
    def names(self) -> tuple[str, ...]:
        """Joints that have a remainder."""
        return tuple(joint.joint for joint in self.joints)

    @property
    def count(self) -> int:
        """Bumps of a joint."""
        return len(self.joints[0].weights)

    def check(self, model: mujoco.MjModel) -> None:
        """Refuse a remainder of joints that the model does not have."""
        for name in self.names:
            row = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, name)
            if row < 0 or int(model.jnt_type[row]) not in _ONE_WAY:
                raise Sim2RealError(
                    f"remainder: the model has no hinge or slide {name!r}"
                    f"{nearest(name, one_way_joints(model))}"
                )

    def basis(self, features: Tensor) -> Tensor:
        """(n, joints, bumps) force per weight at features (n, joints, features)."""
        arrays = self._on(features.device)
        places = _places(features, arrays["scales"])
        squares = self._squares(places, arrays["centres"])
        bumps = torch.exp(-0.5 * squares / arrays["widths"] ** 2)
        return bumps * self._support(places)[..., None]

    def force(self, features: Tensor, weights: Tensor | None = None) -> Tensor:
        """(n, joints) force [N m or N]; `weights` (n, joints, bumps) instead of its own."""
        given = self._on(features.device)["weights"] if weights is None else weights
        return (self.basis(features) * given).sum(dim=-1)

    def _support(self, places: Tensor) -> Tensor:
        """(n, joints) one where there is data, zero away from it."""
        arrays = self._on(places.device)
        # Squares multiplied out: there are many places, and this is done in every period.
        here = _flat(places, arrays["scales"][:, :1], arrays["turns"][:, None])
        seen = arrays["seen"]
        cross = torch.einsum("njf,jpf->njp", here, seen)
        squares = (here**2).sum(dim=-1, keepdim=True) - 2.0 * cross + (seen**2).sum(dim=-1)
        nearest = squares.min(dim=-1).values.clamp(min=0.0).sqrt()
        beyond = (nearest / arrays["reach"] - 1.0).clamp(0.0, 1.0)
        return 1.0 - beyond * beyond * (3.0 - 2.0 * beyond)

    def _squares(self, places: Tensor, centres: Tensor) -> Tensor:
        """(n, joints, centres) squared distances; what a centre ignores is no distance."""
        apart = torch.nan_to_num(places[..., None, :] - centres)
        arrays = self._on(places.device)
        one, turns = arrays["scales"][:, None, 0], arrays["turns"][:, None]
        along = apart[..., 0]
        # A chord: like the angle where that is small, and the same after a whole turn.
        along = torch.where(turns, 2.0 * torch.sin(0.5 * along * one) / one, along)
        return along**2 + (apart[..., 1:] ** 2).sum(dim=-1)

    def _on(self, device: torch.device) -> dict[str, Tensor]:
        """The arrays on a device, moved there once."""
        if device not in self._moved:
            self._moved[device] = {name: a.to(device) for name, a in self._arrays.items()}
        return self._moved[device]

    @cached_property
    def _moved(self) -> dict[torch.device, dict[str, Tensor]]:
        return {}

    @cached_property
    def _arrays(self) -> dict[str, Tensor]:
        def stacked(name: str) -> Tensor:
            values = np.array([getattr(j, name) for j in self.joints], dtype=float)
            return torch.from_numpy(values)

        found = {n: stacked(n) for n in ("scales", "widths", "weights", "reach")}
        found["turns"] = stacked("turns") > 0
        scales = found["scales"][:, None]
        found["centres"] = _places(stacked("centres"), scales)
        seen = _places(stacked("seen"), scales)
        found["seen"] = _flat(seen, scales[..., :1], found["turns"][:, None, None])
        return found


def _places(features: Tensor, scales: Tensor) -> Tensor:
    """Features in units of distance; of speeds the logarithm, since friction turns at rest."""
    position, velocity, *others = (features / scales).unbind(dim=-1)
    return torch.stack([position, torch.asinh(velocity), *others], dim=-1)


def _flat(places: Tensor, one: Tensor, turns: Tensor) -> Tensor:
    """Places with one more number, whose Euclidean distances are those of the remainder.

    `one` is how much of a position is one unit of distance, `turns` whether whole turns count as
    none.
    """
    position, others = places[..., :1], places[..., 1:]
    circle = torch.cat([torch.cos(position * one), torch.sin(position * one)], dim=-1) / one
    along = torch.where(turns, circle, torch.nn.functional.pad(position, (0, 1)))
    return torch.nan_to_num(torch.cat([along, others], dim=-1)).clamp(-_MAX_DISTANCE, _MAX_DISTANCE)


def one_way_joints(model: mujoco.MjModel) -> list[str]:
    """Hinges and slides of a model, the joints that may have a remainder."""
    return [model.joint(k).name for k in range(model.njnt) if int(model.jnt_type[k]) in _ONE_WAY]
