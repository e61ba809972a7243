"""Options of planning motions; light, so that the command line starts at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True, kw_only=True)
class PlanConfig:
    """Choose the motions to record next, to determine a twin's parameters.

    Simulates motions within the limits and without collisions in the twin, and prints the `sim2real
    record` command of each chosen one. Nothing is sent to a robot.
    """

    twin: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="TWIN")]
    """Folder of the twin, or of a bundle, whose rate and limits then apply."""
    seconds: float = 60.0
    """Total time of the motions, without the moves to their starts and rest poses [s]."""
    motions: int = 4
    """Number of motions that share this time."""
    parameters: tuple[str, ...] = ()
    """Parameters to determine; by default all that the prior does not fix."""
    speed: float | None = None
    """Fastest command of a position servo, as in `record` [rad/s or m/s]."""
    rate_hz: float | None = None
    """Control rate of a twin, as in `record` [Hz]; 50 by default."""
    out: Path | None = None
    """File for the plan, .toml or .json; the plot is written beside it."""
    seed: int = 0
    """Seed of everything random."""
    threads: int = 0
    """Threads of the simulation; 0 for all cores."""
    json: bool = False
    """Print the plan as JSON."""
