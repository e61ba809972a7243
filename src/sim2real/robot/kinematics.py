"""Where a robot's tool is, from its joint readings and the model in its bundle."""

from __future__ import annotations

import mujoco
import numpy as np

from sim2real.arrays import Floats, Reals
from sim2real.contract import Contract, Limits
from sim2real.errors import Sim2RealError, nearest
from sim2real.twin import Twin

_SLACK = 1e-6


class Kinematics:
    """The model of a robot, to hold its limits against and to find its tool with."""

    def __init__(self, twin: Twin, contract: Contract, limits: Limits) -> None:
        """Limits that contradict the model, or name what it does not have, are a `Sim2RealError`.

        The model is the twin's, as written.
        """
        self._model = twin.compile().model
        self._data = mujoco.MjData(self._model)
        _check(self._model, contract, limits)
        columns = contract.columns("jointpos")
        self._columns = list(columns.values())
        self._addresses = [int(self._model.joint(joint).qposadr[0]) for joint in columns]
        self._site = self._model.site(limits.tool).id if limits.tool else -1

    def tool(self, readings: Reals) -> Floats | None:
        """Position (3,) of the tool [m]; None where there is none."""
        if self._site < 0:
            return None
        self._data.qpos[self._addresses] = readings[self._columns]
        mujoco.mj_kinematics(self._model, self._data)
        return np.array(self._data.site_xpos[self._site])


def _check(model: mujoco.MjModel, contract: Contract, limits: Limits) -> None:
    joints = [model.joint(k).name for k in range(model.njnt)]
    actuators = [model.actuator(k).name for k in range(model.nu)]
    for command, joint in zip(contract.commands, limits.joints, strict=True):
        if joint.name not in joints:
            raise Sim2RealError(
                f"the limits name joint {joint.name!r}, which the model does not have"
                f"{nearest(joint.name, joints)}"
            )
        if command.name not in actuators:
            raise Sim2RealError(
                f"the contract commands {command.name!r}, which the model does not have"
                f"{nearest(command.name, actuators)}"
            )
        low, high = model.jnt_range[model.joint(joint.name).id]
        limited = bool(model.jnt_limited[model.joint(joint.name).id])
        if limited and (joint.position_low < low - _SLACK or joint.position_high > high + _SLACK):
            raise Sim2RealError(
                f"the limits let joint {joint.name!r} go from {joint.position_low:g} to"
                f" {joint.position_high:g}, the model from {low:g} to {high:g}"
            )
        force = float(np.abs(model.actuator_forcerange[model.actuator(command.name).id]).max())
        if force and joint.torque > force + _SLACK:
            raise Sim2RealError(
                f"the limits let joint {joint.name!r} have a torque of {joint.torque:g}, the model"
                f" {force:g}"
            )
    sites = [model.site(k).name for k in range(model.nsite)]
    if limits.tool and limits.tool not in sites:
        raise Sim2RealError(
            f"the limits name the tool {limits.tool!r}, which the model does not have"
            f"{nearest(limits.tool, sites)}"
        )
