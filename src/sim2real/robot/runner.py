"""The loop that drives a robot: fixed rate, deadlines measured, every period recorded."""

from __future__ import annotations

import gc
import math
import resource
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from sim2real.arrays import Bools, Floats, Reals
from sim2real.contract import Contract
from sim2real.errors import Sim2RealError
from sim2real.robot.abilities import relaxing, why_stopped
from sim2real.robot.protocol import ControlClock, Robot
from sim2real.robot.readings import (
    Goals,
    first_readings,
    goal_vector,
    in_order,
    numbers,
    readings_vector,
)
from sim2real.robot.recording import Recording
from sim2real.robot.supervisor import Decision, Inputs, State, Supervisor

_SETTLE_S = 1.0
"""Longest time in which servos come to rest softly [s]."""


class Controller(Protocol):
    """What computes a command each period: a policy, an excitation, a pose to hold."""

    contract: Contract

    @property
    def command(self) -> Reals:
        """(1, commands) the last command; after `start` the one that rests."""

    def start(self, readings: Reals, goals: Reals) -> None:
        """Begin at readings (numbers,) with goals (numbers,)."""

    def step(self, readings: Reals) -> tuple[Reals, Reals, Reals]:
        """(observation, action, command) of this period; the first two may be empty."""

    def sent(self, command: Reals) -> None:
        """Take note of what really went to the robot."""


@dataclass(frozen=True, kw_only=True)
class Flight:
    """How a run went."""

    periods: int
    """Control periods that were completed."""
    stopped: str
    """Why it was stopped; '' if it ran to its end."""
    late_s: Floats
    """How late each period began [s]."""
    lost: int
    """Periods without new readings."""
    limited: int
    """Periods in which a command was limited."""
    preempted: Bools
    """(periods,) whether the system took the processor away in or before each period."""

    @property
    def latest_s(self) -> float:
        """How late the latest period began [s]."""
        return float(self.late_s.max(initial=0.0))

    def overruns(self, late_s: float) -> tuple[int, int]:
        """(by ourselves, by the system) periods that began later than `late_s` [s].

        The system is to blame where it took the processor away since the period before.
        """
        late = self.late_s > late_s
        return int((late & ~self.preempted).sum()), int((late & self.preempted).sum())


def fly(
    robot: Robot,
    pilot: Controller,
    supervisor: Supervisor,
    clock: ControlClock,
    *,
    goals: Goals,
    seconds: float,
    person: str,
    execute: bool,
    tool: Callable[[Floats], Floats | None] = lambda readings: None,
    recording: Recording | None = None,
    operator_stop: Callable[[], bool] = lambda: False,
    report: Callable[[int, int], None] = lambda done, of: None,
    show: Callable[[float, Reals, Reals], None] = lambda time_s, wanted, sent: None,
    at_end: Callable[[], None] = lambda: None,
) -> Flight:
    """Drive a robot for some time; without `execute`, compute and record but send nothing.

    Without `execute` each period's command is the one that would be sent first, from where the
    robot is now. `tool` gives the position of the tool from readings, if there is one. `show` is
    called with (time, wanted, sent) in each period, and `at_end` after the last one of a run that
    was not stopped, while the robot still has its last command. However the run ends, a robot that
    was sent commands is stopped; servos of a run that was not stopped come to rest softly first.
    """
    contract = pilot.contract
    period_s = 1.0 / contract.rate_hz
    if not (math.isfinite(seconds) and 0 < seconds < 1e6):
        raise Sim2RealError(f"a run must take a positive time below 1e6 s, not {seconds:g}")
    total = max(1, round(seconds * contract.rate_hz))
    flying = _Flying(robot, pilot, supervisor, clock, goals=goals, person=person, execute=execute)
    collecting = gc.isenabled()
    gc.disable()  # a collection takes longer than a period may be late
    try:
        flying.begin(first_readings(robot, contract, clock))
        begin = due = flying.newest_s = clock.now()
        for _ in range(total):
            now = clock.now()
            late_s = max(0.0, now - due)
            # After a late period the others follow a period apart: nothing is caught up with.
            due = (now if late_s > 0.5 * period_s else due) + period_s
            wanted, sent = flying.period(now, late_s, tool=tool, operator_stop=operator_stop)
            if recording is not None:
                recording.add(now - begin, flying.row)
            if supervisor.state is not State.RUNNING or sent is None:
                break
            flying.go_on(sent)
            report(flying.done, total)
            show(now - begin, wanted, sent)
            clock.sleep_until(due)
        else:
            at_end()
            flying.settle()
    finally:
        if execute:
            # A robot that cannot be reached has a watchdog of its own.
            with suppress(Exception):
                flying.stop()
        if collecting:
            gc.enable()
        if recording is not None:
            recording.close()
    return Flight(
        periods=flying.done,
        stopped=supervisor.reason,
        late_s=np.array(flying.late_s),
        lost=flying.lost,
        limited=flying.limited,
        preempted=np.diff(np.array([0, *flying.switches])) > 0,
    )


