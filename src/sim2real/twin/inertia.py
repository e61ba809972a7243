"""Physically consistent changes of a body's inertia.

A body's mass, centre of mass and inertia form its 4x4 pseudo-inertia, which is positive definite
for every real body and only for those. Multiplying it from both sides by an invertible matrix
keeps it so: ten numbers, zero for no change, reach every real body and nothing else.
(Rucker and Wensing, "Smooth parameterization of rigid-body inertia", RA-L 2022.)
"""

from __future__ import annotations

import torch
from torch import Tensor


def perturbed_inertia(
    theta: Tensor, mass: Tensor, com: Tensor, inertia: Tensor, quat_wxyz: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(mass, com, principal inertia, quat_wxyz) after perturbing by `theta`.

    `theta` is (n, 10): alpha (log of the square root of the mass's growth), d1 d2 d3 (log
    stretches), s12 s23 s13 (shears), t1 t2 t3 (shifts of the centre of mass [m]). The nominal
    values are of one body: (), (3,), (3,), (4,).
    """
    pseudo = _pseudo(mass, com, inertia, quat_wxyz)
    n = theta.shape[0]
    factor = torch.zeros(n, 4, 4, dtype=theta.dtype, device=theta.device)
    alpha, d, s, t = theta[:, 0], theta[:, 1:4], theta[:, 4:7], theta[:, 7:10]
    for k in range(3):
        factor[:, k, k] = torch.exp(d[:, k])
    factor[:, 0, 1], factor[:, 1, 2], factor[:, 0, 2] = s[:, 0], s[:, 1], s[:, 2]
    factor[:, :3, 3] = t
    factor[:, 3, 3] = 1.0
    factor = torch.exp(alpha)[:, None, None] * factor
    moved = factor @ pseudo @ factor.mT
    new_mass = moved[:, 3, 3]
    new_com = moved[:, :3, 3] / new_mass[:, None]
    second = moved[:, :3, :3] - new_mass[:, None, None] * new_com[:, :, None] * new_com[:, None, :]
    trace = second.diagonal(dim1=1, dim2=2).sum(-1)
    eye = torch.eye(3, dtype=theta.dtype, device=theta.device)
    moments, axes = torch.linalg.eigh(trace[:, None, None] * eye - second)
    # Principal axes must form a right-handed frame to be a rotation.
    axes = torch.where(torch.linalg.det(axes)[:, None, None] < 0, -axes, axes)
    return new_mass, new_com, moments, _quaternion(axes)


def _pseudo(mass: Tensor, com: Tensor, inertia: Tensor, quat: Tensor) -> Tensor:
    rotation = _rotation(quat)
    about_com = rotation @ torch.diag(inertia) @ rotation.T
    second = 0.5 * torch.trace(about_com) * torch.eye(3, dtype=com.dtype, device=com.device)
    second = second - about_com + mass * torch.outer(com, com)
    top = torch.cat([second, (mass * com)[:, None]], dim=1)
    bottom = torch.cat([mass * com, mass[None]])[None, :]
    return torch.cat([top, bottom], dim=0)


def _rotation(quat: Tensor) -> Tensor:
    w, x, y, z = quat / quat.norm()
    rows = [
        torch.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)]),
        torch.stack([2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)]),
        torch.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]),
    ]
    return torch.stack(rows)


def _quaternion(rotation: Tensor) -> Tensor:
    """(n, 4) quaternions w x y z of (n, 3, 3) rotations, stable for every angle."""
    # Each row of this matrix is the quaternion times four of its components.
    matrix = torch.zeros(len(rotation), 4, 4, dtype=rotation.dtype, device=rotation.device)
    skew, trace = rotation - rotation.mT, rotation.diagonal(dim1=1, dim2=2).sum(-1)
    matrix[:, 0, 0] = 1 + trace
    matrix[:, 0, 1:] = matrix[:, 1:, 0] = skew[:, (2, 0, 1), (1, 2, 0)]
    eye = torch.eye(3, dtype=rotation.dtype, device=rotation.device)
    matrix[:, 1:, 1:] = rotation + rotation.mT + (1 - trace)[:, None, None] * eye
    largest = matrix.diagonal(dim1=1, dim2=2).argmax(-1)
    picked = matrix[torch.arange(len(matrix), device=rotation.device), largest]
    quat: Tensor = picked / picked.norm(dim=-1, keepdim=True)
    return quat
