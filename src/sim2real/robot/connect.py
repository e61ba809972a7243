"""The robot at an address, and the clock that paces it: the one place that reads addresses."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import cast

from sim2real.errors import Sim2RealError, explaining
from sim2real.named import is_named, named_object
from sim2real.robot.abilities import RobotAbilities
from sim2real.robot.protocol import ControlClock, Robot
from sim2real.robot.remote import RemoteRobot
from sim2real.robot.standin import STAND_IN, StandIn
from sim2real.tasks import find_task

ADDRESSES = "HOST:PORT, lerobot:FILE.toml, package.module:Class, or unit:7 for stand-in hardware"
_GUARDED = "guarded:"
"""What an address begins with whose robot gets a guarding process."""
"""What an address may be, for messages."""
_UNITS = "9deaae158f408a5c"
"""Names the behaviour of stand-in hardware. It changes with that behaviour, so that nothing goes on
with what another unit did."""

_METHODS: Mapping[str, tuple[str, ...]] = {
    "enables": ("enable",),
    "reports_why_stopped": ("stopped_itself",),
    "relaxes": ("relax",),
    "states_limits": ("joint_limits",),
    "resets": ("reset", "goals"),
    "judges": ("judge",),
    "virtual_time": ("now", "sleep_until"),
    "patience": ("patience_s",),
}
"""What a robot must have that declares an ability."""


class WallClock:
    """Real time, without jumps."""

    def now(self) -> float:
        """The time [s]."""
        return time.monotonic()

    def sleep_until(self, moment_s: float) -> None:
        """Wait until a moment of this clock."""
        time.sleep(max(0.0, moment_s - time.monotonic()))


@dataclass(frozen=True, kw_only=True)
class RobotScheme:
    """A kind of address."""

    fits: Callable[[str], bool]
    """Whether an address is of this kind."""
    open: Callable[[str, str], Robot]
    """The robot at an address, at the bench of a task."""
    on_bus: Callable[[str], Robot] | None = None
    """The robot at an address that is driven by this very process; None if another has its bus."""
    behind: Callable[[str], str] = lambda address: ""
    """What is known of the robot behind an address: if that changes, it is another robot."""
    abilities: Callable[[str], RobotAbilities] = lambda address: RobotAbilities()
    """What is known of what the robot at an address can do, before it is connected."""


def open_robot(address: str, *, task: str = "") -> Robot:
    """The robot at an address, not connected yet; a malformed one is a `Sim2RealError`.

    `HOST:PORT` or `tcp://…` is a robot behind a socket, `lerobot:FILE.toml` one of LeRobot's, and
    `package.module:Class` a `Robot` in Python. `unit:7` is unit 7 of the stand-in hardware at the
    bench of `task`, started for this client and in virtual time; `unit:7:real` is the same in real
    time. `guarded:package.module:Class` is opened by a process of its own, which stops the robot
    when this program falls silent; so is one of LeRobot's.
    """
    return robot_scheme(address).open(address, task)


def open_on_bus(address: str) -> Robot:
    """The robot at an address, driven by this process, with nothing that guards it."""
    here = robot_scheme(address).on_bus
    if here is None:
        raise Sim2RealError(
            f"{address!r} cannot be guarded: another process drives that robot already; use"
            " guarded:package.module:Class"
        )
    return here(address)


def refuse_other_robot(robot: Robot, expected_serial: str, address: str) -> None:
    """Refuse the robot behind an address if an earlier one there had another serial number.

    To be called once it is connected and before the first command; '' expects nothing.
    """
    if expected_serial and robot.serial != expected_serial:
        raise Sim2RealError(
            f"another robot answers at {address}: {robot.name} {robot.serial or 'without serial'},"
            f" before it was {expected_serial}; it was sent no command"
        )


def robot_scheme(address: str) -> RobotScheme:
    """The kind of an address; one that is of none is a `Sim2RealError`."""
    for scheme in _SCHEMES:
        if scheme.fits(address):
            return scheme
    raise Sim2RealError(f"no robot at {address!r}: use {ADDRESSES}")


@contextmanager
def connected(robot: Robot) -> Iterator[None]:
    """Connect to a robot; however the block ends, let go of it in its safe stop.

    One that has not what it declares is a `Sim2RealError`.
    """
    try:
        robot.connect()
        check_abilities(robot)
        yield
    finally:
        # A robot that cannot be reached has a watchdog of its own.
        with suppress(Exception):
            robot.disconnect()


def clock_of(robot: Robot) -> ControlClock:
    """The robot's own clock if its time is virtual, else real time."""
    return cast(ControlClock, robot) if robot.abilities.virtual_time else WallClock()


