"""What may go wrong on a robot, how soon it is noticed, what happens then, and who does it.

`SAFETY_RULES` is the table of `docs/robot.md`. A detection bound says how long a robot may move on
what is wrong: `REACTION_S`, or less if a joint could by then be `REACH_RAD` beyond its limit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

REACTION_S = 0.1
"""Longest time in which something wrong that lets a joint move goes unnoticed [s]."""
REACH_RAD = math.radians(2.0)
"""How far beyond its limit a joint could be by then [rad]."""
REACH_M = 0.01
"""The same for a slide [m]."""
POSITION_SLACK = 0.05
"""How far beyond its limits a joint may read: zero errors and soft stops [rad or m]."""
BLOCKED_S = 0.5
"""Time after which a joint that does not follow its command is blocked [s]."""


class Guard(StrEnum):
    """One thing that protects: each can be switched off alone, to prove that it matters."""

    RANGE = "command range"
    RATE = "command rate"
    SOFT_START = "soft start"
    ECHO = "echo"
    OTHER_PROGRAM = "other program"
    LOST = "lost readings"
    NUMBER = "readings are numbers"
    JUMP = "jumping readings"
    STUCK = "stuck readings"
    POSITION = "joint range"
    SPEED = "joint speed"
    ACCELERATION = "joint acceleration"
    TORQUE = "torque"
    TEMPERATURE = "temperature"
    FOLLOWING = "following"
    TOOL = "workspace of the tool"
    LATE = "late periods"
    POLICY = "commands are numbers"
    TRAINING = "observations of training"
    CONNECTION = "connection"
    WATCHDOG = "watchdog"


class Response(StrEnum):
    """What happens to the robot."""

    LIMIT = "limited"
    """The command is brought within its limits, and the run goes on."""
    HOLD = "held"
    """The last command stands, or the robot keeps its position."""
    STOP = "safe stop"
    """The robot's own: it holds its position, brakes or relaxes, as it declares."""
    RELAX = "relaxed"
    """The drives lose their torque, where the robot can do that; else the safe stop."""
    WATCHDOG = "safe stop by the robot"
    """The same, by its watchdog, when commands stay away."""


@dataclass(frozen=True, kw_only=True)
class SafetyRule:
    """One row of the table."""

    hazard: str
    needs: str = ""
    """What the robot must be able to do for it; '' for nothing."""
    guard: Guard
    backup: tuple[Guard, ...] = ()
    """Guards that notice it too."""
    bound: str
    """How long it may last."""
    response: Response
    judge: str = "supervisor"
    """Who notices it."""


_SOON = "100 ms, or the joint 2° beyond its limit"
_NOW = "the period"
SAFETY_RULES = (
    SafetyRule(
        hazard="a command outside its range", guard=Guard.RANGE, backup=(Guard.POSITION,),
        bound=_NOW, response=Response.LIMIT,
    ),
    SafetyRule(
        hazard="a command that changes too fast", guard=Guard.RATE,
        backup=(Guard.SPEED, Guard.ACCELERATION, Guard.TORQUE),
        bound="a step within the time since the last command, at most a period",
        response=Response.LIMIT,
    ),
    SafetyRule(
        hazard="a jump at the start", guard=Guard.SOFT_START,
        backup=(Guard.SPEED, Guard.ACCELERATION, Guard.TORQUE),
        bound="the first second", response=Response.LIMIT,
    ),
    SafetyRule(
        hazard="an echo of what was not sent", guard=Guard.ECHO, backup=(Guard.FOLLOWING,),
        bound=_SOON, response=Response.STOP,
    ),
    SafetyRule(
        hazard="another program that commands the robot", needs="reports_commands",
        guard=Guard.OTHER_PROGRAM, backup=(Guard.FOLLOWING, Guard.SPEED, Guard.ACCELERATION),
        bound="two of its commands in half a second", response=Response.STOP,
    ),
    SafetyRule(
        hazard="readings that stay away or are old", guard=Guard.LOST,
        backup=(Guard.WATCHDOG,),
        bound=f"one is bridged; then {_SOON}", response=Response.HOLD,
    ),
    SafetyRule(
        hazard="a reading that is not a number", guard=Guard.NUMBER, bound=_SOON,
        response=Response.HOLD,
    ),
    SafetyRule(
        hazard="an encoder that jumps", guard=Guard.JUMP,
        backup=(Guard.SPEED, Guard.ACCELERATION, Guard.POSITION, Guard.FOLLOWING),
        bound="one is bridged; the second ends it", response=Response.RELAX,
    ),
    SafetyRule(
        hazard="an encoder that sticks", guard=Guard.STUCK, backup=(Guard.FOLLOWING,),
        bound=f"{_SOON}; 0.2 s from rest", response=Response.RELAX,
    ),
    SafetyRule(
        hazard="a joint beyond its range", guard=Guard.POSITION, backup=(Guard.RANGE,),
        bound=_NOW, response=Response.STOP,
    ),
    SafetyRule(
        hazard="a joint that is too fast", guard=Guard.SPEED, backup=(Guard.ACCELERATION,),
        bound=_NOW, response=Response.STOP,
    ),
    SafetyRule(
        hazard="a joint that accelerates too hard", guard=Guard.ACCELERATION,
        backup=(Guard.SPEED,), bound=_NOW, response=Response.STOP,
    ),
    SafetyRule(
        hazard="too much torque: contact, or overload",
        needs="measures_torque", guard=Guard.TORQUE, backup=(Guard.FOLLOWING,),
        bound=_NOW, response=Response.STOP,
    ),
    SafetyRule(
        hazard="a joint that does not follow: blocked, in contact, without supply",
        needs="servos", guard=Guard.FOLLOWING, backup=(Guard.TORQUE,),
        bound="0.5 s without moving", response=Response.STOP,
    ),
    SafetyRule(
        hazard="a motor that is too hot", needs="measures_temperature",
        guard=Guard.TEMPERATURE, bound=_NOW, response=Response.STOP,
    ),
    SafetyRule(
        hazard="a tool outside its workspace", guard=Guard.TOOL, backup=(Guard.POSITION,),
        bound=_NOW, response=Response.STOP,
    ),
    SafetyRule(
        hazard="a period that begins late", guard=Guard.LATE, backup=(Guard.WATCHDOG,),
        bound="100 ms", response=Response.STOP,
    ),
    SafetyRule(
        hazard="a policy that gives no number", guard=Guard.POLICY, bound=_NOW,
        response=Response.STOP,
    ),
    SafetyRule(
        hazard="a policy far from its training", guard=Guard.TRAINING,
        bound="three periods", response=Response.STOP,
    ),
    SafetyRule(
        hazard="a driver that fails, a robot that stopped by itself", guard=Guard.CONNECTION,
        backup=(Guard.WATCHDOG, Guard.LOST), bound=_NOW, response=Response.STOP,
    ),
    SafetyRule(
        hazard="a link that is cut, a program that is killed or stopped", needs="watchdog_s",
        guard=Guard.WATCHDOG, backup=(Guard.LOST, Guard.LATE), bound="watchdog_s",
        response=Response.WATCHDOG, judge="robot",
    ),
)  # fmt: skip
"""Every rule; a robot that lacks what a rule needs is not protected by it."""
