"""The TOML file that describes a LeRobot robot, and the robot that LeRobot builds from it."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Literal

from sim2real.errors import Sim2RealError, explaining, nearest, one_line
from sim2real.files import read_toml
from sim2real.plain import NotNegative, of_plain
from sim2real.robot.driver_names import DriverTables
from sim2real.robot.guarded_robot import WATCHDOG_S, GuardedRobot, check_watchdog
from sim2real.robot.lerobot import LeRobotDriver, LeRobotRobot, lerobot_abilities
from sim2real.robot.protocol import Robot


@dataclass(frozen=True, kw_only=True)
class RobotHeader:
    """How LeRobot knows a robot."""

    type: str
    """LeRobot's name for the robot, such as "so101_follower"."""
    stop: Literal["hold", "limp"] = "hold"
    """One of `STOPS`."""
    watchdog_s: NotNegative = WATCHDOG_S
    """Longest time without a command before its guarding process stops it [s]; 0 for none."""
    temperature: bool = False
    """Whether to read the temperatures of its motors, once a second."""
    module: str = ""
    """Package that defines the robot, if it is not LeRobot itself."""
    config: Mapping[str, object] = field(default_factory=dict)
    """Fields of LeRobot's own configuration for it."""

    def __post_init__(self) -> None:
        if self.watchdog_s:
            check_watchdog(self.watchdog_s)


@dataclass(frozen=True, kw_only=True)
class RobotFile(DriverTables):
    """What a robot's TOML file says."""

    robot: RobotHeader


def read_file(path: Path) -> RobotFile:
    """The robot described in a TOML file; a malformed one is a `Sim2RealError` of one line."""
    return of_plain(RobotFile, read_toml(path), str(path))


def from_config(path: Path) -> LeRobotRobot:
    """The robot described in a TOML file, built by LeRobot and not connected yet.

    Without LeRobot, or with a type or a setting it does not know, it is a `Sim2RealError`.
    """
    file = read_file(path)
    header = file.robot
    return LeRobotRobot(
        _build(path, header), names=file.names, stop=header.stop, temperature=header.temperature
    )


def guarded_from_config(path: Path) -> Robot:
    """The robot described in a TOML file, behind a process that owns its bus.

    That process builds and connects it on `connect`. With `watchdog_s = 0` there is none, and the
    robot has no watchdog.
    """
    file = read_file(path)
    header = file.robot
    if not header.watchdog_s:
        return from_config(path)
    return GuardedRobot(
        f"lerobot:{path}",
        watchdog_s=header.watchdog_s,
        name=header.type,
        safe_stop=header.stop,
        abilities=lerobot_abilities(file.names, stop=header.stop, temperature=header.temperature),
    )


def _build(path: Path, file: RobotHeader) -> LeRobotDriver:
    try:
        robots = import_module("lerobot.robots")
        make = import_module("lerobot.robots.utils").make_robot_from_config
        draccus = import_module("draccus")
    except ImportError as error:
        raise Sim2RealError(
            f"{path} needs LeRobot, which cannot be imported ({one_line(error)}): pip install"
            " lerobot with the extra for your motors, such as lerobot[feetech]"
        ) from None
    if file.module:
        with explaining(f"{path}: module {file.module}", ImportError):
            import_module(file.module)
    known = robots.RobotConfig.get_known_choices()
    failed = ""
    for entry in pkgutil.iter_modules(robots.__path__, "lerobot.robots."):
        if file.type in known:
            break
        # A robot is known once its package is imported; others may lack their own libraries.
        try:
            import_module(entry.name)
        except Exception as error:
            failed = failed or f" ({entry.name}: {one_line(error)})"
        known = robots.RobotConfig.get_known_choices()
    if file.type not in known:
        raise Sim2RealError(
            f"{path}: LeRobot has no robot {file.type!r}{nearest(file.type, known)}{failed}"
        )
    with explaining(f"{path}: LeRobot rejects [robot.config]"):
        config = draccus.decode(robots.RobotConfig, {"type": file.type, **file.config})
        robot: LeRobotDriver = make(config)
        return robot
