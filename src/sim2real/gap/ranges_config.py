"""Options of looking at ranges; light, so that the command line starts at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True, kw_only=True)
class RangesConfig:
    """Show the ranges of a twin's parameters; with --logs, whether they cover the real robot.

    Exit code 1 where they do not: too narrow, or far too wide.
    """

    twin: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="TWIN")]
    """Folder of the twin, or of a bundle."""
    logs: tuple[str, ...] = ()
    """Recordings of the robot, folders of them, lakes, or files of other formats. Better not those
    that the twin was identified from."""
    params: str = ""
    """Where parameters come from, as in `evaluate`: the posterior by default, or the priors."""
    out: Path | None = None
    """Folder for ranges.html and ranges.json; `runs/randomize/TWIN/TIME` by default."""
    channels: Path | None = None
    """Channel map (TOML) for CSV, npz, JSON and MATLAB files."""
    rate_hz: float = 0.0
    """Control rate of the logs [Hz]; their own by default."""
    horizon_s: float = 0.5
    """Length of a window [s]."""
    draws: int = 64
    """Vectors that every window is replayed with."""
    seed: int = 0
    threads: int = 0
    """Threads of the simulation; 0 for all cores."""
    json: bool = False
    """Print the result as JSON."""
