"""Options of recording motions; light, so that the command line starts at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import tyro

from sim2real.files import results_lake


@dataclass(frozen=True, kw_only=True)
class RecordConfig:
    """Move a robot for identification, and record it; a dry run without --execute."""

    subject: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="SUBJECT")]
    """Folder of the robot's twin, or of a bundle, which brings its own rate and limits."""
    robot: str = ""
    """Address of the robot: HOST:PORT, lerobot:FILE.toml, package.module:Class, or unit:7. Without
    one, a dry run from the twin's default pose."""
    motion: Literal["all", "hold", "steps", "chirp", "multisine", "targets"] = "all"
    """Kind of motion: keep still, steps, a frequency sweep, sums of sines, random targets, or all
    of them in turn."""
    seconds: float = 20.0
    """Length of each motion, without its approach and return [s]."""
    joints: tuple[str, ...] = ()
    """Joints that move; all by default."""
    amplitude: float = 0.5
    """Largest deviation from the centre of a motion, as a share of half the joint's range; less
    where the robot would come near an obstacle."""
    speed: float | None = None
    """Highest speed of a position servo's command [rad/s or m/s]."""
    rate_hz: float | None = None
    """Control rate for a twin [Hz]; 50 by default. A bundle has its own."""
    seed: int = 0
    """Seed of the random parts of a motion."""
    execute: bool = False
    """Really move the robot."""
    person: str = ""
    """Who is responsible for the robot while it moves, as a pseudonym."""
    by_the_switch: bool = False
    """Drive a robot without a watchdog: the person stands by the switch that cuts its power."""
    task: str = ""
    """Task at the bench of stand-in hardware, if SUBJECT is a twin."""
    out: Path | None = None
    """Folder for recordings and plots; `runs/record/TWIN/TIME` by default, and none in a dry
    run."""
    lake: str = field(default_factory=results_lake)
    """Lake that the episodes are kept in too; by default the one that the variable SIM2REAL_LAKE
    names, or `runs/lake`; '' for none."""
    json: bool = False
    """Print the result as JSON."""
