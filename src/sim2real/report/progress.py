"""Progress bars with a rate and the time left, on standard error.

Where standard error is not a terminal (a log file, CI), a plain line now and then instead.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

if TYPE_CHECKING:
    from sim2real.learn import TrainProgress

_LINE_EVERY_S = 15.0


@contextmanager
def bar(title: str, *, quiet: bool = False) -> Iterator[Callable[[int, int], None]]:
    """A bar fed with (done, of)."""
    with _bar(title, quiet=quiet) as show:
        yield lambda done, of: show(done, of, "")


@contextmanager
def training_bar(title: str, *, quiet: bool = False) -> Iterator[Callable[[TrainProgress], None]]:
    """A bar fed with a training run's progress: success, reward and rate beside it."""
    with _bar(title, quiet=quiet) as show:

        def report(progress: TrainProgress) -> None:
            success = progress.success
            text = "" if math.isnan(success) else f"success {100 * success:5.1f} %  "
            text += f"reward {progress.reward:6.2f}  {progress.steps_per_s:,.0f} steps/s"
            if progress.diverged:
                text += f"  {progress.diverged} diverged"
            show(progress.iteration, progress.iterations, text)

        yield report


@contextmanager
def _bar(title: str, *, quiet: bool) -> Iterator[Callable[[int, int, str], None]]:
    if quiet:
        yield lambda done, of, text: None
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
            yield lambda done, of, text: progress.update(task, completed=done, total=of, text=text)


def _lines(title: str) -> Callable[[int, int, str], None]:
    begin = last = time.monotonic()
    first = before = 0

    def show(done: int, of: int, text: str) -> None:
        nonlocal begin, last, first, before
        now = time.monotonic()
        if done < before:  # the next piece of work
            begin, first = now, done
        before = done
        if now - last < _LINE_EVERY_S and done < of:
            return
        last = now
        left = (now - begin) / max(done - first, 1) * (of - done)
        sys.stderr.write(f"{title}: {done}/{of}  {text}  {left:.0f} s left\n")

    return show
