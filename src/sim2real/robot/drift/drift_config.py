"""Options of watching for drift; light, so that the command line starts at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True, kw_only=True)
class DriftConfig:
    """Look through a deployed robot's episodes for drift; exit code 1 if it has drifted.

    The first episodes are the reference. If nothing changes, the chance of an alarm is at most
    `false_alarm`, however many episodes follow.
    """

    bundle: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="BUNDLE")]
    """Folder of the bundle the robot runs."""
    logs: tuple[str, ...]
    """Recordings of its episodes, in the order they were made."""
    baseline: int = 20
    """Episodes, from the first, that the others are compared with."""
    false_alarm: float = 0.01
    """Chance of an alarm, ever, while nothing changes."""
    state: Path | None = None
    """File that the monitor is kept in: gone on with where it exists, written in the end. Its
    baseline and false alarm rate are those it was started with; episodes it knows are skipped."""
    out: Path | None = None
    """Picture of the evidence over the episodes (PNG, PDF or SVG)."""
    json: bool = False
    """Print as JSON."""
