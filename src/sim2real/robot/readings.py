"""A robot's readings and goals, brought from names into a contract's order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sim2real.arrays import Floats, Reals
from sim2real.contract import Contract
from sim2real.errors import Sim2RealError
from sim2real.robot.abilities import enabled, why_stopped
from sim2real.robot.protocol import ControlClock, Robot

Goals = Mapping[str, Sequence[float] | Reals]
"""Numbers of each goal, by name."""
_TRIES = 20
"""Control periods to wait for the first readings."""


def numbers(value: object) -> Floats:
    """A value as a flat array; nan where it is not made of numbers."""
    try:
        return np.asarray(value, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        return np.full(1, np.nan)


def readings_vector(contract: Contract, seen: Mapping[str, object]) -> Floats:
    """Readings by name as one vector in the contract's order; a missing or misshapen one is nan."""
    parts = []
    for sensor in contract.sensors:
        value = numbers(seen.get(sensor.name))
        parts.append(value if value.size == sensor.width else np.full(sensor.width, np.nan))
    return np.concatenate(parts)


def goal_vector(contract: Contract, goals: Goals) -> Floats:
    """Goals by name as one vector; a missing or misshapen one is a `Sim2RealError`."""
    parts = [np.zeros(0)]
    for goal in contract.goals:
        value = numbers(goals.get(goal.name, ()))
        if value.size != goal.width or not np.isfinite(value).all():
            needed = ", ".join(f"{g.name} ({g.width} numbers)" for g in contract.goals)
            raise Sim2RealError(
                f"goal {goal.name!r} needs {goal.width} finite numbers, got {value.size}; this"
                f" policy needs {needed}: give each as --goal {goal.name}=0.1,…"
            )
        parts.append(value)
    return np.concatenate(parts)


def in_order(
    robot: Robot, contract: Contract, seen: Mapping[str, object], name: str
) -> Floats | None:
    """A number per actuator in the contract's order; None where the robot does not report it."""
    if name not in seen:
        return None
    values = numbers(seen[name])
    there = list(robot.abilities.actuators or ())
    wanted = [command.name for command in contract.commands]
    if len(values) == len(there) and set(there) == set(wanted):
        values = values[[there.index(actuator) for actuator in wanted]]
    return values


def first_readings(robot: Robot, contract: Contract, clock: ControlClock) -> Floats:
    """Readings to begin with; a robot that lacks a sensor of the contract is a `Sim2RealError`."""
    for _ in range(_TRIES):
        seen = robot.get_observation()
        if seen:
            missing = [sensor.name for sensor in contract.sensors if sensor.name not in seen]
            if missing:
                raise Sim2RealError(
                    f"the robot does not report {', '.join(missing)}: is it the right one?"
                )
            _check_declared(robot, seen)
            found = readings_vector(contract, seen)
            if not np.isfinite(found).all():
                raise Sim2RealError("the robot's readings do not have the contract's shape")
            return found
        clock.sleep_until(clock.now() + 1.0 / contract.rate_hz)
    raise Sim2RealError("the robot gives no readings")


def _check_declared(robot: Robot, seen: Mapping[str, object]) -> None:
    """Refuse readings that nobody would look at, because the robot does not declare them."""
    declared = {
        "@torque": ("measures_torque", robot.abilities.measures_torque),
        "@command": ("reports_commands", robot.abilities.reports_commands),
    }
    for name, (ability, has) in declared.items():
        if name in seen and not has:
            raise Sim2RealError(
                f"{robot.name} reports {name}, but does not declare it: set {ability} in its"
                " abilities"
            )


def make_ready(robot: Robot, contract: Contract, clock: ControlClock) -> Floats:
    """Enable a robot that has stopped, if it needs that; its readings afterwards."""
    drives = enabled(robot)
    readings = first_readings(robot, contract, clock)
    if drives and (why_stopped(robot) or not robot.abilities.reports_why_stopped):
        drives.enable()
        readings = first_readings(robot, contract, clock)
    return readings
