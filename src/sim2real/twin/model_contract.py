"""What a twin measures and commands, as a contract without a task; and the limits of its model."""

from __future__ import annotations

import math

import mujoco
import numpy as np

from sim2real.contract import CommandSpec, Contract, JointLimits, Limits, SensorSpec
from sim2real.errors import Sim2RealError
from sim2real.twin.effects import Effects
from sim2real.twin.twin import Twin
from sim2real.twin.units import control_unit, sensor_unit

_OBJECTS = {
    int(mujoco.mjtObj.mjOBJ_JOINT): "joint",
    int(mujoco.mjtObj.mjOBJ_SITE): "site",
    int(mujoco.mjtObj.mjOBJ_BODY): "body",
    int(mujoco.mjtObj.mjOBJ_XBODY): "body",
    int(mujoco.mjtObj.mjOBJ_ACTUATOR): "actuator",
    int(mujoco.mjtObj.mjOBJ_GEOM): "geom",
}
SPEED = {"rad": 2.0, "m": 0.25, "": 10.0}
"""Speed limit of a joint by default: a hinge's servo [rad/s], a slide's [m/s], and a joint that is
not driven to positions [rad/s or m/s]."""
_OVERSPEED = 2.0
"""Speed limit of a servo's joint relative to that of its command: servos catch up."""
_MIN_SWING_S = 0.05
"""Shortest time in which a torque, voltage or speed command may cross its whole range [s]."""
_IN_SITE = ("accelerometer", "velocimeter", "gyro", "force", "torque", "magnetometer")


def twin_contract(twin: Twin, rate_hz: float) -> Contract:
    """Sensors and commands of a twin at a control rate [Hz], without a task or a policy."""
    if not (math.isfinite(rate_hz) and rate_hz > 0):
        raise Sim2RealError(f"the control rate must be positive and finite, not {rate_hz:g} Hz")
    compiled = twin.compile()
    model = compiled.model
    return Contract(
        task="",
        robot=twin.name,
        twin_version=twin.version,
        rate_hz=rate_hz,
        history=1,
        sensors=tuple(sensor_spec(twin, model, compiled.effects, k) for k in range(model.nsensor)),
        goals=(),
        observations=(),
        actions=(),
        commands=tuple(command_spec(model, compiled.effects, k) for k in range(model.nu)),
    )


def model_limits(twin: Twin, contract: Contract, *, speed: float | None = None) -> Limits:
    """Limits of a robot without a trained policy: those of its model, and a moderate speed.

    `speed` [rad/s or m/s] is how fast the command of a position servo may move, and how fast any
    other joint may get; by default `SPEED`. The other limits follow from it: a servo's joint is too
    fast at twice that speed, and a joint that stops within one period accelerates too much.
    """
    if speed is not None and not (math.isfinite(speed) and speed > 0):
        raise Sim2RealError(f"the speed must be positive and finite, not {speed:g}")
    model = twin.compile().model
    if not model.nu:
        raise Sim2RealError(f"twin {twin.name!r} has no actuator: there is nothing to command")
    return Limits(
        joints=tuple(
            _model_joint(model, command, contract.rate_hz, speed) for command in contract.commands
        ),
        observation_low=(),
        observation_high=(),
    )


def _model_joint(
    model: mujoco.MjModel, command: CommandSpec, rate_hz: float, speed: float | None
) -> JointLimits:
    low, high, force = range_and_torque(model, command)
    servo = command.unit in ("rad", "m")
    moderate = speed if speed is not None else SPEED[command.unit if servo else ""]
    velocity = _OVERSPEED * moderate if servo else moderate
    return JointLimits(
        name=command.joint,
        position_low=low,
        position_high=high,
        velocity=velocity,
        acceleration=velocity * rate_hz,
        torque=force,
        command_low=command.low,
        command_high=command.high,
        command_rate=moderate if servo else (command.high - command.low) / _MIN_SWING_S,
    )


def range_and_torque(model: mujoco.MjModel, command: CommandSpec) -> tuple[float, float, float]:
    """Lowest and highest position of a command's joint, and the most torque it can get there."""
    joint = model.joint(command.joint).id
    low, high = (
        (float(v) for v in model.jnt_range[joint]) if model.jnt_limited[joint] else (-1e9, 1e9)
    )
    row = model.actuator(command.name).id
    torque = float(np.abs(model.actuator_forcerange[row]).max())
    if not torque:
        # A motor without a limit of its own gives what its control range allows.
        gain = abs(float(model.actuator_gainprm[row, 0]) * float(model.actuator_gear[row, 0]))
        torque = gain * max(abs(command.low), abs(command.high))
    return low, high, torque


def sensor_spec(twin: Twin, model: mujoco.MjModel, effects: Effects, row: int) -> SensorSpec:
    name = model.sensor(row).name
    kind = mujoco.mjtSensor(int(model.sensor_type[row])).name.removeprefix("mjSENS_").lower()
    what = _OBJECTS.get(int(model.sensor_objtype[row]), "")
    of = getattr(model, what)(int(model.sensor_objid[row])).name if what else ""
    frame = ""
    if kind in _IN_SITE:
        frame = "site"
    elif kind.startswith("frame"):
        alone = int(model.sensor_reftype[row]) == int(mujoco.mjtObj.mjOBJ_UNKNOWN)
        frame = "world" if alone else "reference"
    mine = effects.sensors.get(name)
    sources = [f"sensor/{name}"] + ([f"joint/{of}"] if kind == "jointpos" else [])
    return SensorSpec(
        name=name,
        unit=sensor_unit(model, row),
        width=int(model.sensor_dim[row]),
        kind=kind,
        of=of,
        frame=frame,
        quaternion="wxyz" if kind.endswith("quat") else "",
        channel=next((n for n, c in twin.channels.items() if c.source in sources), ""),
        delay_s=mine.delay if mine else 0.0,
    )


def command_spec(model: mujoco.MjModel, effects: Effects, row: int) -> CommandSpec:
    name = model.actuator(row).name
    joint = int(model.actuator_trnid[row, 0])
    low, high = (float(value) for value in model.actuator_ctrlrange[row])
    if not model.actuator_ctrllimited[row]:
        low, high = -1e9, 1e9
    unit = control_unit(model, row)
    mine = effects.actuators.get(name)
    gain, bias = model.actuator_gainprm[row], model.actuator_biasprm[row]
    servo = unit in ("rad", "m")
    dc = int(model.actuator_biastype[row]) == int(mujoco.mjtBias.mjBIAS_DCMOTOR)
    stiffness = float(gain[4] if dc else gain[0]) if servo else 0.0
    damping = float(gain[6] if dc else -bias[2]) if servo else 0.0
    return CommandSpec(
        name=name,
        joint=model.joint(joint).name,
        unit=unit,
        low=low,
        high=high,
        default=float(model.qpos0[model.jnt_qposadr[joint]]) if servo else 0.0,
        stiffness=stiffness,
        damping=damping,
        delay_s=mine.delay if mine else 0.0,
    )
