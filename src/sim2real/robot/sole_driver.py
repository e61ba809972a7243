"""One program at a time drives a robot: a lock by its serial number, on this machine."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from sim2real.errors import Sim2RealError
from sim2real.robot.protocol import Robot


@contextmanager
def sole_driver(robot: Robot, folder: Path | None = None) -> Iterator[None]:
    """While the block runs, no other program on this machine may send commands to this robot.

    If one does already, it is a `Sim2RealError` that names its process. The lock is the operating
    system's and goes with its process, however that ends. It lies in `folder`, by default one
    of the temporary folder that all users share, under the robot's name and serial number. A robot
    that this program started, and one without a serial number, are not locked.
    """
    if robot.abilities.owned or not robot.serial:
        yield
        return
    file = _opened(_lock_file(robot, folder))
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Sim2RealError(
                f"{robot.name} {robot.serial} is driven by {_holder(file)}; only one program may"
                " command a robot"
            ) from None
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()} {datetime.now():%H:%M}".encode(), 0)
        yield
    finally:
        os.close(file)


def _lock_file(robot: Robot, folder: Path | None) -> Path:
    """The file of a robot's lock; it stays, for a file that is removed locks out nobody."""
    named = f"{robot.name} {robot.serial}"
    readable = re.sub(r"[^\w.-]+", "-", named)[:60]
    digest = hashlib.sha256(named.encode()).hexdigest()[:8]
    return (folder or Path(tempfile.gettempdir()) / "sim2real-drivers") / f"{readable}-{digest}"


def _opened(path: Path) -> int:
    """The file of a lock, which any user of the machine may open."""
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        if not path.parent.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            with suppress(OSError):
                path.parent.chmod(0o777)
        try:
            return os.open(path, flags)
        except FileNotFoundError:
            file = os.open(path, flags | os.O_CREAT, 0o666)
            with suppress(OSError):
                os.fchmod(file, 0o666)
            return file
    except OSError as error:
        raise Sim2RealError(
            f"cannot tell whether another program drives the robot: {path}: {error.strerror}"
        ) from None


def _holder(file: int) -> str:
    process, _, since = os.pread(file, 100, 0).decode(errors="replace").partition(" ")
    if not process:
        return "another process"
    mine = ", which is this one" if process == str(os.getpid()) else ""
    return f"process {process}{mine} (since {since})"
