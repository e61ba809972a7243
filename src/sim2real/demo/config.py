"""Options of the demo; light, so that the command line starts at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class DemoConfig:
    """Train a pendulum to swing up, try it in randomised worlds, and show the result."""

    out: Path = Path("runs/demo")
    """Folder for the video, the plots and `summary.json`; replaced if it exists."""
    seed: int = 0
    """Seed of everything random."""
    episodes: int = 500
    """Randomised episodes to evaluate over."""
    json: bool = False
    """Print the summary as JSON."""
