"""Options of evaluating and playing; light, so that the command line starts at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True, kw_only=True)
class EvaluateConfig:
    """Measure a policy's success over randomised worlds, and which parameters it fails at."""

    run: Annotated[Path, tyro.conf.Positional]
    """Folder of the training run, or of a bundle."""
    episodes: int = 500
    """Episodes to try, each with parameters of its own."""
    params: str | None = None
    """Where parameters come from: nominal, prior, posterior, or a TOML or JSON file;
    what the run was trained with by default."""
    remainder: bool = False
    """Let the twin's learned remainder act; it always does where the run was trained with it."""
    seed: int = 1_000_000
    """Seed of the episodes; unlike the training's, so that none was trained on."""
    confidence: float = 0.95
    """Confidence of the intervals."""
    out: Path | None = None
    """Folder for trials, plot and JSON; `evaluate` inside the run, or in a bundle's records, by
    default."""
    lake: str = ""
    """Also keep every episode, with its draw and provenance, in the lake at this address."""
    threads: int = 0
    """Threads of the simulation; 0 for all cores."""
    json: bool = False
    """Print the result as JSON."""


@dataclass(frozen=True, kw_only=True)
class PlayConfig:
    """Show a policy at work: a video, and MuJoCo's viewer where there is a screen."""

    run: Annotated[Path, tyro.conf.Positional]
    """Folder of the training run."""
    episodes: int = 3
    """Episodes to film, one after the other."""
    params: str | None = None
    """Where parameters come from; what the run was trained with by default."""
    remainder: bool = False
    """Let the twin's learned remainder act; it always does where the run was trained with it."""
    seed: int = 2_000_000
    """Seed of the episodes."""
    out: Path | None = None
    """The video; `play.mp4` inside the run by default."""
    size: tuple[int, int] = (640, 480)
    """Width and height of the video [pixels]."""
    viewer: bool = False
    """Open MuJoCo's viewer instead."""
    json: bool = False
    """Print the result as JSON."""
