"""Options of the loop; light, so that the command line starts at once."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import tyro

from sim2real.errors import Sim2RealError
from sim2real.files import results_lake

_MAX_SECONDS, _MAX_AGAIN, _MAX_TRIALS = 3600.0, 100.0, 10_000
"""Recorded motion [s], share of a training, and attempts above which an option is a mistake."""
_BUDGET = re.compile(r"^(\d+)(?:-trials)?$")


@dataclass(frozen=True, kw_only=True)
class LoopConfig:
    """Close the gap to one robot: train, deploy, measure, attribute, identify, and train again.

    If it is interrupted, the same command continues it. A robot moves only with --execute and
    --person; stand-in hardware needs neither.
    """

    task: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TASK")]
    """Name of the task, such as `pendulum-swingup`."""
    robot: str
    """The robot: HOST:PORT, lerobot:FILE.toml, package.module:Class, or unit:7 for stand-in
    hardware."""
    budget: str = "40-trials"
    """Total number of attempts on the robot."""
    target: float = 0.9
    """Success rate on the robot to reach with 95 % confidence."""
    strategy: Literal["nominal", "wide", "adr", "identified", "identified+remainder"] = "identified"
    """Train in the twin as written, doubled ranges, automatic ranges, or the identified twin."""
    first: int = 10
    """Attempts of the first policy, which was trained in the twin as written."""
    seconds: float = 48.0
    """Total time of recorded motion for identification [s]."""
    iterations: int | None = None
    """Updates of a policy that is trained from scratch; the task's own number by default."""
    again: float | None = None
    """Updates of a policy that starts from a trained one, as a share of --iterations."""
    explain: bool = True
    """Say what the gap is made of and why attempts failed, and film a failure and a success."""
    seed: int = 0
    """Seed of everything random; the same seed gives the same run."""
    execute: bool = False
    """Really move the robot."""
    person: str = ""
    """Name of the person at the robot who allows it to move."""
    force: bool = False
    """Continue even if the policy fails a step of the ladder of trust; the record says so. For
    stand-in hardware only."""
    by_the_switch: bool = False
    """Drive a robot without a watchdog: the person stands by the switch that cuts its power."""
    judge: Path | None = None
    """File of outcomes, for a robot whose bench judges none: CSV or JSON rows of `trial`, which
    counts from 1, and `outcome`. It may grow while the robot moves."""
    threads: int = 0
    """Threads of the simulation; 0 for all cores."""
    out: Path | None = None
    """Folder of all results; `runs/loop/TASK/ROBOT` by default. An existing one is continued."""
    lake: str = field(default_factory=results_lake)
    """Lake that all recordings are kept in too; by default the one that the variable SIM2REAL_LAKE
    names, or `runs/lake`; '' for none."""
    dry_run: bool = False
    """Only say which steps are kept, and which would be made again and why."""
    json: bool = False
    """Print the result as JSON."""

    @property
    def folder(self) -> Path:
        """Folder of all results."""
        return self.out or Path("runs/loop") / self.task / self.robot.replace(":", "-")

    @property
    def trials(self) -> int:
        """Attempts on the robot that the budget allows."""
        found = _BUDGET.match(self.budget)
        if not found or not 1 <= int(found[1]) <= _MAX_TRIALS:
            raise Sim2RealError(f"--budget must look like 40-trials, not {self.budget!r}")
        return int(found[1])

    def check(self, *, simulated: bool) -> None:
        """Refuse options out of range before anything is trained or moved.

        `simulated` says that the robot is no hardware, which needs nobody's permission to move.
        """
        if not (self.dry_run or simulated) and not (self.execute and self.person):
            raise Sim2RealError(
                "a robot moves only with --execute and --person, who allows it to move"
            )
        if self.force and not (self.dry_run or simulated):
            raise Sim2RealError(
                "--force skips steps of the ladder for stand-in hardware only; a robot's policy"
                " climbs all of them"
            )
        if not 0 < self.target < 1:
            raise Sim2RealError(f"--target must be between 0 and 1, not {self.target:g}")
        if not 0 < self.first <= self.trials:
            raise Sim2RealError(
                f"--first must be from 1 to the {self.trials} attempts of --budget,"
                f" not {self.first}"
            )
        if not 0 < self.seconds <= _MAX_SECONDS:
            raise Sim2RealError(
                f"--seconds must be above 0 and at most {_MAX_SECONDS:g}, not {self.seconds:g}"
            )
        if self.again is not None and not 0 < self.again <= _MAX_AGAIN:
            raise Sim2RealError(
                f"--again must be above 0 and at most {_MAX_AGAIN:g}, not {self.again:g}"
            )
        if self.iterations is not None and self.iterations < 1:
            raise Sim2RealError(f"--iterations must be at least 1, not {self.iterations}")
        if self.seed < 0 or self.threads < 0:
            raise Sim2RealError("--seed and --threads must not be negative")
