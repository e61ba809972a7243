"""Options of measuring the gap; light, so that the command line starts at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True, kw_only=True)
class GapConfig:
    """Measure the gap between a twin and its robot by replaying the recorded commands in the twin.

    Gives the error of each channel over the horizon, tests whether real and simulated motion
    differ, and finds where in state space and in time the gap is largest. Use logs that the twin
    was not identified from.
    """

    twin: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="TWIN")]
    """Folder of the twin, or of a bundle."""
    logs: tuple[str, ...]
    """Recordings, folders, lakes, other files, ids of episodes, or a condition in SQL."""
    out: Path | None = None
    """Folder for gap.html and gap.json; `runs/gap/TWIN/TIME` by default."""
    channels: Path | None = None
    """Channel map (TOML) for CSV, npz, JSON and MATLAB files."""
    rate_hz: float = 0.0
    """Control rate of the logs [Hz]; their own by default."""
    horizon_s: float = 0.5
    """Time ahead that the twin predicts, from each measured state [s]."""
    remainder: bool = False
    """Use the twin's learned remainder."""
    seed: int = 0
    """Seed of everything random."""
    threads: int = 0
    """Threads of the simulation; 0 for all cores."""
    json: bool = False
    """Print the result as JSON."""
