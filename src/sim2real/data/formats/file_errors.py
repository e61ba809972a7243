"""Errors about damaged files, as one line that names the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sim2real.errors import Sim2RealError, explaining

_LENGTH_MAX = 500


@contextmanager
def naming(place: Path | str) -> Iterator[None]:
    """A `Sim2RealError` raised in the block names the file or topic, on one short line."""
    try:
        yield
    except Sim2RealError as error:
        # Text from a file may contain lone surrogates, which no terminal can show.
        message = " ".join(str(error).split()).encode("utf-8", "replace").decode()
        if str(place) not in message:
            message = f"{place}: {message}"
        if len(message) > _LENGTH_MAX:
            message = f"{message[:_LENGTH_MAX]}…"
        raise Sim2RealError(message) from None


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Any error in the block becomes a `Sim2RealError` that names the file."""
    with naming(path), explaining("cannot be read"):
        yield