class _Flying:
    """A flight under way: what is remembered from one period to the next."""

    def __init__(
        self,
        robot: Robot,
        pilot: Controller,
        supervisor: Supervisor,
        clock: ControlClock,
        *,
        goals: Goals,
        person: str,
        execute: bool,
    ) -> None:
        self._robot, self._pilot, self._supervisor = robot, pilot, supervisor
        self._clock = clock
        self._contract = pilot.contract
        self._goals, self._person, self._execute = goals, person, execute
        self._given = {f"goal/{g.name}": goals.get(g.name, ()) for g in self._contract.goals}
        self._decision = Decision(state=supervisor.state, command=None)
        self.newest_s = 0.0
        """When the newest readings were taken [s]."""
        self.row: dict[str, object] = {}
        """What a recording keeps of the last period."""
        self.late_s: list[float] = []
        self.switches: list[int] = []
        """How often the system had taken the processor away by each period."""
        self.lost = self.limited = self.done = 0

    def begin(self, readings: Floats) -> None:
        """Arm the supervisor with the command that keeps the robot where it is."""
        self._readings = readings
        self._pilot.start(np.nan_to_num(readings), goal_vector(self._contract, self._goals))
        self._resting = np.array(self._pilot.command[0], dtype=float)
        self._supervisor.arm(person=self._person, resting=self._resting, now_s=self._clock.now())

    def period(
        self,
        now: float,
        late_s: float,
        *,
        tool: Callable[[Floats], Floats | None],
        operator_stop: Callable[[], bool],
    ) -> tuple[Reals, Floats | None]:
        """Read, decide and send; what was wanted, and what was sent, None for a stop."""
        contract = self._contract
        self.late_s.append(late_s)
        self.switches.append(resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw)
        seen, inputs = self._read(now)
        if len(self.late_s) == 1 and inputs.fresh and np.isfinite(self._readings).all():
            self.begin(self._readings)  # rest at the last readings before anything moves
        sight = self._supervisor.look(inputs)
        known = self._readings if sight.readings is None else sight.readings
        frame, action, wanted = self._pilot.step(known)
        self._decision = self._supervisor.step(
            replace(
                inputs,
                late_s=late_s,
                # Without `execute` the drives need not be on.
                stopped_itself=why_stopped(self._robot) if self._execute else "",
                operator_stop=operator_stop(),
                frame=frame,
                wanted=wanted,
                tool=tool(known),
            )
        )
        sent = self._send(self._decision.command)
        command = in_order(self._robot, contract, seen, "@command")
        if self._execute:
            command = np.zeros(0) if sent is None else sent
        sensors = {f"sensor/{s.name}": numbers(seen.get(s.name, ())) for s in contract.sensors}
        self.row = {
            **(sensors if seen else {}),
            **self._given,
            "observation": frame,
            "action": action,
            "wanted": wanted,
            "command": command,
            "late": [late_s],
        }
        return wanted, sent

    def _read(self, now: float) -> tuple[Mapping[str, object], Inputs]:
        """The readings of a period by name, and what the supervisor sees of them."""
        robot, contract = self._robot, self._contract
        connected, age_s = True, now - self.newest_s
        try:
            seen = robot.get_observation()
        except Exception:  # a driver may raise anything; all of it means no readings
            connected, seen = False, {}
        fresh = bool(seen)
        if fresh:
            self._readings = readings_vector(contract, seen)
            age_s = float(numbers(seen.get("@age", 0.0)).sum())
            self.newest_s = min(now, now - age_s)
        else:
            self.lost += 1
        drives = self._execute and robot.abilities.reports_commands
        return seen, Inputs(
            readings=self._readings,
            now_s=now,
            age_s=age_s,
            fresh=fresh,
            connected=connected,
            torque=in_order(robot, contract, seen, "@torque"),
            temperature=in_order(robot, contract, seen, "@temperature"),
            following=in_order(robot, contract, seen, "@command") if drives else None,
        )

    def stop(self) -> None:
        """Bring the robot to its safe stop; if its encoders are wrong, to where none is needed."""
        limp = relaxing(self._robot) if self._supervisor.blind else None
        (self._robot.stop if limp is None else limp.relax)()

    def settle(self) -> None:
        """Bring servos softly to where they are, so that the safe stop moves nothing."""
        if not self._execute:
            return
        period_s, due = 1.0 / self._contract.rate_hz, self._clock.now()
        for _ in range(math.ceil(_SETTLE_S / period_s)):
            _, inputs = self._read(self._clock.now())
            command = self._supervisor.settle(inputs)
            if command is None or self._send(command) is None:
                return
            due += period_s
            self._clock.sleep_until(due)

    def go_on(self, sent: Floats) -> None:
        """Complete a period in which the supervisor let a command through."""
        self._pilot.sent(sent if self._execute else self._resting)
        self.limited += bool(self._decision.limited)
        self.done += 1

    def _send(self, command: Floats | None) -> Floats | None:
        """What really went to the robot; without `execute`, what would have gone."""
        if command is None:
            return None
        if not self._execute:
            self._supervisor.follow(self._resting)
            return command
        names = [spec.name for spec in self._contract.commands]
        try:
            taken = self._robot.send_action(
                {name: float(value) for name, value in zip(names, command, strict=True)}
            )
            sent = np.array([float(taken[name]) for name in names])
        except Exception:  # a driver may raise anything
            self._supervisor.stop("the robot did not take a command")
            return command
        self._supervisor.sent(sent, now_s=self._clock.now())
        return sent
