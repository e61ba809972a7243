"""What a program and the process that guards its robot say to each other."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from sim2real.robot.abilities import RobotAbilities


@dataclass(frozen=True, kw_only=True)
class Opening:
    """What the guarding process is told first."""

    address: str
    """The robot, as `open_on_bus` reads it."""
    watchdog_s: float
    """Longest time without a command [s]."""
    parent: int
    """Process id of the program that drives it."""
    modules: tuple[str, ...]
    """Where that program looks for Python modules."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """One call."""

    number: int
    """Its answer has the same."""
    call: str
    given: tuple[object, ...] = ()
    until_s: float = math.inf
    """When the one who asks stops waiting, on the monotonic clock that processes share [s]."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What became of a call."""

    number: int
    value: object = None
    error: str = ""
    """One line; '' if it worked."""
    connected: bool = False
    stopped: str = ""
    """Why the robot does not obey; '' while it does."""


@dataclass(frozen=True, kw_only=True)
class GuardedIdentity:
    """What the robot is, known once it is connected."""

    name: str
    serial: str
    safe_stop: str
    abilities: RobotAbilities


def guarded_abilities(own: RobotAbilities, watchdog_s: float) -> RobotAbilities:
    """What a robot can do through a guarding process."""
    watchdogs = [seconds for seconds in (own.watchdog_s, watchdog_s) if seconds > 0]
    return replace(
        own, enables=True, reports_why_stopped=True, patience=True, watchdog_s=min(watchdogs)
    )
