"""What the verbs on a lake share: where it is, and who is asking."""

from __future__ import annotations

import getpass
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sim2real.cli.transfer import default_lake
from sim2real.errors import Sim2RealError

if TYPE_CHECKING:
    from sim2real.data import Lake


@dataclass(frozen=True, kw_only=True)
class InLake:
    """Options of every verb that works on a lake."""

    lake: str = field(default_factory=default_lake)
    """Folder or `s3://` address of the lake; the variable SIM2REAL_LAKE is its default."""
    json: bool = False
    """Print as JSON."""


def user() -> str:
    """Name of who runs the command."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        raise Sim2RealError("say who you are with --who") from None


def open_lake(verb: InLake) -> Lake:
    """The lake a verb is about."""
    from sim2real.data import Lake

    return Lake.open(verb.lake)
