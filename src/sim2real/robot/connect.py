"""The robot at an address, and the clock that paces it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sim2real.errors import Sim2RealError
from sim2real.robot.protocol import ControlClock, Robot
from sim2real.robot.remote import RemoteRobot
from sim2real.robot.standin import StandIn


class WallClock:
    """Real time, without jumps."""

    def now(self) -> float:
        """The time [s]."""
        return time.monotonic()

    def sleep_until(self, moment_s: float) -> None:
        """Wait until a moment of this clock."""
        time.sleep(max(0.0, moment_s - time.monotonic()))


def open_robot(address: str, *, task: str = "") -> Robot:
    """The robot at an address, not connected yet; a malformed one is a `Sim2RealError`.

    `HOST:PORT` or `tcp://…` is a robot behind a socket, `lerobot:FILE.toml` one of LeRobot's.
    `unit:7` is unit 7 of the stand-in hardware at the bench of `task`, started for this client and
    in virtual time; `unit:7:real` is the same in real time.
    """
    kind, _, rest = address.partition(":")
    if kind == "unit":
        number, _, clock = rest.partition(":")
        if not number.isdigit() or clock not in ("", "real", "virtual"):
            raise Sim2RealError(f"{address!r} is not a stand-in unit: use unit:7 or unit:7:real")
        if not task:
            raise Sim2RealError(
                "stand-in hardware needs a task: use a bundle that has one, or --task"
            )
        return StandIn(int(number), task, virtual=clock != "real")
    if kind == "lerobot":
        from sim2real.robot.lerobot import from_config

        return from_config(Path(rest))
    if address.isdigit() or "://" in address or (kind and rest.isdigit()):
        return RemoteRobot(address)
    raise Sim2RealError(f"no robot at {address!r}: use HOST:PORT, unit:7 or lerobot:FILE.toml")


@contextmanager
def connected(robot: Robot) -> Iterator[None]:
    """Connect to a robot; however the block ends, let go of it in its safe stop."""
    try:
        robot.connect()
        yield
    finally:
        # A robot that cannot be reached has a watchdog of its own.
        with suppress(Exception):
            robot.disconnect()


def clock_of(robot: Robot) -> ControlClock:
    """The robot's own clock if it has one, else real time."""
    return robot if isinstance(robot, RemoteRobot) else WallClock()
