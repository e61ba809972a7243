"""The desk arm's tasks, and what they share: servos that follow a joint target.

The policy moves the target rather than the joint: `target += step_rad * action`, kept close to the
measured position, so that a servo that sags or lags is led on until it arrives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from sim2real.tasks.task import Draw, Measurements, Task, Term, sensed
from sim2real.worlds import Worlds

JOINTS = ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper")
MAX_LEAD_RAD = 0.35
"""Farthest that a target may be ahead of its joint [rad]."""
POSITIONS = tuple(f"{joint}_pos" for joint in JOINTS)
VELOCITIES = tuple(f"{joint}_vel" for joint in JOINTS)


def joint_terms() -> tuple[Term, ...]:
    """Servo readings: positions, speeds, the lead of each target; and the last action."""
    return (
        sensed("joint_pos", *POSITIONS, unit="rad"),
        sensed("joint_vel", *VELOCITIES, unit="rad/s", scale=0.2),
        Term(
            name="joint_lead",
            unit="rad",
            sources=(*POSITIONS, "command"),
            scale=3.0,
            read=lambda m: m.command - m.sensor(*POSITIONS),
        ),
        Term(name="last_action", unit="", sources=("action",), read=lambda m: m.action),
    )


class ArmTask(Task):
    """A task of the desk arm whose actions move joint targets."""

    rate_hz = 25.0
    tool = "tool"
    step_rad: ClassVar[float] = 0.12
    """Farthest a target moves in one period [rad]."""

    def __init__(self, worlds: Worlds) -> None:
        super().__init__(worlds)
        model = worlds.model
        addresses = [int(model.joint(j).qposadr[0]) for j in JOINTS]
        self._qpos = torch.tensor(addresses, device=worlds.device)
        limits = torch.from_numpy(model.actuator_ctrlrange).float().to(worlds.device)
        self._low, self._high = limits[:, 0], limits[:, 1]
        self._tool = model.site(self.tool).id
        worlds.derived("site_xpos")
        worlds.derived("site_xmat")

    def start_joints(
        self, ids: Tensor, draw: Draw, home: Sequence[float], *, room: float, moving: int = 6
    ) -> None:
        """Put worlds `ids` at rest, the first joints and their targets within `room` of home."""
        starts = [
            draw.uniform(f"start/{joint}", angle - room, angle + room)
            for joint, angle in zip(JOINTS[:moving], home[:moving], strict=True)
        ]
        still = [torch.full_like(starts[0], k, dtype=torch.float32) for k in home[moving:]]
        angles = torch.stack([*starts, *(angle.double() for angle in still)], dim=1)
        self.worlds.state("qpos")[ids[:, None], self._qpos] = angles
        self.worlds.state("ctrl")[ids] = angles
        self.worlds.memory["command"][ids] = angles.float()

    def command(self, action: Tensor, m: Measurements) -> Tensor:
        """Joint targets [rad]."""
        measured = m.sensor(*POSITIONS)
        moved = m.command + self.step_rad * action
        moved = torch.clamp(moved, measured - MAX_LEAD_RAD, measured + MAX_LEAD_RAD)
        return torch.clamp(moved, self._low, self._high)

    def rest(self, m: Measurements) -> Tensor:
        """Joint targets where the joints are [rad]."""
        return torch.clamp(m.sensor(*POSITIONS), self._low, self._high)

    def tool_pose(self) -> tuple[Tensor, Tensor]:
        """True position (worlds, 3) [m] and rotation (worlds, 3, 3) of the tool."""
        position = self.worlds.derived("site_xpos")[:, self._tool]
        rotation = self.worlds.derived("site_xmat")[:, self._tool]
        return position, rotation.view(-1, 3, 3)
