"""Progress bars with a rate and the time left, on standard error.

If standard error is not a terminal (a log file, CI), they are plain lines every 15 seconds.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

_LINE_EVERY_S = 15.0


class Show(Protocol):
    """Updates a bar."""

    def __call__(self, done: int, of: int, text: object = "") -> None:
        """Show that `done` of `of` is done, with a `text` beside it."""


@contextmanager
def bar(title: str, *, quiet: bool = False) -> Iterator[Show]:
    """A bar that is updated with (done, of), and a text if there is more to say."""
    if quiet:
        yield lambda done, of, text="": None
    elif not sys.stderr.isatty():
        yield _lines(title)
    else:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[text]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=Console(stderr=True)) as progress:
            task = progress.add_task(title, total=None, text="")
            yield lambda done, of, text="": progress.update(
                task, completed=done, total=of, text=str(text)
            )


def _lines(title: str) -> Show:
    begin = last = time.monotonic()
    first = before = 0

    def show(done: int, of: int, text: object = "") -> None:
        nonlocal begin, last, first, before
        now = time.monotonic()
        if done < before:  # the next part of the work
            begin, first = now, done
        before = done
        if now - last < _LINE_EVERY_S and done < of:
            return
        last = now
        left = (now - begin) / max(done - first, 1) * (of - done)
        sys.stderr.write(f"{title}: {done}/{of}  {text}  {left:.0f} s left\n")

    return show
