"""Stand-in hardware that starts and ends with its client."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace

from sim2real.errors import Sim2RealError
from sim2real.robot.abilities import RobotAbilities
from sim2real.robot.remote import OLD_SERVER, RemoteRobot

STAND_IN = replace(OLD_SERVER, simulated=True, owned=True, repeats=True)
"""What every unit of stand-in hardware can do."""


class StandIn(RemoteRobot):
    """One unit of stand-in hardware in a process of its own, from `connect` to `disconnect`."""

    process: subprocess.Popen[str] | None = None
    known: RobotAbilities = STAND_IN

    def __init__(self, unit: int, bench: str, *, virtual: bool = True) -> None:
        """The unit of that number at a bench, as a task names its own."""
        self._command = [sys.executable, "-m", "sim2real.reality", "serve", "--unit", str(unit)]
        self._command += ["--task", bench, "--parent", str(os.getpid())]
        self._command += ["--virtual"] if virtual else []
        super().__init__("0")

    def connect(self) -> None:
        """Start the unit and find it."""
        self.process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None and self.process.stderr is not None
        try:
            port = self.process.stdout.readline().strip()
            if not port.isdigit():
                said = self.process.stderr.read().strip().splitlines()
                why = said[-1] if said else "it did not start"
                raise Sim2RealError(f"no stand-in hardware: {why}")
            self.address = f"tcp://127.0.0.1:{port}"
            super().connect()
        except BaseException:
            self.end()
            raise

    def disconnect(self) -> None:
        """Let go of the robot, in its safe stop, and end its process."""
        try:
            super().disconnect()
        finally:
            self.end()

    def end(self) -> None:
        """End the process, whatever state the robot is in."""
        if self.process is None:
            return
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def __enter__(self) -> StandIn:
        self.connect()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(Sim2RealError):  # it may be dead already
            self.disconnect()
