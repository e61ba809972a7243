"""Errors about a damaged file, told so that a person can act on them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sim2real.errors import Sim2RealError

_LENGTH_MAX = 500


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Errors raised in the block name the file, on one line of reasonable length."""
    try:
        yield
    except Sim2RealError as error:
        # What a file says may hold half characters, which no terminal can show.
        message = " ".join(str(error).split()).encode("utf-8", "replace").decode()
        if str(path) not in message:
            message = f"{path}: {message}"
        if len(message) > _LENGTH_MAX:
            message = f"{message[:_LENGTH_MAX]}…"
        raise Sim2RealError(message) from None
