"""Options of exporting; light, so that the command line starts at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True, kw_only=True)
class ExportConfig:
    """Make a deployable bundle of a training run: graphs, contract, limits, twin, hashes."""

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of the training run."""
    out: Path | None = None
    """Folder of the bundle; `bundle` inside the run by default. It must not exist."""
    observations: int = 10_000
    """Observations that the exported graphs are compared with the trained network on."""
    seed: int = 3_000_000
    """Seed of the worlds these observations come from."""
    json: bool = False
    """Print the result as JSON."""
