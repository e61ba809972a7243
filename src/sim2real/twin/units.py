"""Units of what a model's sensors read and its actuators take."""

from __future__ import annotations

import mujoco

from sim2real.twin.attributes import actuator_kind
from sim2real.units import ACCELERATION, EFFORT, POSITION, VELOCITY, JointUnit

_SENSOR = {
    mujoco.mjtSensor.mjSENS_ACCELEROMETER: ACCELERATION.sliding,
    mujoco.mjtSensor.mjSENS_VELOCIMETER: VELOCITY.sliding,
    mujoco.mjtSensor.mjSENS_GYRO: VELOCITY.turning,
    mujoco.mjtSensor.mjSENS_FORCE: EFFORT.sliding,
    mujoco.mjtSensor.mjSENS_TORQUE: EFFORT.turning,
    mujoco.mjtSensor.mjSENS_RANGEFINDER: POSITION.sliding,
    mujoco.mjtSensor.mjSENS_FRAMEPOS: POSITION.sliding,
    mujoco.mjtSensor.mjSENS_FRAMELINVEL: VELOCITY.sliding,
    mujoco.mjtSensor.mjSENS_FRAMEANGVEL: VELOCITY.turning,
    mujoco.mjtSensor.mjSENS_FRAMELINACC: ACCELERATION.sliding,
    mujoco.mjtSensor.mjSENS_TENDONPOS: POSITION.sliding,
    mujoco.mjtSensor.mjSENS_TENDONVEL: VELOCITY.sliding,
}
_OF_JOINT = {
    mujoco.mjtSensor.mjSENS_JOINTPOS: POSITION,
    mujoco.mjtSensor.mjSENS_JOINTVEL: VELOCITY,
    mujoco.mjtSensor.mjSENS_JOINTACTFRC: EFFORT,
}
_OF_ACTUATOR = {
    mujoco.mjtSensor.mjSENS_ACTUATORPOS: POSITION,
    mujoco.mjtSensor.mjSENS_ACTUATORVEL: VELOCITY,
    mujoco.mjtSensor.mjSENS_ACTUATORFRC: EFFORT,
}
_OF_CONTROL = {
    "position servo": POSITION,
    "pos": POSITION,
    "velocity servo": VELOCITY,
    "vel": VELOCITY,
    "plain motor": EFFORT,
    "ff": EFFORT,
    "voltage": JointUnit("V", "V"),
}


def sensor_unit(model: mujoco.MjModel, sensor: int) -> str:
    """SI unit of a sensor's readings; '' for a ratio, a quaternion or an unknown quantity."""
    kind = mujoco.mjtSensor(int(model.sensor_type[sensor]))
    thing = int(model.sensor_objid[sensor])
    if kind in _OF_JOINT:
        return _OF_JOINT[kind][_slides(model, thing)]
    if kind in _OF_ACTUATOR:
        return _OF_ACTUATOR[kind][_slides(model, int(model.actuator_trnid[thing, 0]))]
    return _SENSOR.get(kind, "")


def control_unit(model: mujoco.MjModel, actuator: int) -> str:
    """SI unit of an actuator's control; '' if unknown."""
    slides = _slides(model, int(model.actuator_trnid[actuator, 0]))
    kind = actuator_kind(model, actuator)
    if kind == "DC motor":
        kind = mujoco.mj_actuatorInputName(model, actuator, 0)
    return _OF_CONTROL[kind][slides] if kind in _OF_CONTROL else ""


def _slides(model: mujoco.MjModel, joint: int) -> bool:
    slide = int(mujoco.mjtJoint.mjJNT_SLIDE)
    return 0 <= joint < model.njnt and int(model.jnt_type[joint]) == slide
