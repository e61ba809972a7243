"""`pendulum-swingup`: bring a pendulum upright with a motor too weak to lift it at once."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from sim2real.tasks.task import Draw, Measurements, PrivilegedTerm, Task, Term, Training, sensed
from sim2real.worlds import Worlds

MAX_TORQUE_NM = 1.5
UPRIGHT_RAD = 0.2
"""Largest angle from upright that counts as reached [rad]."""
SLOW_RAD_S = 1.0
"""Largest speed that counts as reached [rad/s]."""


def _from_upright(angle: Tensor) -> Tensor:
    """Distance of an angle (0 hanging down) from upright, 0..pi [rad]."""
    return torch.pi - torch.remainder(angle + torch.pi, 2 * torch.pi).sub(torch.pi).abs()


class PendulumSwingup(Task):
    """Swing up and hold: 0.5 m, 0.57 kg, 1.5 N m. Success is the last second spent upright."""

    name = "pendulum-swingup"
    twin = Path(__file__).parent
    rate_hz = 50.0
    episode_s = 5.0
    hold_s = 1.0
    actions = ("torque",)
    draws = ("angle", "speed")
    history = 3
    training = Training(worlds=256, iterations=140, hidden=(64, 64), gamma=0.98)
    again = 2.0
    bench = "pendulum-swingup"
    actor = (
        Term(
            name="direction",
            unit="",
            sources=("hinge_pos",),
            read=lambda m: torch.cat(
                [torch.cos(m.sensor("hinge_pos")), torch.sin(m.sensor("hinge_pos"))], dim=1
            ),
        ),
        sensed("speed", "hinge_vel", unit="rad/s", scale=0.15),
        Term(name="last_action", unit="", sources=("action",), read=lambda m: m.action),
    )
    critic = (
        PrivilegedTerm(name="true_speed", read=lambda w: w.state("qvel")[:, :1], scale=0.15),
        PrivilegedTerm(
            name="true_direction",
            read=lambda w: torch.cat(
                [torch.cos(w.state("qpos")[:, :1]), torch.sin(w.state("qpos")[:, :1])], dim=1
            ),
        ),
    )

    def __init__(self, worlds: Worlds) -> None:
        super().__init__(worlds)
        joint = worlds.model.joint("hinge")
        self._angle = worlds.state("qpos")[:, int(joint.qposadr[0])]
        self._speed = worlds.state("qvel")[:, int(joint.dofadr[0])]

    def reset(self, ids: Tensor, draw: Draw) -> None:
        """Hanging nearly straight down, moving slowly."""
        self._angle[ids] = draw.uniform("angle", -0.6, 0.6)
        self._speed[ids] = draw.uniform("speed", -0.5, 0.5)

    def command(self, action: Tensor, m: Measurements) -> Tensor:
        """The action is the torque in units of the motor's limit."""
        return action * MAX_TORQUE_NM

    def reward(self, action: Tensor) -> Tensor:
        """Height, and a bonus for standing still near the top; effort and speed cost a little."""
        off = _from_upright(self._angle)
        near = torch.exp(-(off / 0.25).square() - 0.05 * self._speed.square())
        height = 0.5 * (1.0 + torch.cos(off))
        effort = 0.02 * action[:, 0].square()
        return height + 2.0 * near - effort - 0.002 * self._speed.square()

    def reached(self) -> Tensor:
        """Upright and slow."""
        return (_from_upright(self._angle) < UPRIGHT_RAD) & (self._speed.abs() < SLOW_RAD_S)
