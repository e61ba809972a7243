"""Options of the loop; light, so that the command line starts at once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from sim2real.errors import Sim2RealError

_LONGEST_S, _MOST_AGAIN, _MOST_TRIALS = 3600.0, 100.0, 10_000
"""Motion [s], share of a training and attempts beyond which a number is a mistake."""
_BUDGET = re.compile(r"^(\d+)(?:-trials)?$")


@dataclass(frozen=True, kw_only=True)
class LoopConfig:
    """Close the gap to one robot: train, deploy, measure, attribute, identify, and train again.

    If interrupted, the same command continues where it stopped. Robots move only with
    --execute and --person; stand-in hardware needs neither.
    """

    task: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TASK")]
    """Task to do, as `pendulum-swingup`."""
    robot: str
    """The robot: HOST:PORT, lerobot:FILE.toml, or unit:7 for stand-in hardware."""
    budget: str = "40-trials"
    """Attempts on the robot in all."""
    target: float = 0.9
    """Success on the robot that is aimed at: its lower bound, 95 % sure."""
    strategy: Literal["nominal", "wide", "adr", "identified", "identified+remainder"] = "identified"
    """What the policy is trained in: the twin as written, its ranges doubled, ranges that grow by
    themselves, what was identified, or that and a learned remainder."""
    first: int = 10
    """Attempts of them with the policy that knows the twin as written only."""
    seconds: float = 48.0
    """Recorded motion for identification, in all [s]."""
    iterations: int | None = None
    """Updates of a policy trained from nothing; the task's own number by default."""
    again: float | None = None
    """Updates of a policy that begins with a trained one, against those; the task's own share by
    default."""
    explain: bool = True
    """Say what the gap is made of and why attempts failed, and film a failure and a success."""
    seed: int = 0
    """Seed of everything random; the same seed gives the same run."""
    execute: bool = False
    """Really move the robot."""
    person: str = ""
    """Who stands at the robot and lets it move."""
    force: bool = False
    """Go on where a step of the ladder of trust is not passed; that is on record."""
    threads: int = 0
    """Threads of the simulation; 0 for all cores."""
    out: Path | None = None
    """Folder of all results; `runs/loop/TASK/ROBOT` by default. An existing one is continued."""
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
        if not found or not 1 <= int(found[1]) <= _MOST_TRIALS:
            raise Sim2RealError(f"--budget must look like 40-trials, not {self.budget!r}")
        return int(found[1])

    def check(self) -> None:
        """Refuse impossible options before anything is trained or moved."""
        if not self.robot.startswith("unit:") and not (self.execute and self.person):
            raise Sim2RealError("a robot moves only with --execute, and --person says who lets it")
        if not 0 < self.target < 1:
            raise Sim2RealError(f"--target must be between 0 and 1, not {self.target:g}")
        if not 0 < self.first <= self.trials:
            raise Sim2RealError(
                f"--first must be from 1 to the {self.trials} attempts of --budget,"
                f" not {self.first}"
            )
        if not 0 < self.seconds <= _LONGEST_S:
            raise Sim2RealError(
                f"--seconds must be above 0 and at most {_LONGEST_S:g}, not {self.seconds:g}"
            )
        if self.again is not None and not 0 < self.again <= _MOST_AGAIN:
            raise Sim2RealError(
                f"--again must be above 0 and at most {_MOST_AGAIN:g}, not {self.again:g}"
            )
        if self.iterations is not None and self.iterations < 1:
            raise Sim2RealError(f"--iterations must be at least 1, not {self.iterations}")
        if self.seed < 0 or self.threads < 0:
            raise Sim2RealError("--seed and --threads must not be negative")
