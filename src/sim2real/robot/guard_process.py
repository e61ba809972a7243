"""The process that owns a robot's bus, and stops the robot when its driver falls silent.

`GuardedRobot` starts it and talks to it. Once the drives have moved, a command must come every
`watchdog_s`; if none does, or if the program that drives the robot is gone, this process brings the
robot to its safe stop, sends the stop again where the bus loses it, and takes no command until
the drives are enabled anew. It outlives that program, and no signal but SIGKILL ends it before
the robot is stopped.
"""

from __future__ import annotations

import gc
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from pickle import PicklingError

from sim2real.errors import Sim2RealError
from sim2real.robot.abilities import (
    TrialBench,
    bench_of,
    enabled,
    judge_of,
    why_stopped,
)
from sim2real.robot.connect import check_abilities, open_on_bus
from sim2real.robot.driver_errors import said_by
from sim2real.robot.guard_messages import (
    Answer,
    GuardedIdentity,
    Opening,
    Request,
    guarded_abilities,
)
from sim2real.robot.protocol import Robot

_SENDS = 3
"""How often a stop is sent: a bus without acknowledgements may lose any of them."""
_PAUSE_S = 0.02
"""Time between two of them [s]."""
_LOOK_S = 0.05
"""Longest time in which the end of the driving program goes unnoticed [s]."""
_GIVE_UP_S = 30.0
"""How long a stop is tried, once nobody is there any more, on a bus that takes none [s]."""
_LATE = frozenset({"enable", "reset", "send_action"})
"""Calls that are worth nothing, or dangerous, after the one who asked has given up waiting."""


