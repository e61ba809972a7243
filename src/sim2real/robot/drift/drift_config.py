"""Options of watching for drift; light, so that the command line starts at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True, kw_only=True)
class DriftConfig:
    """Check a deployed robot's episodes for drift; exit code 1 if it has drifted.

    The first episodes are the reference. As long as nothing changes, the probability of an alarm
    is at most `false_alarm`, however many episodes follow.
    """

    bundle: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="BUNDLE")]
    """Folder of the bundle the robot runs."""
    logs: tuple[str, ...]
    """Recordings of its episodes, in the order they were made."""
    baseline: int = 20
    """Episodes, from the first, that the others are compared with."""
    false_alarm: float = 0.01
    """Probability that there is ever an alarm while nothing changes."""
    state: Path | None = None
    """File that keeps the monitor: continued if it exists, and written at the end. Its baseline and
    false-alarm rate stay those it was started with; episodes it knows are skipped."""
    out: Path | None = None
    """Plot of the evidence over the episodes (PNG, PDF or SVG)."""
    json: bool = False
    """Print as JSON."""