def check_abilities(robot: Robot) -> None:
    """Refuse a robot that has not what it declares."""
    declared = {part.name for part in fields(RobotAbilities) if getattr(robot.abilities, part.name)}
    for ability in sorted(declared & set(_METHODS)):
        missing = [name for name in _METHODS[ability] if not hasattr(robot, name)]
        if missing:
            raise Sim2RealError(
                f"robot {robot.name!r} declares that it {ability}, but has no {', '.join(missing)}"
            )


def _open_unit(address: str, task: str) -> Robot:
    number, _, clock = address.partition(":")[2].partition(":")
    if not number.isdigit() or clock not in ("", "real", "virtual"):
        raise Sim2RealError(f"{address!r} is not a stand-in unit: use unit:7 or unit:7:real")
    if not task:
        raise Sim2RealError("stand-in hardware needs a task: use a bundle that has one, or --task")
    bench = find_task(task).bench
    if not bench:
        raise Sim2RealError(f"there is no stand-in hardware for task {task!r}: it names no bench")
    return StandIn(int(number), bench, virtual=clock != "real")


def _open_lerobot(address: str, _: str) -> Robot:
    from sim2real.robot.lerobot_file import guarded_from_config

    return guarded_from_config(Path(address.partition(":")[2]))


def _lerobot_on_bus(address: str) -> Robot:
    from sim2real.robot.lerobot_file import from_config

    return from_config(Path(address.partition(":")[2]))


def _open_guarded(address: str, _: str) -> Robot:
    from sim2real.robot.guarded_robot import GuardedRobot

    inner = address.removeprefix(_GUARDED)
    if robot_scheme(inner).on_bus is None:
        raise Sim2RealError(f"{address!r}: only guarded:package.module:Class can be guarded")
    return GuardedRobot(inner)


def _hash_of_file(address: str) -> str:
    file = Path(address.partition(":")[2])
    with explaining(f"cannot read {file}", OSError):
        return hashlib.sha256(file.read_bytes()).hexdigest()[:16]


def _open_object(address: str, _: str) -> Robot:
    found = named_object(address, "robot")
    if not isinstance(found, Robot):
        raise Sim2RealError(
            f"{address} is no robot: it lacks a method of Robot, or `abilities`; see docs/robot.md"
        )
    check_abilities(found)
    return found


def _is_socket(address: str) -> bool:
    kind, _, rest = address.partition(":")
    return address.isdigit() or "://" in address or bool(kind and rest.isdigit())


_SCHEMES = (
    RobotScheme(
        fits=lambda address: address.partition(":")[0] == "unit",
        open=_open_unit,
        behind=lambda address: _UNITS,
        abilities=lambda address: STAND_IN,
    ),
    RobotScheme(
        fits=lambda address: address.partition(":")[0] == "lerobot",
        open=_open_lerobot,
        on_bus=_lerobot_on_bus,
        behind=_hash_of_file,
    ),
    RobotScheme(fits=lambda address: address.startswith(_GUARDED), open=_open_guarded),
    RobotScheme(fits=_is_socket, open=lambda address, _: RemoteRobot(address)),
    RobotScheme(
        fits=is_named,
        open=_open_object,
        on_bus=lambda address: _open_object(address, ""),
        abilities=lambda address: _open_object(address, "").abilities,
    ),
)
