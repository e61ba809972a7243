"""Options of identification; light, so that the command line starts at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from sim2real.scale import ExecutorOptions


@dataclass(frozen=True, kw_only=True)
class IdentifyConfig:
    """Identify a twin from recordings of its robot: a new version with a posterior, and a report.

    A quarter of the recordings is held back, or the last quarter of each if there are few. A new
    twin that predicts those worse than the old one is not promoted: exit code 1.
    """

    twin: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="TWIN")]
    """Folder of the twin, or of a bundle."""
    logs: tuple[str, ...]
    """Recordings, folders, lakes, other files, ids of episodes, or a condition in SQL."""
    out: Path | None = None
    """Folder for the new twin, the report and result.json; `runs/identify/TWIN/TIME` by default."""
    held_back: tuple[str, ...] = ()
    """Recordings to check the new twin with, instead of a quarter of the others."""
    channels: Path | None = None
    """Channel map (TOML) for CSV, npz, JSON and MATLAB files."""
    parameters: tuple[str, ...] = ()
    """Parameters to fit; by default all that the prior does not fix."""
    rate_hz: float = 0.0
    """Control rate [Hz]; by default that of the recordings."""
    starts: int = 8
    """Number of starting points of the fit."""
    remainder: bool = False
    """Also learn a remainder; it is kept if it predicts held-back recordings better."""
    seed: int = 0
    """Seed of everything random."""
    threads: int = 0
    """Threads of the simulation; 0 for all cores."""
    json: bool = False
    """Print the result as JSON."""


@dataclass(frozen=True, kw_only=True)
class CrossValidateConfig(ExecutorOptions):
    """Identify a twin several times, each time without another part of the recordings.

    Each recording is predicted by a twin that has not seen it. No new twin is made; exit code 1 if
    recordings that were left out are predicted no better than before.
    """

    twin: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="TWIN")]
    """Folder of the twin, or of a bundle."""
    logs: tuple[str, ...]
    """Recordings, folders, lakes, other files, ids of episodes, or a condition in SQL."""
    folds: int = 4
    """Number of parts."""
    out: Path | None = None
    """JSON file for the result."""
    channels: Path | None = None
    """Channel map (TOML) for CSV, npz, JSON and MATLAB files."""
    parameters: tuple[str, ...] = ()
    """Parameters to fit; by default all that the prior does not fix."""
    rate_hz: float = 0.0
    """Control rate [Hz]; by default that of the recordings."""
    starts: int = 8
    """Number of starting points of each fit."""
    seed: int = 0
    """Seed of everything random."""
    threads: int = 0
    """Threads of the simulation without an executor; 0 for all cores."""
    json: bool = False
    """Print the result as JSON."""
