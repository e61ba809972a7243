"""What the verbs on a lake share: where it is, and who is asking."""

from __future__ import annotations

import getpass

from sim2real.cli.data_options import InLake
from sim2real.data import Lake
from sim2real.errors import Sim2RealError


def user() -> str:
    """Name of who runs the command."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        raise Sim2RealError("say who you are with --who") from None


def open_lake(verb: InLake) -> Lake:
    """The lake a verb is about."""
    return Lake.open(verb.lake)
