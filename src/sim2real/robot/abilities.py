"""What a robot can do beyond its protocol: declared by the robot, asked for by everyone else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, cast


@dataclass(frozen=True, kw_only=True)
class RobotAbilities:
    """What a robot can do. A robot that only drives needs to declare nothing: all is optional."""

    actuators: tuple[str, ...] | None = None
    """Names of its actuators, in the order of '@torque' and '@command'; None if it does not say."""
    enables: bool = False
    """Its drives have to be started: it has `enable()`."""
    reports_why_stopped: bool = False
    """It may stop by itself, and `stopped_itself` says why."""
    measures_torque: bool = False
    """Its readings have '@torque', the actuators' torques."""
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
