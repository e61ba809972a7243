"""Whether a planned motion stays clear of obstacles, checked in the twin before it is sent.

Joints with position servos follow the plan exactly, checked every few millimetres; any other joint
goes where the simulated twin goes under the plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import mujoco
import numpy as np

from sim2real.arrays import Bools, Floats
from sim2real.contract import Contract, Limits
from sim2real.robot.excite.plan import ExcitationPlan
from sim2real.robot.kinematics import tool_site
from sim2real.twin import Twin

CLEAR_M = 0.01
"""Least distance between a planned motion and anything it could hit [m]: a real arm sags."""
SPEED_SHARE = 0.6
"""Share of a speed limit that the simulated twin may reach; the real robot may be faster."""
_CHECK_STEP = 0.03
"""Largest change of a joint between two checked poses [rad or m]."""
_BLAMED_SHARE = 0.2
"""A joint is to blame if it contributes at least this share of the largest contribution."""
_CLOSER_M = 0.001
"""How much closer two shapes may come that are too close from the start [m]."""


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """Why a plan is not clear."""

    row: int
    """First row of the plan where it happens."""
    what: str
    blamed: Bools
    """(commands,) whether the joint's motion causes it."""


class Clearance:
    """The twin of a robot, in which plans are checked before they are sent."""

    def __init__(self, twin: Twin, contract: Contract, limits: Limits) -> None:
        """Limits that name what the model does not have are a `Sim2RealError`."""
        self._contract, self._limits = contract, limits
        self._moved = twin.compile().model
        self._model = twin.compile().model
        self._model.geom_margin[:] = np.maximum(self._model.geom_margin, CLEAR_M)
        joints = [self._moved.joint(command.joint) for command in contract.commands]
        self._places = np.array([int(joint.qposadr[0]) for joint in joints])
        self._dofs = np.array([int(joint.dofadr[0]) for joint in joints])
        self._actuators = np.array([self._moved.actuator(c.name).id for c in contract.commands])
        self._driven = _driven(self._moved, [int(joint.bodyid[0]) for joint in joints])
        self._site = tool_site(self._moved, limits)

    def default_readings(self) -> Floats:
        """(numbers,) what the sensors read in the twin's default pose."""
        data = mujoco.MjData(self._moved)
        mujoco.mj_forward(self._moved, data)
        parts = [
            np.array(data.sensor(sensor.name).data, dtype=float)
            for sensor in self._contract.sensors
        ]
        return np.concatenate(parts)

    def trouble(
        self, plan: ExcitationPlan, readings: Floats, *, home: Floats | None = None
    ) -> Trouble | None:
        """The first problem of a plan from these readings; None if there is none.

        What is close at the start, or in the pose `home` (commands,) where the robot has been, may
        stay as close.
        """
        positions, found = self._foresee(plan, readings)
        return found or self._touched(plan, positions, readings, home)

    def _foresee(self, plan: ExcitationPlan, readings: Floats) -> tuple[Floats, Trouble | None]:
        """Positions (periods, commands) of the joints, and the first limit they break."""
        servo = plan.envelope.servo
        if servo.all():
            return plan.commands, None
        model, data = self._moved, mujoco.MjData(self._moved)
        self._place(model, data, readings)
        for joint, column in self._contract.columns("jointvel").items():
            data.qvel[int(model.joint(joint).dofadr[0])] = readings[column]
        steps = max(1, round(1.0 / plan.rate_hz / model.opt.timestep))
        positions, speeds = np.empty_like(plan.commands), np.empty_like(plan.commands)
        for row, command in enumerate(plan.commands):
            data.ctrl[self._actuators] = command
            mujoco.mj_step(model, data, steps)
            positions[row], speeds[row] = data.qpos[self._places], data.qvel[self._dofs]
        limits = self._limits.joints
        for k in np.flatnonzero(~servo):
            fast = np.abs(speeds[:, k]) > SPEED_SHARE * limits[k].velocity
            low, high = limits[k].position_low, limits[k].position_high
            out = (positions[:, k] < low) | (positions[:, k] > high)
            for wrong, does in ((fast, "gets too fast"), (out, "leaves its range")):
                if not np.isfinite(positions[:, k]).all() or wrong.any():
                    blamed = np.arange(len(servo)) == k
                    what = f"joint {limits[k].name} {does}"
                    return positions, Trouble(row=int(np.argmax(wrong)), what=what, blamed=blamed)
        return np.where(servo, plan.commands, positions), None

    def _touched(
        self,
        plan: ExcitationPlan,
        positions: Floats,
        readings: Floats,
        home: Floats | None,
    ) -> Trouble | None:
        model, data = self._model, mujoco.MjData(self._model)
        self._place(model, data, readings)
        first = last = data.qpos[self._places].copy()
        near: dict[tuple[int, int], float] = {}
        been = np.where(plan.envelope.servo, first if home is None else home, first)
        for pose in (been, first):
            data.qpos[self._places] = pose
            mujoco.mj_fwdPosition(model, data)
            for _, pair, distance in self._near(data):
                near[pair] = min(near.get(pair, np.inf), distance)
        for row, pose in enumerate(positions):
            parts = max(1, int(np.ceil(np.abs(pose - last).max() / _CHECK_STEP)))
            for part in range(1, parts + 1):
                data.qpos[self._places] = last + (pose - last) * part / parts
                mujoco.mj_fwdPosition(model, data)
                what, slopes = self._wrong(model, data, near)
                if what:
                    part_of = slopes * np.abs(data.qpos[self._places] - first)
                    blamed = part_of >= _BLAMED_SHARE * max(part_of.max(), 1e-9)
                    return Trouble(row=row, what=what, blamed=blamed)
            last = pose
        return None

    def _place(self, model: mujoco.MjModel, data: mujoco.MjData, readings: Floats) -> None:
        """Put joints, and free bodies whose position is measured, where they are."""
        for joint, column in self._contract.columns("jointpos").items():
            data.qpos[int(model.joint(joint).qposadr[0])] = readings[column]
        column = 0
        for sensor in self._contract.sensors:
            if sensor.kind == "framepos" and sensor.frame == "world":
                row = int(model.sensor(sensor.name).objid[0])
                kind = int(model.sensor(sensor.name).objtype[0])
                site = kind == int(mujoco.mjtObj.mjOBJ_SITE)
                body = int(model.site_bodyid[row]) if site else row
                loose = int(model.body_jntadr[body])
                if loose >= 0 and int(model.jnt_type[loose]) == int(mujoco.mjtJoint.mjJNT_FREE):
                    place = int(model.jnt_qposadr[loose])
                    data.qpos[place : place + 3] = readings[column : column + 3]
            column += sensor.width

    def _wrong(
        self, model: mujoco.MjModel, data: mujoco.MjData, near: dict[tuple[int, int], float]
    ) -> tuple[str, Floats]:
        """What is wrong with a pose, and how much each joint contributes to it [m/rad or 1]."""
        for k, pair, distance in self._near(data):
            if distance < min(CLEAR_M, near.get(pair, np.inf) - _CLOSER_M):
                contact = data.contact[k]
                one, two = (
                    self._slopes(model, data, body, contact.pos, contact.frame[:3])
                    for body in model.geom_bodyid[list(pair)]
                )
                names = [model.geom(geom).name or f"geom {geom}" for geom in pair]
                return f"{names[0]} comes near {names[1]}", np.abs(one - two)
        if self._site >= 0:
            tool = data.site_xpos[self._site]
            low, high = np.array(self._limits.workspace_low), np.array(self._limits.workspace_high)
            away = np.where(tool < low, -1.0, np.where(tool > high, 1.0, 0.0))
            if away.any():
                body = int(model.site_bodyid[self._site])
                slopes = self._slopes(model, data, body, tool, away)
                return f"{self._limits.tool} leaves its workspace", np.abs(slopes)
        return "", np.zeros(len(self._dofs))

    def _near(self, data: mujoco.MjData) -> Iterator[tuple[int, tuple[int, int], float]]:
        """Contacts of the robot with anything: which, of which shapes, how far apart [m]."""
        pairs, distances = data.contact.geom, data.contact.dist
        mine = (pairs >= 0).all(axis=1) & self._driven[pairs].any(axis=1) & (distances < CLEAR_M)
        for k in np.flatnonzero(mine):
            yield int(k), (int(pairs[k, 0]), int(pairs[k, 1])), float(distances[k])

    def _slopes(
        self,
        model: mujoco.MjModel,
        data: mujoco.MjData,
        body: int,
        point: Floats,
        along: Floats,
    ) -> Floats:
        """How much each joint moves a point of a body along a direction."""
        jacobian = np.zeros((3, model.nv))
        mujoco.mj_jac(model, data, jacobian, None, point, body)
        found: Floats = (along @ jacobian)[self._dofs]
        return found


def _driven(model: mujoco.MjModel, bodies: list[int]) -> Bools:
    """(geoms,) whether a commanded joint moves the shape."""
    found = np.zeros(model.nbody, dtype=bool)
    for body in range(1, model.nbody):
        found[body] = body in bodies or found[int(model.body_parentid[body])]
    moved: Bools = found[model.geom_bodyid]
    return moved
