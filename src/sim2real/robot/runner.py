"""The loop that drives a robot: fixed rate, deadlines measured, every period recorded."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from sim2real.contract import Contract
from sim2real.errors import Sim2RealError
from sim2real.robot.protocol import Robot
from sim2real.robot.recording import Recording
from sim2real.robot.supervisor import Inputs, State, Supervisor


class ControlClock(Protocol):
    """What the loop goes by."""

    def now(self) -> float:
        """The time [s]."""
        ...

    def sleep_until(self, moment_s: float) -> None:
        """Wait for a moment."""
        ...


class Controller(Protocol):
    """What decides a command a period: a policy, an excitation, a pose to hold."""

    contract: Contract
    command: np.ndarray
    """(1, commands) last command; after `start` the one that rests."""

    def start(self, readings: np.ndarray, goals: np.ndarray) -> None:
        """Begin at readings (numbers,) with goals (numbers,)."""
        ...

    def step(self, readings: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(observation, action, command) of this period; the first two may be empty."""
        ...

    def sent(self, command: np.ndarray) -> None:
        """What really went to the robot."""
        ...


@dataclass(frozen=True, kw_only=True)
class Flight:
    """How a run went."""

    periods: int
    """Control periods that were done."""
    stopped: str
    """Why it was stopped; '' where it came to its end."""
    late_s: np.ndarray
    """How late each period began [s]."""
    lost: int
    """Periods without new readings."""
    limited: int
    """Periods in which a command was limited."""


def fly(
    robot: Robot,
    pilot: Controller,
    supervisor: Supervisor,
    clock: ControlClock,
    *,
    goals: Mapping[str, Any],
    seconds: float,
    person: str,
    execute: bool,
    tool: Callable[[np.ndarray], np.ndarray | None] = lambda readings: None,
    recording: Recording | None = None,
    operator_stop: Callable[[], bool] = lambda: False,
    report: Callable[[int, int], None] = lambda done, of: None,
    show: Callable[[float, np.ndarray, np.ndarray], None] = lambda time_s, wanted, sent: None,
) -> Flight:
    """Drive a robot for some time; without `execute`, compute and record but send nothing.

    Without `execute` each period's command is the one that would be sent first, from where the
    robot is now. `tool` gives the place of the tool from readings, where there is one; `show` is
    told (time, wanted, sent) of each period. However it ends, a robot that was sent something is
    told to stop.
    """
    contract = pilot.contract
    period_s = 1.0 / contract.rate_hz
    if not (math.isfinite(seconds) and 0 < seconds < 1e6):
        raise Sim2RealError(f"a flight takes a positive time, not {seconds:g} s")
    total = max(1, round(seconds * contract.rate_hz))
    told = {f"goal/{goal.name}": goals.get(goal.name, ()) for goal in contract.goals}
    late, lost, limited, done = [], 0, 0, 0
    collecting = gc.isenabled()
    gc.disable()  # a collection takes longer than a period may be late
    try:
        readings = first_readings(robot, contract, clock)
        aim = goal_vector(contract, goals)
        resting = _rest(pilot, supervisor, person, readings, aim)
        begin, newest_s = clock.now(), clock.now()
        for period in range(total):
            due = begin + period * period_s
            now = clock.now()
            late.append(max(0.0, now - due))
            connected, age_s = True, now - newest_s
            try:
                seen = robot.get_observation()
            except Exception:  # a driver may raise anything; all of it means no readings
                connected, seen = False, {}
            found = vector(contract, seen) if seen else None
            if found is None:
                lost += 1
            else:
                readings, age_s = found, float(_numbers(seen.get("@age", 0.0)).sum())
                newest_s = min(now, now - age_s)
            if found is not None and period == 0:
                # From what was read last before anything moves.
                resting = _rest(pilot, supervisor, person, readings, aim)
            frame, action, wanted = pilot.step(readings)
            decision = supervisor.step(
                Inputs(
                    readings=readings,
                    age_s=age_s,
                    late_s=late[-1],
                    fresh=found is not None,
                    connected=connected,
                    # Without `execute` the drives need not be on.
                    stopped_itself=getattr(robot, "stopped_itself", "") if execute else "",
                    operator_stop=operator_stop(),
                    frame=frame,
                    wanted=wanted,
                    torque=_in_order(robot, contract, seen, "@torque"),
                    tool=tool(readings),
                )
            )
            sent = decision.command
            if sent is not None and execute:
                sent = _send(robot, contract, supervisor, sent)
            elif sent is not None:
                supervisor.sent(resting)
            if recording is not None:
                recording.add(
                    now - begin,
                    {
                        **(_named(contract, seen) if seen else {}),
                        **told,
                        "observation": frame,
                        "action": action,
                        "wanted": wanted,
                        "command": (sent if sent is not None else ())
                        if execute
                        else _in_order(robot, contract, seen, "@command"),
                        "late": [late[-1]],
                    },
                )
            if supervisor.state is not State.RUNNING:
                break
            assert sent is not None
            pilot.sent(sent if execute else resting)
            limited += bool(decision.limited)
            done += 1
            report(done, total)
            show(now - begin, wanted, sent)
            clock.sleep_until(begin + (period + 1) * period_s)
    finally:
        if execute:
            _stop(robot)
        if collecting:
            gc.enable()
        if recording is not None:
            recording.close()
    return Flight(
        periods=done,
        stopped=supervisor.reason,
        late_s=np.array(late),
        lost=lost,
        limited=limited,
    )


