"""`arm-push`: push a cube across the table to a goal, with the closed gripper."""

from __future__ import annotations

import math
from pathlib import Path

import torch
from torch import Tensor

from sim2real.tasks.arm import JOINTS, POSITIONS, ArmTask, joint_terms
from sim2real.tasks.arm.kinematics import ArmKinematics
from sim2real.tasks.task import Draw, Measurements, PrivilegedTerm, Term, Training, sensed
from sim2real.worlds import Worlds

NEAR_M = 0.03
"""Largest distance of the cube from its goal that counts as reached [m]."""
_HOME = (0.0, -0.7, 0.8, 1.1, 0.0, -0.1)
_CUBE_HALF_M = 0.02
_BEHIND_M = 0.035
"""Distance behind the cube's centre, seen from the goal, at which the gripper should push [m]."""
_PUSH_HEIGHT_M = 0.022


class ArmPush(ArmTask):
    """Push a cube 6 to 12 cm, ahead or to a side; success is the cube resting at its goal."""

    name = "arm-push"
    twin = Path(__file__).parent / "push.toml"
    episode_s = 6.0
    step_rad = 0.05
    hold_s = 0.5
    actions = JOINTS[:5]
    draws = (
        "cube/x",
        "cube/y",
        "cube/yaw",
        "goal/distance",
        "goal/angle",
        *(f"start/{joint}" for joint in JOINTS[:5]),
    )
    goals = {"goal": 2}  # noqa: RUF012
    training = Training(worlds=1024, iterations=240, hidden=(128, 128), gamma=0.98)
    bench = "arm-push"

    def __init__(self, worlds: Worlds) -> None:
        super().__init__(worlds)
        model = worlds.model
        chain = ArmKinematics(model, "tool", device=worlds.device)
        self._cube = int(model.joint("cube").qposadr[0])
        self._marker = int(model.body("goal").mocapid[0])

        def tool(m: Measurements) -> Tensor:
            return m.once("tool", lambda m: chain.pose(m.sensor(*POSITIONS[:5]))[0])

        def push(m: Measurements) -> Tensor:
            """Vectors from gripper to cube, cube to goal, and gripper to behind the cube."""
            cube, goal, at = m.sensor("cube_pos"), m.goal("goal"), tool(m)
            way = goal - cube[:, :2]
            return torch.cat([cube - at, way, _behind(cube, goal) - at], dim=1)

        seen = (*POSITIONS[:5], "cube_pos", "goal")
        self.actor = (
            *joint_terms(),
            Term(name="tool_position", unit="m", sources=POSITIONS[:5], scale=5.0, read=tool),
            sensed("cube_position", "cube_pos", unit="m", scale=5.0),
            Term(name="push", unit="m", sources=seen, scale=10.0, read=push),
        )
        start = self._cube
        dof = int(model.joint("cube").dofadr[0])
        self.critic = (
            PrivilegedTerm(
                name="true_cube", scale=5.0, read=lambda w: w.state("qpos")[:, start : start + 3]
            ),
            PrivilegedTerm(name="true_cube_vel", read=lambda w: w.state("qvel")[:, dof : dof + 6]),
            PrivilegedTerm(name="true_joint_vel", read=lambda w: w.state("qvel")[:, :6], scale=0.2),
            PrivilegedTerm(name="parameters", read=lambda w: w.values),
        )

    def reset(self, ids: Tensor, draw: Draw) -> None:
        """The gripper is closed above the table, the cube in front of it, the goal behind that."""
        self.start_joints(ids, draw, _HOME, room=0.1, moving=5)
        x, y = draw.uniform("cube/x", 0.23, 0.28), draw.uniform("cube/y", -0.08, 0.08)
        yaw = draw.uniform("cube/yaw", -math.pi / 4, math.pi / 4)
        distance = draw.uniform("goal/distance", 0.06, 0.12)
        angle = draw.uniform("goal/angle", -math.pi / 2, math.pi / 2)
        goal = torch.stack([x + distance * torch.cos(angle), y + distance * torch.sin(angle)], 1)
        zero = torch.zeros_like(x)
        height = torch.full_like(x, _CUBE_HALF_M * 1.08)
        turn = [torch.cos(yaw / 2), zero, zero, torch.sin(yaw / 2)]
        pose = torch.stack([x, y, height, *turn], dim=1)
        self.worlds.state("qpos")[ids, self._cube : self._cube + 7] = pose
        self.worlds.memory["goal"][ids] = goal.float()
        self.worlds.state("mocap_pos")[ids, self._marker, :2] = goal

    def command(self, action: Tensor, m: Measurements) -> Tensor:
        """The action moves the targets of five joints; the jaw stays closed."""
        still = torch.zeros(action.shape[0], 1, device=action.device)
        return super().command(torch.cat([action, still], dim=1), m)

    def reward(self, action: Tensor) -> Tensor:
        """Go behind the cube, push it to the goal, leave it there; large actions cost."""
        cube = self._cube_position()
        goal = self.worlds.memory["goal"]
        tool, rotation = self.tool_pose()
        left = (goal - cube[:, :2]).norm(dim=1)
        behind = (_behind(cube, goal) - tool).norm(dim=1)
        there = torch.exp(-(left / 0.03).square())
        # The reward for nearness fades with distance, so that a cube knocked away costs little:
        # otherwise the arm would learn to avoid the cube.
        pull = 4.0 * torch.exp(-left / 0.05) + 2.0 * there
        approach = (1.0 - there) * (4.0 * behind + 0.3 * torch.tanh(behind / 0.02))
        # A gripper that points down can push; an arm that lies on the table is stuck.
        lying = torch.relu(0.6 + rotation[:, 2, 0])
        scrape = 20.0 * torch.relu(0.012 - tool[:, 2])
        total: Tensor = pull - approach - lying - scrape - 0.02 * action.square().sum(1)
        return total

    def reached(self) -> Tensor:
        """The cube is at its goal."""
        left = self.worlds.memory["goal"] - self._cube_position()[:, :2]
        near: Tensor = left.norm(dim=1) < NEAR_M
        return near

    def _cube_position(self) -> Tensor:
        return self.worlds.state("qpos")[:, self._cube : self._cube + 3]


def _behind(cube: Tensor, goal: Tensor) -> Tensor:
    """(n, 3) point to push from: behind the cube as seen from the goal."""
    way = goal - cube[:, :2]
    direction = way / way.norm(dim=1, keepdim=True).clamp(min=1e-3)
    back: Tensor = cube[:, :2] - _BEHIND_M * direction
    return torch.cat([back, torch.full_like(back[:, :1], _PUSH_HEIGHT_M)], dim=1)
