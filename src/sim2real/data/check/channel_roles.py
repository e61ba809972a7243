"""What a channel holds, guessed from its name and unit.

A guess is no proof: before anything is concluded from two channels, their values must confirm it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from sim2real.units import ACCELERATION, EFFORT, POSITION, VELOCITY, known_si_unit


class ChannelQuantity(StrEnum):
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

_EFFORT_UNITS = (*EFFORT, *ACCELERATION, "V", "A")
_OF_UNIT: dict[str, tuple[ChannelQuantity, str]] = {
    POSITION.turning: (ChannelQuantity.POSITION, "angle"),
    POSITION.sliding: (ChannelQuantity.POSITION, "length"),
    VELOCITY.turning: (ChannelQuantity.VELOCITY, "angle"),
    VELOCITY.sliding: (ChannelQuantity.VELOCITY, "length"),
    **dict.fromkeys(_EFFORT_UNITS, (ChannelQuantity.EFFORT, "")),
    "s": (ChannelQuantity.TIME, ""),
}
"""Quantity and dimension by SI unit."""


@dataclass(frozen=True)
class ChannelRole:
    """What a channel seems to hold."""

    quantity: ChannelQuantity
    dimension: str
    """'angle', 'length' or '' where the unit does not say."""
    si: float
    """Factor from the stated unit to SI; 1 where it is not known."""
    command: bool
    """Commanded rather than measured."""
    driven: bool
    """Limited by the drive, so that flat tops are no fault: commands, voltages, duty cycles."""
    turning: bool
    """Named after something that may turn without end."""
    stem: str
    """The name without the word for its quantity: the same for a position and its velocity."""
    joint: str
    """The stem without words such as command or measured: the same for a command and its effect."""


def role(name: str, unit: str) -> ChannelRole:
    """The role that the name and the unit of a channel suggest."""
    words = _words(name)
    converted = known_si_unit(unit.replace("°", "deg"))
    quantity, dimension, si = _by_name(words), "", 1.0
    if converted is not None and converted.unit in _OF_UNIT:
        quantity, dimension = _OF_UNIT[converted.unit]
        si = converted.factor
    command = any(word in _COMMAND for word in words)
    spoken = _POSITION | _VELOCITY | _EFFORT
    stem = [word for word in words if word not in spoken]
    joint = [word for word in stem if word not in _COMMAND | _MEASURED]
    return ChannelRole(
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


def _by_name(words: list[str]) -> ChannelQuantity:
    for word in reversed(words):  # the last word says most: 'velocity_state' is rare
        if word in _VELOCITY:
            return ChannelQuantity.VELOCITY
        if word in _EFFORT:
            return ChannelQuantity.EFFORT
        if word in _POSITION and word not in ("state", "states"):
            return ChannelQuantity.POSITION
    if any(word in ("time", "clock", "stamp", "timestamp") for word in words):
        return ChannelQuantity.TIME
    return ChannelQuantity.OTHER
