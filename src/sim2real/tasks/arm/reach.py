"""`arm-reach`: bring the gripper to a pose, position and orientation, and hold it there."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import torch
from torch import Tensor

from sim2real.arrays import Floats
from sim2real.tasks.arm import JOINTS, POSITIONS, ArmTask, joint_terms
from sim2real.tasks.arm.kinematics import ArmKinematics
from sim2real.tasks.task import Draw, Measurements, PrivilegedTerm, Term, Training
from sim2real.worlds import Worlds

NEAR_M = 0.02
"""Largest distance to the target that counts as reached [m]."""
ALIGNED_RAD = 0.25
"""Largest rotation to the target that counts as reached [rad]."""
_POSES = 4096
_HOME = (0.0, -0.4, 0.5, 0.6, 0.0, 0.3)
_RANGE = ((-1.2, 1.2), (-0.9, 1.0), (-0.9, 1.1), (-1.2, 1.3), (-1.5, 1.5), (0.0, 1.0))


class ArmReach(ArmTask):
    """Reach a random pose the arm can take; success is the last half second spent at it."""

    name = "arm-reach"
    twin = Path(__file__).parent / "reach.toml"
    episode_s = 4.0
    hold_s = 0.5
    actions = JOINTS
    draws = ("pose", *(f"start/{joint}" for joint in JOINTS))
    goals = {"target_position": 3, "target_rotation": 9}  # noqa: RUF012
    training = Training(worlds=1024, iterations=120, hidden=(128, 128), gamma=0.97)
    again = 1.5
    bench = "arm-reach"
    critic = (
        PrivilegedTerm(name="true_joint_vel", read=lambda w: w.state("qvel")[:, :6], scale=0.2),
        PrivilegedTerm(name="parameters", read=lambda w: w.values - 1.0),
    )

    def __init__(self, worlds: Worlds) -> None:
        super().__init__(worlds)
        chain = ArmKinematics(worlds.model, "tool", device=worlds.device)

        def offset(m: Measurements) -> Tensor:
            """Translation and rotation to the target, from the encoders."""
            position, rotation = chain.pose(m.sensor(*POSITIONS[:5]))
            wanted = m.goal("target_rotation").view(-1, 3, 3)
            turn = 0.5 * torch.linalg.cross(rotation, wanted, dim=1).sum(2)
            return torch.cat([10.0 * (m.goal("target_position") - position), 2.0 * turn], dim=1)

        self.actor = (
            *joint_terms(),
            Term(
                name="to_target",
                unit="m, rad",
                sources=(*POSITIONS[:5], "target_position", "target_rotation"),
                read=offset,
            ),
            Term(
                name="target_position",
                unit="m",
                sources=("target_position",),
                scale=5.0,
                read=lambda m: m.goal("target_position"),
            ),
            Term(
                name="target_rotation",
                unit="",
                sources=("target_rotation",),
                read=lambda m: m.goal("target_rotation")[:, :6],
            ),
        )
        self._poses = _reachable_poses(worlds.model, device=worlds.device)
        self._marker = int(worlds.model.body("target").mocapid[0])

    def reset(self, ids: Tensor, draw: Draw) -> None:
        """Start near the home pose; the target is a pose the arm can take, clear of the table."""
        self.start_joints(ids, draw, _HOME, room=0.3)
        position, rotation, quat = self._poses
        chosen = draw.uniform("pose", 0, len(position)).long().clamp(max=len(position) - 1)
        self.worlds.memory["target_position"][ids] = position[chosen]
        self.worlds.memory["target_rotation"][ids] = rotation[chosen]
        self.worlds.state("mocap_pos")[ids, self._marker] = position[chosen].double()
        self.worlds.state("mocap_quat")[ids, self._marker] = quat[chosen].double()

    def errors(self) -> tuple[Tensor, Tensor]:
        """True distance [m] and angle [rad] to the target, (worlds,) each."""
        position, rotation = self.tool_pose()
        memory = self.worlds.memory
        distance = (memory["target_position"] - position).norm(dim=1)
        wanted = memory["target_rotation"].view(-1, 3, 3)
        cosine = 0.5 * ((rotation * wanted).sum((1, 2)) - 1.0)
        return distance, torch.acos(cosine.clamp(-1.0, 1.0))

    def reward(self, action: Tensor) -> Tensor:
        """Nearness in position and orientation, coarse and fine; large actions cost."""
        distance, angle = self.errors()
        coarse = -2.0 * distance - 0.25 * angle
        fine = torch.exp(-(distance / 0.03).square()) * (0.5 + torch.exp(-(angle / 0.3).square()))
        return coarse + fine - 0.02 * action.square().sum(1)

    def reached(self) -> Tensor:
        """Close and aligned."""
        distance, angle = self.errors()
        return (distance < NEAR_M) & (angle < ALIGNED_RAD)


def _reachable_poses(
    model: mujoco.MjModel, *, device: torch.device
) -> tuple[Tensor, Tensor, Tensor]:
    """Tool poses of random joint angles that keep the arm off the table and out of its base."""
    rng = np.random.default_rng(20)
    data = mujoco.MjData(model)
    low, high = np.array(_RANGE).T
    columns = [int(model.joint(joint).qposadr[0]) for joint in JOINTS]
    positions: list[Floats] = []
    rotations: list[Floats] = []
    quats: list[Floats] = []
    while len(positions) < _POSES:
        data.qpos[columns] = rng.uniform(low, high)
        mujoco.mj_kinematics(model, data)
        tool = data.site("tool")
        wrist = data.body("gripper").xpos
        flat = np.hypot(tool.xpos[0], tool.xpos[1])
        if tool.xpos[2] < 0.06 or wrist[2] < 0.08 or flat < 0.14:
            continue
        quat = np.zeros(4)
        mujoco.mju_mat2Quat(quat, tool.xmat)
        positions.append(tool.xpos.copy())
        rotations.append(tool.xmat.copy())
        quats.append(quat)
    tables = (np.array(part, dtype=np.float32) for part in (positions, rotations, quats))
    position, rotation, quat_table = (torch.from_numpy(table).to(device) for table in tables)
    return position, rotation, quat_table
