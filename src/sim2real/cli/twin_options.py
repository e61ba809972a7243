"""Options of the small verbs about twins and tasks; light, so that `--help` answers at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True, kw_only=True)
class OnTwin:
    """Options of the verbs that look at a twin."""

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER")]
    """Folder of the twin."""
    json: bool = False
    """Print as JSON."""


@dataclass(frozen=True, kw_only=True)
class Tasks:
    """List the tasks that can be trained."""

    json: bool = False
    """Print as JSON."""
