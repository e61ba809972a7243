"""Options of the small verbs about twins and tasks; light, so that `--help` answers at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True, kw_only=True)
class TwinShow:
    """Show a twin: its version, parameters, effects and channels."""

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER")]
    """Folder of the twin."""
    json: bool = False
    """Print as JSON."""


@dataclass(frozen=True, kw_only=True)
class TwinLint:
    """Look for the classic mistakes in a twin; exit code 1 if there are warnings."""

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER")]
    """Folder of the twin."""
    json: bool = False
    """Print as JSON."""


@dataclass(frozen=True, kw_only=True)
class Tasks:
    """List the tasks that can be trained."""

    json: bool = False
    """Print as JSON."""
