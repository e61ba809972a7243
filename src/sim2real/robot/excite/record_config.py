"""Options of recording motions; light, so that the command line starts at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro


@dataclass(frozen=True, kw_only=True)
class RecordConfig:
    """Move a robot for identification, and record it; a dry run until --execute."""

    subject: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="SUBJECT")]
    """Folder of the robot's twin, or of a bundle: then its rate and its limits."""
    robot: str = ""
    """Address of the robot: HOST:PORT, lerobot:FILE.toml, or unit:7 for stand-in hardware. Without
    one, a dry run from the twin's default pose."""
    motion: Literal["all", "hold", "steps", "chirp", "multisine", "targets"] = "all"
    """What to do: keep still, steps, a sweep, sums of sines, random targets, or one after the
    other."""
    seconds: float = 20.0
    """Time of each motion, without the way to where it has room and back [s]."""
    joints: tuple[str, ...] = ()
    """Joints that move; all by default."""
    amplitude: float = 0.5
    """Largest way from the middle of a motion, as a part of half the range; less where the robot
    would come near something."""
    speed: float | None = None
    """Fastest command of a position servo [rad/s or m/s]."""
    rate_hz: float | None = None
    """Control rate of a twin [Hz]; 50 by default. A bundle has its own."""
    seed: int = 0
    """Seed of what is random in a motion."""
    execute: bool = False
    """Really move the robot."""
    person: str = ""
    """Who is responsible for the robot while it moves, as a pseudonym."""
    task: str = ""
    """Bench of stand-in hardware, where a twin and not a bundle is recorded."""
    out: Path | None = None
    """Folder for recordings and plots; `runs/record/TWIN/TIME` by default, and none in a dry
    run."""
    lake: str = ""
    """Also keep the episodes in the lake at this address."""
    json: bool = False
    """Print the result as JSON."""
