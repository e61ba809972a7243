"""What a channel holds, read from its name and unit.

A guess, never a proof: whatever is concluded from two channels is first verified on their values.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import StrEnum


class Quantity(StrEnum):
    """What kind of number a channel holds."""

    POSITION = "position"
    VELOCITY = "velocity"
    EFFORT = "effort"
    """Force, torque, current, voltage, acceleration: may jump at any time."""
    TIME = "time"
    OTHER = ""


_POSITION = {
    "q", "pos", "position", "positions", "qpos", "angle", "angles", "theta", "alpha", "joint_pos",
    "encoder", "pose", "x", "y", "z", "xyz", "roll", "pitch", "yaw", "state", "states", "height",
}  # fmt: skip
_VELOCITY = {
    "dq", "qd", "qdot", "vel", "velocity", "velocities", "speed", "speeds", "qvel", "rate", "rates",
    "omega", "dtheta", "dalpha", "thetadot", "alphadot", "thd", "ald", "xd", "dx", "xdot", "gyro",
    "twist",
}  # fmt: skip
_EFFORT = {
    "tau", "torque", "torques", "effort", "efforts", "force", "forces", "load", "pwm", "duty",
    "voltage", "volts", "ddq", "qdd", "acc", "accel", "acceleration", "wrench", "vir", "power",
}  # fmt: skip
_COMMAND = {
    "action", "actions", "act", "command", "commands", "commanded", "cmd", "goal", "target",
    "targets", "ctrl", "control", "controls", "u", "ref", "reference", "des", "desired", "setpoint",
    "applied", "input", "inputs", "con", "demand", "qref", "leader", "vir", "voltage", "asked",
}  # fmt: skip
_DRIVEN = {"voltage", "volts", "pwm", "duty", "load", "effort", "efforts"}
_MEASURED = {
    "observation", "observations", "obs", "state", "states", "meas", "measured", "present",
    "actual", "real", "current", "joint", "joints", "motor", "robot", "follower", "arm",
}  # fmt: skip
_TURNING = {"wheel", "wheels", "motor", "rotor", "drive", "continuous", "winch", "spindle",
            "propeller", "shaft", "turntable", "crank", "encoder"}  # fmt: skip

_UNITS: dict[str, tuple[Quantity, str, float]] = {
    "rad": (Quantity.POSITION, "angle", 1.0),
    "deg": (Quantity.POSITION, "angle", math.pi / 180),
    "m": (Quantity.POSITION, "length", 1.0),
    "mm": (Quantity.POSITION, "length", 1e-3),
    "cm": (Quantity.POSITION, "length", 1e-2),
    "rad/s": (Quantity.VELOCITY, "angle", 1.0),
    "deg/s": (Quantity.VELOCITY, "angle", math.pi / 180),
    "rpm": (Quantity.VELOCITY, "angle", math.pi / 30),
    "m/s": (Quantity.VELOCITY, "length", 1.0),
    "mm/s": (Quantity.VELOCITY, "length", 1e-3),
    "cm/s": (Quantity.VELOCITY, "length", 1e-2),
    "N": (Quantity.EFFORT, "", 1.0),
    "N m": (Quantity.EFFORT, "", 1.0),
    "Nm": (Quantity.EFFORT, "", 1.0),
    "N*m": (Quantity.EFFORT, "", 1.0),
    "V": (Quantity.EFFORT, "", 1.0),
    "A": (Quantity.EFFORT, "", 1.0),
    "m/s^2": (Quantity.EFFORT, "", 1.0),
    "m/s2": (Quantity.EFFORT, "", 1.0),
    "rad/s^2": (Quantity.EFFORT, "", 1.0),
    "s": (Quantity.TIME, "", 1.0),
    "ms": (Quantity.TIME, "", 1e-3),
    "us": (Quantity.TIME, "", 1e-6),
    "ns": (Quantity.TIME, "", 1e-9),
}
"""Quantity, dimension and size in SI of the units that are known."""


@dataclass(frozen=True)
class Role:
    """What a channel seems to hold."""

    quantity: Quantity
    dimension: str
    """'angle', 'length' or '' where the unit does not say."""
    si: float
    """Factor from the stated unit to SI; 1 where it is not known."""
    command: bool
    """Asked for rather than measured."""
    driven: bool
    """Limited by the drive, so that a flat top is no fault: commands, voltages, duty cycles."""
    turning: bool
    """The name tells of something that may turn without end."""
    stem: str
    """The name without the word for its quantity: equal for the position and its velocity."""
    joint: str
    """The stem without the words for asked and measured: equal for a command and its effect."""


def role(name: str, unit: str) -> Role:
    """The role that the name and the unit of a channel suggest."""
    words = _words(name)
    known = _UNITS.get(unit.strip().replace("·", " ").replace("°", "deg"))
    quantity, dimension, si = known or (_by_name(words), "", 1.0)
    command = any(word in _COMMAND for word in words)
    spoken = _POSITION | _VELOCITY | _EFFORT
    stem = [word for word in words if word not in spoken]
    joint = [word for word in stem if word not in _COMMAND | _MEASURED]
    return Role(
        quantity=quantity,
        dimension=dimension,
        si=si,
        command=command,
        driven=command or unit == "V" or any(word in _DRIVEN for word in words),
        turning=any(word in _TURNING for word in words),
        stem=".".join(stem),
        joint=".".join(joint),
    )


def _words(name: str) -> list[str]:
    split = re.sub(r"([a-z])([A-Z])", r"\1 \2", name)
    # A number at the end of a word names the joint: 'pos1' is 'pos' of '1'.
    split = re.sub(r"([A-Za-z])(\d+)", r"\1 \2", split)
    return [word.lower() for word in re.split(r"[^A-Za-z0-9]+", split) if word]


def _by_name(words: list[str]) -> Quantity:
    for word in reversed(words):  # the last word says most: 'velocity_state' is rare
        if word in _VELOCITY:
            return Quantity.VELOCITY
        if word in _EFFORT:
            return Quantity.EFFORT
        if word in _POSITION and word not in ("state", "states"):
            return Quantity.POSITION
    if any(word in ("time", "clock", "stamp", "timestamp") for word in words):
        return Quantity.TIME
    return Quantity.OTHER
