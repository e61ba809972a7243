"""Options of attribution; light, so that the command line starts at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True, kw_only=True)
class AttributeConfig:
    """Say which dimensions cause a twin's prediction error, and which cost a policy its success.

    A twin without a posterior is identified from the logs first.
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
    """Successes of that policy on the robot, as 12/20; the rest of what it loses is unexplained."""
    out: Path | None = None
    """Folder for result.json and plots; `runs/attribute/TWIN/TIME` by default."""
    channels: Path | None = None
    """Channel map (TOML) for CSV, npz, JSON and MATLAB files."""
    rate_hz: float = 0.0
    """Control rate [Hz]; the recordings' own by default."""
    horizon_s: float = 0.5
    """Time that the twin predicts ahead [s]."""
    segments: int = 32
    """Most segments of the recordings to replay."""
    draws: int = 32
    """Draws of the posterior."""
    each: int = 16
    """Trials of the policy for each draw and combination of dimensions."""
    refits: bool = False
    """Also refit every combination of dimensions, to see whether others could stand in."""
    seed: int = 0
    threads: int = 0
    """Threads of the simulation; 0 for all cores."""
    json: bool = False
    """Print the result as JSON."""


@dataclass(frozen=True, kw_only=True)
class FailuresConfig:
    """Say why trials of a policy on a robot failed: in phases, by kind, with what reproduces them
    in the twin, and what to do about it."""

    policy: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="POLICY")]
    """Folder of a training run or a bundle; an ONNX file with a contract beside it; or
    `package.module:Class`."""
    logs: tuple[str, ...]
    """Its trials on the robot, each with an outcome: files, folders of them, or lakes."""
    identified: Path | None = None
    """Folder of its identified twin, or of `sim2real identify`: tries those values too."""
    worlds: int = 512
    """Simulated trials to compare with: as many with training's draws as over the whole prior."""
    out: Path | None = None
    """Also write the result here, as JSON."""
    seed: int = 0
    threads: int = 0
    """Threads of the simulation; 0 for all cores."""
    json: bool = False
    """Print the result as JSON."""
