"""Options of attribution; light, so that the command line starts at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True, kw_only=True)
class AttributeConfig:
    """Say which dimensions cause a twin's prediction error, and which cost a policy its success.

    A twin without a posterior is first identified from the logs.
    """

    twin: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="TWIN")]
    """Folder of the twin, or of a bundle."""
    logs: tuple[str, ...]
    """Recordings of the robot: files, folders of them, or lakes."""
    identified: Path | None = None
    """Folder of the identified twin, or of `sim2real identify`; TWIN's own posterior by default."""
    policy: Path | None = None
    """Attribute the lost success of this policy too: the folder of a training run or a bundle, an
    ONNX file with a contract beside it, or `package.module:Class`."""
    real: str = ""
    """Successes and trials of that policy on the robot, as 12/20: shows what is unexplained."""
    out: Path | None = None
    """Folder for result.json and plots; `runs/attribute/TWIN/TIME` by default."""
    channels: Path | None = None
    """Channel map (TOML) for CSV, npz, JSON and MATLAB files."""
    rate_hz: float = 0.0
    """Control rate [Hz]; the recordings' own by default."""
    horizon_s: float = 0.5
    """Time ahead that the twin predicts [s]."""
    segments: int = 32
    """Largest number of segments of the recordings to replay."""
    draws: int = 32
    """Number of draws from the posterior."""
    each: int = 16
    """Trials of the policy for each draw and combination of dimensions."""
    refits: bool = False
    """Also refit every combination of dimensions, to see whether one can stand in for another."""
    seed: int = 0
    """Seed of everything random."""
    threads: int = 0
    """Threads of the simulation; 0 for all cores."""
    json: bool = False
    """Print the result as JSON."""


@dataclass(frozen=True, kw_only=True)
class FailuresConfig:
    """Say why trials of a policy on a robot failed, and what to do about it.

    Groups the failures by kind, and looks for parameter values that make the twin fail likewise.
    """

    policy: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="POLICY")]
    """Folder of a training run or a bundle; an ONNX file with a contract beside it; or
    `package.module:Class`."""
    logs: tuple[str, ...]
    """Recordings of its trials, each with an outcome: files, folders of them, or lakes."""
    identified: Path | None = None
    """Folder of the identified twin, or of `sim2real identify`: also tries those values."""
    worlds: int = 512
    """Simulated trials to compare with, both in training's worlds and over the whole prior."""
    out: Path | None = None
    """Also write the result to this JSON file."""
    seed: int = 0
    """Seed of everything random."""
    threads: int = 0
    """Threads of the simulation; 0 for all cores."""
    json: bool = False
    """Print the result as JSON."""
