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
    """The model of a robot, which checks its limits and finds its tool."""

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
        self._site = tool_site(self._model, limits)

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
        row = _row(joints, joint.name, "the limits name joint")
        actuator = _row(actuators, command.name, "the contract commands")
        low, high = model.jnt_range[row]
        if model.jnt_limited[row] and (
            joint.position_low < low - _SLACK or joint.position_high > high + _SLACK
        ):
            raise Sim2RealError(
                f"the limits let joint {joint.name!r} go from {joint.position_low:g} to"
                f" {joint.position_high:g}, but the model only from {low:g} to {high:g}"
            )
        force = float(np.abs(model.actuator_forcerange[actuator]).max())
        if force and joint.torque > force + _SLACK:
            raise Sim2RealError(
                f"the limits allow joint {joint.name!r} a torque of {joint.torque:g}, but the model"
                f" only {force:g}"
            )


def tool_site(model: mujoco.MjModel, limits: Limits) -> int:
    """Row of the site that the limits name as the tool; -1 where they name none."""
    sites = [model.site(k).name for k in range(model.nsite)]
    return _row(sites, limits.tool, "the limits name the tool") if limits.tool else -1


def _row(names: list[str], name: str, said: str) -> int:
    if name not in names:
        raise Sim2RealError(f"{said} {name!r}, which the model does not have{nearest(name, names)}")
    return names.index(name)
