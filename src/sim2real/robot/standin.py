"""Stand-in hardware that is started and ended with its client."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress

from sim2real.errors import Sim2RealError
from sim2real.robot.remote import RemoteRobot


class StandIn(RemoteRobot):
    """One unit of stand-in hardware in a process of its own, gone when let go of."""

    def __init__(self, unit: int, task: str, *, virtual: bool = True) -> None:
        """Start the unit of that number at the bench of a task."""
        command = [sys.executable, "-m", "sim2real.reality", "serve", "--unit", str(unit)]
        command += ["--task", task, "--parent", str(os.getpid())] + (
            ["--virtual"] if virtual else []
        )
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None and self.process.stderr is not None
        port = self.process.stdout.readline().strip()
        if not port.isdigit():
            said = self.process.stderr.read().strip().splitlines()
            self.end()
            raise Sim2RealError(f"no stand-in hardware: {said[-1] if said else 'it did not start'}")
        super().__init__(port)

    def disconnect(self) -> None:
        """Let go of the robot, in its safe stop, and end its process."""
        try:
            super().disconnect()
        finally:
            self.end()

    def end(self) -> None:
        """End the process, whatever state the robot is in."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def __enter__(self) -> StandIn:
        try:
            self.connect()
        except Sim2RealError:
            self.end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(Sim2RealError):  # it may be dead already
            self.disconnect()
        self.end()
