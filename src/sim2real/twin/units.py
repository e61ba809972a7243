"""Units of what a model's sensors read and its actuators take."""

from __future__ import annotations

import mujoco

from sim2real.twin.attributes import actuator_kind

_SENSOR = {
    mujoco.mjtSensor.mjSENS_ACCELEROMETER: "m/s^2",
    mujoco.mjtSensor.mjSENS_VELOCIMETER: "m/s",
    mujoco.mjtSensor.mjSENS_GYRO: "rad/s",
    mujoco.mjtSensor.mjSENS_FORCE: "N",
    mujoco.mjtSensor.mjSENS_TORQUE: "N m",
    mujoco.mjtSensor.mjSENS_RANGEFINDER: "m",
    mujoco.mjtSensor.mjSENS_FRAMEPOS: "m",
    mujoco.mjtSensor.mjSENS_FRAMELINVEL: "m/s",
    mujoco.mjtSensor.mjSENS_FRAMEANGVEL: "rad/s",
    mujoco.mjtSensor.mjSENS_FRAMELINACC: "m/s^2",
    mujoco.mjtSensor.mjSENS_TENDONPOS: "m",
    mujoco.mjtSensor.mjSENS_TENDONVEL: "m/s",
}
_OF_JOINT = {
    mujoco.mjtSensor.mjSENS_JOINTPOS: ("rad", "m"),
    mujoco.mjtSensor.mjSENS_JOINTVEL: ("rad/s", "m/s"),
    mujoco.mjtSensor.mjSENS_JOINTACTFRC: ("N m", "N"),
}
_OF_ACTUATOR = {
    mujoco.mjtSensor.mjSENS_ACTUATORPOS: ("rad", "m"),
    mujoco.mjtSensor.mjSENS_ACTUATORVEL: ("rad/s", "m/s"),
    mujoco.mjtSensor.mjSENS_ACTUATORFRC: ("N m", "N"),
}


def sensor_unit(model: mujoco.MjModel, sensor: int) -> str:
    """SI unit of a sensor's readings; '' for a ratio, a quaternion, or what is not known."""
    kind = mujoco.mjtSensor(int(model.sensor_type[sensor]))
    thing = int(model.sensor_objid[sensor])
    if kind in _OF_JOINT:
        return _OF_JOINT[kind][_slides(model, thing)]
    if kind in _OF_ACTUATOR:
        return _OF_ACTUATOR[kind][_slides(model, int(model.actuator_trnid[thing, 0]))]
    return _SENSOR.get(kind, "")


def control_unit(model: mujoco.MjModel, actuator: int) -> str:
    """SI unit of an actuator's control; '' where it is not known."""
    slides = _slides(model, int(model.actuator_trnid[actuator, 0]))
    kind = actuator_kind(model, actuator)
    if kind == "DC motor":
        kind = mujoco.mj_actuatorInputName(model, actuator, 0)
    units = {
        "position servo": ("rad", "m"),
        "pos": ("rad", "m"),
        "velocity servo": ("rad/s", "m/s"),
        "vel": ("rad/s", "m/s"),
        "plain motor": ("N m", "N"),
        "ff": ("N m", "N"),
        "voltage": ("V", "V"),
    }
    return units[kind][slides] if kind in units else ""


def _slides(model: mujoco.MjModel, joint: int) -> bool:
    slide = int(mujoco.mjtJoint.mjJNT_SLIDE)
    return 0 <= joint < model.njnt and int(model.jnt_type[joint]) == slide
