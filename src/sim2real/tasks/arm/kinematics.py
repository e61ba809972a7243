"""Forward kinematics of the arm as its own computer does it: nominal lengths, measured angles."""

from __future__ import annotations

import mujoco
import torch
from torch import Tensor


class ArmKinematics:
    """A serial chain of hinges from the world to a site, from the nominal model."""

    def __init__(self, model: mujoco.MjModel, site: str, *, device: torch.device) -> None:
        bodies = []
        body = int(model.site(site).bodyid[0])
        while body:
            bodies.append(body)
            body = int(model.body_parentid[body])
        bodies.reverse()
        self._links: list[tuple[Tensor, Tensor, int | None]] = []
        axes: list[Tensor] = []
        for b in bodies:
            joint = len(axes) if model.body_jntnum[b] else None
            if joint is not None:
                axes.append(torch.tensor(model.jnt_axis[int(model.body_jntadr[b])]))
            self._links.append(
                (
                    torch.tensor(model.body_pos[b], dtype=torch.float32, device=device),
                    _matrix(torch.tensor(model.body_quat[b])).float().to(device),
                    joint,
                )
            )
        axis = torch.stack(axes).float().to(device)
        self._eye = torch.eye(3, device=device)
        # Column k is the cross product with unit vector k.
        self._cross = torch.linalg.cross(axis[:, None], self._eye[None]).mT
        self._cross2 = self._cross @ self._cross
        site_row = model.site(site).id
        self._tip = torch.tensor(model.site_pos[site_row], dtype=torch.float32, device=device)
        self._tip_turn = _matrix(torch.tensor(model.site_quat[site_row])).float().to(device)

    def pose(self, angles: Tensor) -> tuple[Tensor, Tensor]:
        """Position (n, 3) [m] and rotation (n, 3, 3) of the site at joint angles (n, joints)."""
        sine = torch.sin(angles)[..., None, None]
        versine = (1.0 - torch.cos(angles))[..., None, None]
        turns = self._eye + sine * self._cross + versine * self._cross2
        position = torch.zeros(angles.shape[0], 3, device=angles.device)
        rotation = self._eye.expand(angles.shape[0], 3, 3)
        for offset, turn, joint in self._links:
            position = position + rotation @ offset
            rotation = rotation @ turn
            if joint is not None:
                rotation = rotation @ turns[:, joint]
        return position + rotation @ self._tip, rotation @ self._tip_turn


def _matrix(quat_wxyz: Tensor) -> Tensor:
    matrix = torch.zeros(9, dtype=torch.float64)
    mujoco.mju_quat2Mat(matrix.numpy(), quat_wxyz.double().numpy())
    return matrix.view(3, 3)