def _rest(
    pilot: Controller,
    supervisor: Supervisor,
    person: str,
    readings: np.ndarray,
    aim: np.ndarray,
) -> np.ndarray:
    """Begin where the robot rests; the command that keeps it there."""
    pilot.start(np.nan_to_num(readings), aim)
    resting = np.array(pilot.command[0], dtype=float)
    supervisor.arm(person=person, resting=resting)
    return resting


def vector(contract: Contract, seen: Mapping[str, Any]) -> np.ndarray:
    """Readings by name as one vector in the contract's order; a missing or misshapen one is nan."""
    parts = []
    for sensor in contract.sensors:
        value = _numbers(seen.get(sensor.name))
        parts.append(value if value.size == sensor.width else np.full(sensor.width, np.nan))
    return np.concatenate(parts)


def _numbers(value: Any) -> np.ndarray:
    """A value as a flat array; not a number where it is none."""
    try:
        return np.asarray(value, dtype=float).ravel()
    except (TypeError, ValueError):
        return np.full(1, np.nan)


def goal_vector(contract: Contract, goals: Mapping[str, Any]) -> np.ndarray:
    """Goals by name as one vector; one that is missing or misshapen is a `Sim2RealError`."""
    parts = [np.zeros(0)]
    for goal in contract.goals:
        value = _numbers(goals.get(goal.name, ()))
        if value.size != goal.width or not np.isfinite(value).all():
            needed = ", ".join(f"{g.name} ({g.width} numbers)" for g in contract.goals)
            raise Sim2RealError(
                f"goal {goal.name!r} needs {goal.width} finite numbers, got {value.size}; this"
                f" policy is told {needed}: give each as --goal {goal.name}=0.1,…"
            )
        parts.append(value)
    return np.concatenate(parts)


def first_readings(robot: Robot, contract: Contract, clock: ControlClock) -> np.ndarray:
    """Readings to begin with; a robot that lacks a sensor of the contract is a `Sim2RealError`."""
    for _ in range(20):
        seen = robot.get_observation()
        if seen:
            missing = [sensor.name for sensor in contract.sensors if sensor.name not in seen]
            if missing:
                raise Sim2RealError(f"the robot has no {', '.join(missing)}: is it another robot?")
            found = vector(contract, seen)
            if not np.isfinite(found).all():
                raise Sim2RealError("the robot's readings do not have the contract's shape")
            return found
        clock.sleep_until(clock.now() + 1.0 / contract.rate_hz)
    raise Sim2RealError("the robot gives no readings")


def _send(
    robot: Robot, contract: Contract, supervisor: Supervisor, command: np.ndarray
) -> np.ndarray:
    named = {
        spec.name: float(value) for spec, value in zip(contract.commands, command, strict=True)
    }
    try:
        taken = robot.send_action(named)
        sent = np.array([float(taken[spec.name]) for spec in contract.commands])
    except Exception:  # see above
        supervisor.stop("the robot did not take a command")
        return command
    supervisor.sent(sent)
    return sent


def make_ready(robot: Robot, contract: Contract, clock: ControlClock) -> np.ndarray:
    """Let a robot that has stopped move again, where it needs to be told; its readings then."""
    enable = getattr(robot, "enable", None)
    readings = first_readings(robot, contract, clock)
    if enable is not None and getattr(robot, "stopped_itself", True):
        enable()
        readings = first_readings(robot, contract, clock)
    return readings


def _in_order(
    robot: Robot, contract: Contract, seen: Mapping[str, Any], name: str
) -> np.ndarray | None:
    """Numbers a robot tells of its actuators, in the contract's order; None where it does not."""
    if name not in seen:
        return None
    values = _numbers(seen[name])
    there = list(getattr(robot, "actuators", ()))
    wanted = [command.name for command in contract.commands]
    if len(values) == len(there) and set(there) == set(wanted):
        values = values[[there.index(actuator) for actuator in wanted]]
    return values


def _stop(robot: Robot) -> None:
    # A robot that cannot be reached has a watchdog of its own.
    with suppress(Exception):
        robot.stop()


def _named(contract: Contract, seen: Mapping[str, Any]) -> dict[str, Any]:
    return {
        f"sensor/{sensor.name}": _numbers(seen.get(sensor.name, ())) for sensor in contract.sensors
    }


def units_of(contract: Contract) -> dict[str, str]:
    """Channels of a recording and their units."""
    found = {f"sensor/{sensor.name}": sensor.unit for sensor in contract.sensors}
    found |= {f"goal/{goal.name}": "" for goal in contract.goals}
    command = contract.commands[0].unit if contract.commands else ""
    own = {"observation": "", "action": "", "wanted": command, "command": command, "late": "s"}
    return found | own
