"""Options of looking at ranges; light, so that the command line starts at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True, kw_only=True)
class RangesConfig:
    """Show the ranges that parameters are drawn from; with --logs, whether they cover the robot.

    Exit code 1 if the ranges are too narrow, or far too wide.
    """

    twin: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="TWIN")]
    """Folder of the twin, or of a bundle."""
    logs: tuple[str, ...] = ()
    """Recordings that the twin was not identified from: files, folders of them, or lakes."""
    params: str = ""
    """Source of parameters, as in `evaluate`: by default the posterior, or else the priors."""
    out: Path | None = None
    """Folder for ranges.html and ranges.json; `runs/randomize/TWIN/TIME` by default."""
    channels: Path | None = None
    """Channel map (TOML) for CSV, npz, JSON and MATLAB files."""
    rate_hz: float = 0.0
    """Control rate of the logs [Hz]; their own by default."""
    horizon_s: float = 0.5
    """Length of a segment [s]."""
    draws: int = 64
    """Number of draws that every segment is replayed with."""
    seed: int = 0
    """Seed of everything random."""
    threads: int = 0
    """Threads of the simulation; 0 for all cores."""
    json: bool = False
    """Print the result as JSON."""
