"""What verbs print: text, tables, and standard JSON."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any

from sim2real.plain import plain


def say(text: str) -> None:
    """Print a line, with `?` for characters that the terminal does not have."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding) + "\n")


def say_error(text: str) -> None:
    """Print an error as one line on standard error."""
    sys.stderr.write("error: " + " ".join(text.split()) + "\n")


class _OnStandardError(logging.Handler):
    """Prints what rooms log as lines on standard error, beside any progress bar."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one line."""
        sys.stderr.write(" ".join(record.getMessage().split()) + "\n")


def show_log() -> None:
    """Let a person see what rooms log: which logs were taken, and what was left out of them."""
    log = logging.getLogger("sim2real")
    log.setLevel(logging.INFO)
    if not any(isinstance(handler, _OnStandardError) for handler in log.handlers):
        log.addHandler(_OnStandardError())


def ask(text: str) -> str:
    """Ask the person at the terminal; '' if there is no terminal."""
    if not sys.stdin.isatty():
        return ""
    import termios

    termios.tcflush(sys.stdin, termios.TCIFLUSH)
    say(text)
    return sys.stdin.readline()


def print_json(value: object) -> None:
    """Print one JSON value; numbers that JSON does not have become null."""
    sys.stdout.write(json.dumps(plain(value), default=_other) + "\n")


def answer(found: object, words: str | Callable[[], object], *, json: bool) -> int:
    """Print what was found: as JSON, or in words; 0."""
    if json:
        print_json(found)
    elif isinstance(words, str):
        say(words)
    else:
        words()
    return 0


def print_table(
    columns: Sequence[str], rows: Iterable[Iterable[Any]], *, whole: Sequence[str] = ()
) -> None:
    """Print a table that folds into the width of the terminal, but not in the columns `whole`."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column in whole)
    cells = [[_cell(value) for value in row] for row in rows]
    console = Console()
    if len(columns) * 6 > console.width:  # too many columns for a table: one line per cell
        for row in cells:
            for column, cell in zip(columns, row, strict=True):
                say(f"{column}: {cell}")
            say("")
        return
    for row in cells:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)


def shorten(text: str, most: int) -> str:
    """The text, cut to `most` characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple):
        shown = " ".join(_cell(part) for part in value[:6])
        return shown if len(value) <= 6 else f"{shown} … ({len(value)})"
    return shorten(str(value), 200)


def _other(value: object) -> object:
    """A database's value for JSON."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return f"{len(value)} bytes" if isinstance(value, bytes) else str(value)
