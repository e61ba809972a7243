"""What verbs print: text, tables, and standard JSON."""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from itertools import zip_longest
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


def ask_key(text: str, keys: str) -> str:
    """One of some keys, pressed by the person at the terminal; '' if there is no terminal.

    Enter is a line break. Other keys are ignored, and Ctrl-C interrupts.
    """
    if not sys.stdin.isatty():
        return ""
    import termios
    import tty

    settings = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)  # forgets what was typed in a hurry, and nothing after the question
    try:
        say(text)
        sys.stdout.flush()
        while True:
            pressed = os.read(sys.stdin.fileno(), 1).decode(errors="replace").lower()
            if pressed in ("", "\n", *keys):
                return pressed
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSAFLUSH, settings)


def at_the_terminal() -> dict[str, Any]:
    """The questions of `OperatorPrompts`, if somebody is at the terminal to answer them."""
    return {"ask": ask, "press": ask_key} if sys.stdin.isatty() else {}


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
    """Print a table that folds between words into the width of the terminal.

    Columns in `whole` do not fold. If the words do not fit side by side, each cell gets a line.
    """
    cells = [[" ".join(_cell(value).split()) for value in row] for row in rows]
    longest, widths = [], []
    for column, *below in zip(columns, *cells, strict=True):
        words = [column, *below] if column in whole else " ".join([column, *below]).split()
        longest.append(max(map(len, [column, *below])))
        widths.append(max(map(len, words), default=0))
    room = shutil.get_terminal_size().columns - sum(widths)
    between = 2 if room >= 2 * len(widths) else 1
    spare = room - between * (len(widths) - 1)
    if spare < 0:
        for row in cells:
            say("\n".join(f"{column}: {cell}" for column, cell in zip(columns, row, strict=True)))
            say("")
        return
    # Columns that lack least are widened first: as many as possible then need no second line.
    for k in sorted(range(len(widths)), key=lambda k: longest[k] - widths[k]):
        more = min(spare, longest[k] - widths[k])
        widths[k], spare = widths[k] + more, spare - more
    for row in ([*columns], *cells):
        folded = [
            textwrap.wrap(cell, max(1, width), break_on_hyphens=False)
            for cell, width in zip(row, widths, strict=True)
        ]
        for parts in zip_longest(*folded, fillvalue=""):
            line = (part.ljust(width) for part, width in zip(parts, widths, strict=True))
            say((" " * between).join(line).rstrip())


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
