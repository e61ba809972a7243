"""Options of the demo; light, so that the command line starts at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class DemoConfig:
    """Close the gap to a stand-in pendulum: train, deploy, measure, attribute, identify, repeat."""

    out: Path = Path("runs/demo")
    """Folder of all results; replaces a finished demo, and continues an interrupted one."""
    unit: int = 2028
    """Number of the stand-in robot; each number is a different robot."""
    seed: int = 0
    """Seed of everything else that is random."""
    json: bool = False
    """Print the summary as JSON."""
