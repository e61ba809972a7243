"""Options of planning motions; light, so that the command line starts at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True, kw_only=True)
class PlanConfig:
    """Say which motions to record next, to tell a twin's parameters best.

    Motions inside the limits and clear of everything are simulated in the twin; each chosen one is
    printed as the `sim2real record` that plays it. Nothing is sent to a robot.
    """

    twin: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="TWIN")]
    """Folder of the twin, or of a bundle: then its rate and its limits."""
    seconds: float = 60.0
    """Time of all motions together, without their ways and rests [s]."""
    motions: int = 4
    """How many motions share that time."""
    parameters: tuple[str, ...] = ()
    """Parameters to tell; all whose prior leaves them open by default."""
    speed: float | None = None
    """Fastest command of a position servo, as in `record` [rad/s or m/s]."""
    rate_hz: float | None = None
    """Control rate of a twin, as in `record` [Hz]; 50 by default."""
    out: Path | None = None
    """File for the plan, .toml or .json; its plot lies beside it."""
    seed: int = 0
    threads: int = 0
    """Threads of the simulation; 0 for all cores."""
    json: bool = False
    """Print the plan as JSON."""
