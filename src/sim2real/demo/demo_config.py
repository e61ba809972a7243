"""Options of the demo; light, so that the command line starts at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class DemoConfig:
    """Close the gap to one pendulum: train, deploy, measure, attribute, identify, train again."""

    out: Path = Path("runs/demo")
    """Folder for the report, `summary.json` and every step; a finished demo is replaced, an
    interrupted one continued."""
    unit: int = 2028
    """Number of the stand-in robot; every number is another robot."""
    seed: int = 0
    """Seed of everything else that is random."""
    json: bool = False
    """Print the summary as JSON."""
