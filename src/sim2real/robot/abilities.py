"""What a robot can do beyond its protocol: declared by the robot, asked for by everyone else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, cast

from sim2real.errors import Sim2RealError

LONGEST_WATCHDOG_S = 1.0
"""A robot that moves on for longer without a command has no watchdog [s]."""


@dataclass(frozen=True, kw_only=True)
class RobotAbilities:
    """What a robot can do. A robot that only drives needs to declare nothing: all is optional."""

    actuators: tuple[str, ...] | None = None
    """Names of its actuators, in the order of '@torque' and '@command'; None if it does not say."""
    enables: bool = False
    """Its drives have to be started: it has `enable()`."""
    reports_why_stopped: bool = False
    """It may stop by itself, and `stopped_itself` says why."""
    holds_position: bool = False
    """Its safe stop keeps the position; otherwise that brakes the drives, or lets go of them."""
    watchdog_s: float = 0.0
    """After so long without a command it goes to its safe stop by itself, whatever became of the
    program that drives it [s]; 0 if it never does."""
    relaxes: bool = False
    """It can take the torque off its drives: it has `relax()`."""
    states_limits: bool = False
    """It states limits of its own: `joint_limits`, such as {"elbow": {"velocity": 2.0}}."""
    measures_torque: bool = False
    """Its readings have '@torque', the actuators' torques."""
    measures_temperature: bool = False
    """Its readings have '@temperature', one number an actuator [degC]."""
    reports_commands: bool = False
    """Its readings have '@command', what the program in charge sends."""
    resets: bool = False
    """Its bench sets up trials: it has `reset(seed)` and `goals()`."""
    judges: bool = False
    """Its bench judges them: it has `judge()`."""
    virtual_time: bool = False
    """Its time passes only while one waits for it: it has `now()` and `sleep_until(moment_s)`."""
    patience: bool = False
    """Its answers may stay away, and `patience_s` is how long it waits for one."""
    simulated: bool = False
    """It is no hardware: it can hurt nobody, so that no person has to let it move or re-arm it."""
    owned: bool = False
    """It was started by this program, and no other can be driving it."""
    repeats: bool = False
    """When it is asked the same again from the beginning, it does the same again."""


class HasAbilities(Protocol):
    """Whatever declares abilities."""

    name: str

    @property
    def abilities(self) -> RobotAbilities:
        """What it can do."""


class Enabled(Protocol):
    """A robot whose drives have to be started."""

    def enable(self) -> None:
        """Start the drives."""


class Relaxing(Protocol):
    """A robot that can take the torque off its drives."""

    def relax(self) -> None:
        """Do so, and stay there."""


class StatesLimits(Protocol):
    """A robot that states limits of its own."""

    joint_limits: Mapping[str, Mapping[str, float]]
    """Limits in SI units, by joint or actuator and by their names in `JointLimits`."""


class SelfStopping(Protocol):
    """A robot that may stop by itself."""

    stopped_itself: str
    """Why it stopped; '' while it obeys."""


class TrialBench(Protocol):
    """A robot with a bench that sets up trials."""

    def reset(self, seed: int) -> dict[str, list[float]]:
        """Set up the next trial; its goals."""

    def goals(self) -> dict[str, list[float]]:
        """Goals of the trial that is set up."""


class TrialJudge(Protocol):
    """A robot with a bench that judges trials."""

    def judge(self) -> bool:
        """Whether the task is done."""


class Patient(Protocol):
    """A robot whose answers may stay away."""

    patience_s: float
    """How long an answer may take [s]."""


def enabled(robot: HasAbilities) -> Enabled | None:
    """The robot, if its drives have to be started."""
    return cast(Enabled, robot) if robot.abilities.enables else None


def relaxing(robot: HasAbilities) -> Relaxing | None:
    """The robot, if it can take the torque off its drives."""
    return cast(Relaxing, robot) if robot.abilities.relaxes else None


def stated_limits(robot: HasAbilities) -> Mapping[str, Mapping[str, float]]:
    """Limits that a robot states; empty where it states none."""
    return cast(StatesLimits, robot).joint_limits if robot.abilities.states_limits else {}


def why_stopped(robot: HasAbilities) -> str:
    """Why a robot stopped by itself; '' while it obeys, or if it does not say."""
    says = robot.abilities.reports_why_stopped
    return cast(SelfStopping, robot).stopped_itself if says else ""


def bench_of(robot: HasAbilities) -> TrialBench | None:
    """The robot, if its bench sets up trials."""
    return cast(TrialBench, robot) if robot.abilities.resets else None


def judge_of(robot: HasAbilities) -> TrialJudge | None:
    """The robot, if its bench judges trials."""
    return cast(TrialJudge, robot) if robot.abilities.judges else None


def patient(robot: HasAbilities) -> Patient | None:
    """The robot, if its answers may stay away."""
    return cast(Patient, robot) if robot.abilities.patience else None


def has_watchdog(robot: HasAbilities) -> bool:
    """Whether a robot stops by itself soon after the program that drives it falls silent."""
    return 0.0 < robot.abilities.watchdog_s <= LONGEST_WATCHDOG_S


def refuse_unwatched(robot: HasAbilities, by_the_switch: bool) -> None:
    """Refuse to send commands to hardware that nothing stops when this program dies.

    A person who stands by the switch that cuts its power does so instead.
    """
    if by_the_switch or robot.abilities.simulated or has_watchdog(robot):
        return
    late = robot.abilities.watchdog_s
    has = f"only a watchdog of {late:g} s" if late > 0 else "no watchdog"
    raise Sim2RealError(
        f"{robot.name} has {has}: nothing stops it in time if this program dies; with"
        " --by-the-switch you say that you stand by the switch that cuts its power"
    )
