"""Progress bars, on standard error.

If standard error is not a terminal (a log file, CI), they are plain lines every 15 seconds. The
time left is shown only of work in one part that goes on evenly; of any other it would be wrong.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

_LINE_EVERY_S = 15.0
_Draw = Callable[[str, int, int, str, str], None]
"""Shows title, done, of, text and time left."""


class Bar:
    """Updates a progress bar."""

    def __init__(self, title: str, draw: _Draw, *, even: bool = True) -> None:
        """`even` says whether the time left can be told from the time that has passed."""
        self._title, self._draw, self._even = title, draw, even
        self._first: tuple[float, int, int] | None = None
        self._before = 0

    def phase(self, name: str) -> Bar:
        """The same bar during a part of the work."""
        return Bar(f"{self._title}, {name}", self._draw, even=False)

    def __call__(self, done: int, of: int, text: object = "") -> None:
        """Show that `done` of `of` is done, with a `text` beside it."""
        now = time.monotonic()
        begin, first, first_of = self._first = self._first or (now, done, of)
        self._even = self._even and of == first_of and done >= self._before
        self._before = done
        left = ""
        if self._even and done > first:
            left = f"{(now - begin) / (done - first) * (of - done):.0f} s left"
        self._draw(self._title, done, of, str(text), left)


@contextmanager
def bar(title: str, *, quiet: bool = False) -> Iterator[Bar]:
    """A bar that is updated with (done, of), and a text if there is more to say."""
    if quiet:
        yield Bar(title, lambda *shown: None)
    elif not sys.stderr.isatty():
        yield Bar(title, _lines())
    else:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[text]}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
        )
        with Progress(*columns, console=Console(stderr=True)) as progress:
            task = progress.add_task(title, total=None, text="", left="")
            yield Bar(
                title,
                lambda title, done, of, text, left: progress.update(
                    task, description=title, completed=done, total=of, text=text, left=left
                ),
            )


def _lines() -> _Draw:
    last = time.monotonic()

    def draw(title: str, done: int, of: int, text: str, left: str) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < _LINE_EVERY_S and done < of:
            return
        last = now
        words = (f"{title}: {done}/{of}", text, left)
        sys.stderr.write("  ".join(word for word in words if word) + "\n")

    return draw
