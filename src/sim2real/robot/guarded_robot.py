"""A robot behind a guarding process, which owns its bus and stops it when this program does not."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import cast

from sim2real.errors import Sim2RealError
from sim2real.robot.abilities import LONGEST_WATCHDOG_S, RobotAbilities
from sim2real.robot.guard_messages import (
    Answer,
    GuardedIdentity,
    Opening,
    Request,
    guarded_abilities,
)

WATCHDOG_S = 0.25
"""Longest time without a command, unless a robot's file says otherwise [s]."""
_SHORTEST_WATCHDOG_S = 0.02
_OPENING_S = 60.0
"""Longest time in which a driver is loaded and connected [s]."""
_CLOSING_S = 10.0
"""Longest time in which a robot is stopped and disconnected [s]."""
_MOST_UNANSWERED = 8
"""Stops that are sent to a process that does not answer, before it is not asked any more."""


class GuardedRobot:
    """Any robot at an address, opened by a process of its own from `connect` to `disconnect`.

    After the first command, a command must come every `watchdog_s`, or that process brings the
    robot to its safe stop by itself; so it does when this program ends, however that happens. A
    call waits for at most `patience_s`, and an answer that comes later is dropped: a command that
    nobody waits for any more is refused there.
    """

    def __init__(
        self,
        address: str,
        *,
        watchdog_s: float = WATCHDOG_S,
        name: str = "",
        safe_stop: str = "hold",
        abilities: RobotAbilities | None = None,
    ) -> None:
        """What is not given is known from `connect` on."""
        check_watchdog(watchdog_s)
        self.address, self.name, self.serial = address, name or address, ""
        self.safe_stop = safe_stop
        self.abilities = guarded_abilities(abilities or RobotAbilities(), watchdog_s)
        self.stopped_itself = ""
        """Why it does not obey; '' while it does."""
        self.patience_s = 2.0
        """How long an answer may take [s]."""
        self.process: subprocess.Popen[bytes] | None = None
        """The guarding process."""
        self._watchdog_s = watchdog_s
        self._link: Connection | None = None
        self._asked = self._answered = 0
        self._connected = False

    @property
    def is_connected(self) -> bool:
        """Whether the robot was there at the last answer, and the guarding process still is."""
        return self._connected and self._link is not None

    def connect(self) -> None:
        """Start the process, have it open the robot, and connect."""
        if self._link is not None:
            return
        self._start()
        try:
            self._receive(0, time.monotonic() + _OPENING_S, _OPENING_S)
            found = cast(GuardedIdentity, self._ask("connect", patience_s=_OPENING_S))
        except BaseException:
            self._end()
            raise
        self.name, self.serial = found.name, found.serial
        self.safe_stop, self.abilities = found.safe_stop, found.abilities

    def enable(self) -> None:
        """Let it move (again), from where it is."""
        self._ask("enable", patience_s=max(self.patience_s, _CLOSING_S))

    def get_observation(self) -> Mapping[str, object]:
        """The newest readings; empty where a packet was lost."""
        return cast(Mapping[str, object], self._ask("get_observation"))

    def send_action(self, action: Mapping[str, float]) -> Mapping[str, float]:
        """Send commands; what was really sent."""
        given = {name: float(value) for name, value in action.items()}
        return cast(Mapping[str, float], self._ask("send_action", given))

    def stop(self) -> None:
        """Go to the safe stop; where the bus does not take it, the process goes on trying."""
        self._ask("stop")

    def reset(self, seed: int) -> dict[str, list[float]]:
        """Have the bench set up the next trial; its goals."""
        return cast(dict[str, list[float]], self._ask("reset", seed, patience_s=_OPENING_S))

    def goals(self) -> dict[str, list[float]]:
        """Goals of the trial that is set up."""
        return cast(dict[str, list[float]], self._ask("goals"))

    def judge(self) -> bool:
        """Whether the task is done, as the robot's own bench sees it."""
        return bool(self._ask("judge"))

    def disconnect(self) -> None:
        """Let go of the robot, in its safe stop; one that was never moved is left alone."""
        if self._link is None:
            return
        try:
            self._ask("disconnect", patience_s=_CLOSING_S)
        finally:
            self._end()

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "sim2real.robot.guard_process", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,  # the terminal's signals are not for it
            )
        self._link = Connection(ours.detach())
        self._asked = self._answered = 0
        self.stopped_itself = ""
        opening = Opening(
            address=self.address,
            watchdog_s=self._watchdog_s,
            parent=os.getpid(),
            modules=tuple(sys.path),
        )
        try:
            self._link.send(opening)
        except OSError:
            raise self._lost() from None

    def _ask(self, call: str, *given: object, patience_s: float | None = None) -> object:
        """What the robot answers to a call; silence, and what it refuses, are a `Sim2RealError`."""
        if self._link is None:
            raise Sim2RealError(f"not connected to {self.name}")
        patience_s = self.patience_s if patience_s is None else patience_s
        until_s = time.monotonic() + patience_s
        waiting = self._asked - self._answered
        if waiting and (call not in ("stop", "disconnect") or waiting >= _MOST_UNANSWERED):
            # One question at a time, or a late answer would leave commands waiting in line.
            self._receive(self._asked, until_s, patience_s, stale=True)
        self._asked += 1
        try:
            self._link.send(Request(number=self._asked, call=call, given=given, until_s=until_s))
        except OSError:
            raise self._lost() from None
        return self._receive(self._asked, until_s, patience_s)

    def _receive(
        self, number: int, until_s: float, patience_s: float, *, stale: bool = False
    ) -> object:
        """The answer of that number; what a `stale` one says is of no interest any more."""
        assert self._link is not None
        try:
            while self._link.poll(max(0.0, until_s - time.monotonic())):
                answer: Answer = self._link.recv()
                self._answered = answer.number
                self._connected, self.stopped_itself = answer.connected, answer.stopped
                if answer.number == number:
                    if answer.error and not stale:
                        raise Sim2RealError(answer.error)
                    return answer.value
        except (EOFError, OSError):
            raise self._lost() from None
        self._connected = False
        raise Sim2RealError(f"{self.name} did not answer within {patience_s:.3g} s")

    def _lost(self) -> Sim2RealError:
        """What to say when the guarding process is gone."""
        self._end()
        return Sim2RealError(
            f"the guarding process of {self.name} has ended: nothing can be sent to the robot"
        )

    def _end(self) -> None:
        """Hang up; the process stops a robot that moved, and ends by itself."""
        if self._link is not None:
            self._link.close()
        self._link, self._connected = None, False
        if self.process is not None:
            with suppress(subprocess.TimeoutExpired):  # it may be trying to stop the robot
                self.process.wait(0.2)


def check_watchdog(watchdog_s: float) -> None:
    """Refuse a time after which hardly any command, or none in time, would be missed."""
    if not _SHORTEST_WATCHDOG_S <= watchdog_s <= LONGEST_WATCHDOG_S:
        raise Sim2RealError(
            f"watchdog_s must be from {_SHORTEST_WATCHDOG_S:g} to {LONGEST_WATCHDOG_S:g} s, not"
            f" {watchdog_s:g}"
        )