class Guard:
    """A robot, and the watch over the program that drives it."""

    def __init__(self, robot: Robot, *, watchdog_s: float) -> None:
        self._robot, self._watchdog_s = robot, watchdog_s
        self._touched = False
        """Whether its drives may have moved since it was connected."""
        self._expected_s = math.inf
        """When a command must have come."""
        self._why = ""
        """Why it was stopped; '' while it obeys."""
        self._left = 0
        """How often the stop is still to be sent."""
        self._next_s = 0.0
        """When to send it next."""
        self._calls: Mapping[str, Callable[..., object]] = {
            "connect": self._connect,
            "enable": self._enable,
            "get_observation": lambda: dict(self._robot.get_observation()),
            "send_action": self._send,
            "stop": self._stop,
            "disconnect": self._disconnect,
            "reset": self._reset,
            "goals": lambda: self._bench().goals(),
            "judge": self._judge,
        }

    @property
    def wait_s(self) -> float:
        """How long nothing has to be done [s]."""
        now = time.monotonic()
        next_s = min(self._expected_s, self._next_s if self._left else math.inf)
        return max(0.0, min(next_s - now, _LOOK_S))

    def watch(self) -> None:
        """Begin a stop if a command is overdue, and go on with one that was begun."""
        if time.monotonic() >= self._expected_s:
            self.begin_stop(f"no command for {self._watchdog_s:g} s: its guarding process did it")
        if self._left and time.monotonic() >= self._next_s:
            with suppress(BaseException):  # it is tried again
                self._send_stop()

    def begin_stop(self, why: str) -> None:
        """Refuse commands from now on, and have the stop sent."""
        self._why = self._why or why
        self._expected_s = math.inf
        self._left, self._next_s = _SENDS, 0.0

    def end(self) -> None:
        """Leave the robot in its safe stop; one that was never moved is let go of.

        One that was moved is not disconnected: many drivers let go of the motors then.
        """
        if not self._touched:
            with suppress(Exception):
                self._robot.disconnect()
            return
        self.begin_stop("the program that drove it is gone")
        self._finish_stop(_GIVE_UP_S)

    def answer(self, request: Request) -> Answer:
        """Do what is asked; no exception of a driver ends this process."""
        value, error = None, ""
        try:
            if request.call in _LATE and time.monotonic() > request.until_s:
                raise Sim2RealError(f"too late for {request.call}: nobody waits for it any more")
            value = self._calls[request.call](*request.given)
        except BaseException as caught:  # drivers exit, too
            error = said_by(caught)
        connected = False
        with suppress(Exception):
            connected = self._robot.is_connected
            self._why = self._why or why_stopped(self._robot)
        return Answer(
            number=request.number, value=value, error=error, connected=connected, stopped=self._why
        )

    def _connect(self) -> GuardedIdentity:
        robot = self._robot
        robot.connect()
        check_abilities(robot)
        if robot.abilities.virtual_time:
            raise Sim2RealError(f"{robot.name} has a clock of its own: it cannot be guarded")
        return GuardedIdentity(
            name=robot.name,
            serial=robot.serial,
            safe_stop=robot.safe_stop,
            abilities=guarded_abilities(robot.abilities, self._watchdog_s),
        )

    def _enable(self) -> None:
        if self._left == _SENDS:
            raise Sim2RealError(f"{self._robot.name} does not take its stop yet: {self._why}")
        self._left = 0
        self._touched = True
        drives = enabled(self._robot)
        if drives is not None:
            drives.enable()
        self._why = ""

    def _send(self, action: Mapping[str, float]) -> dict[str, float]:
        if self._why:
            raise Sim2RealError(f"{self._robot.name} is stopped: {self._why}")
        self._touched = True
        try:
            return dict(self._robot.send_action(action))
        finally:
            # It may have arrived, whatever the driver says.
            self._expected_s = time.monotonic() + self._watchdog_s

    def _stop(self) -> None:
        self.begin_stop("asked to")
        self._touched = True
        self._send_stop()

    def _send_stop(self) -> None:
        try:
            self._robot.stop()
            self._left -= 1
        finally:
            self._next_s = time.monotonic() + _PAUSE_S

    def _finish_stop(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while self._left and time.monotonic() < end:
            self.watch()
            time.sleep(self.wait_s)

    def _disconnect(self) -> None:
        if self._touched:
            self.begin_stop("disconnected")
            self._finish_stop(1.0)
            if self._left == _SENDS:
                raise Sim2RealError(f"{self._robot.name} does not stop; it is still being tried")
        self._robot.disconnect()
        self._touched = False

    def _bench(self) -> TrialBench:
        bench = bench_of(self._robot)
        if bench is None:
            raise Sim2RealError(f"{self._robot.name} has no bench that sets up trials")
        return bench

    def _reset(self, seed: int) -> dict[str, list[float]]:
        self._touched = True
        return self._bench().reset(seed)

    def _judge(self) -> bool:
        judge = judge_of(self._robot)
        if judge is None:
            raise Sim2RealError(f"{self._robot.name} has no bench that judges trials")
        return judge.judge()


def serve(link: Connection) -> None:
    """Guard one robot for the program at the other end, until that lets go of it or is gone."""
    opening: Opening = link.recv()
    sys.path[:] = opening.modules
    try:
        robot = open_on_bus(opening.address)
    except BaseException as error:  # drivers exit, too
        link.send(Answer(number=0, error=said_by(error)))
        return
    guard = Guard(robot, watchdog_s=opening.watchdog_s)
    gc.freeze()  # a collection of what is loaded would come between two commands
    try:
        link.send(Answer(number=0))
        while os.getppid() == opening.parent:
            guard.watch()
            if link.poll(guard.wait_s):
                request: Request = link.recv()
                answer = guard.answer(request)
                try:
                    link.send(answer)
                except (TypeError, ValueError, AttributeError, PicklingError) as error:
                    link.send(replace(answer, value=None, error=f"{request.call}: {error}"))
                if request.call == "disconnect" and not answer.error:
                    return
    except (EOFError, OSError):
        pass
    guard.end()


def _main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.dup2(2, 1)  # what a driver prints is no result
    with suppress(EOFError, OSError):
        serve(Connection(int(sys.argv[1])))
    sys.stderr.flush()
    os._exit(0)  # an interpreter that ends has drivers let go of the motors


if __name__ == "__main__":
    _main()
