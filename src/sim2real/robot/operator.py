"""How a person stops a robot: a key, a file, or a signal."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType

_Handler = Callable[[int, FrameType | None], object] | int | signal.Handlers | None
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP)


class OperatorStop:
    """Whether the operator wants the robot to stop; a context in which it watches.

    A key in the terminal, the appearance of `file`, Ctrl-C or a signal to end stops it.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._handlers: dict[signal.Signals, _Handler] = {}
        self._restore_terminal: Callable[[], None] | None = None
        self.how = ""
        """What stopped it: 'a key', 'the file …', 'signal SIGINT'; '' while nothing did."""

    def __call__(self) -> bool:
        """Whether it was stopped; costs a few microseconds."""
        if not self.how and self._file is not None and self._file.exists():
            self.how = f"the file {self._file}"
        if not self.how and self._restore_terminal is not None:
            ready, _, _ = select.select([sys.stdin], [], [], 0)
            if ready and os.read(sys.stdin.fileno(), 1):
                self.how = "a key"
        return bool(self.how)

    @property
    def signalled(self) -> bool:
        """Whether a signal asked the whole program to end."""
        return self.how.startswith("signal")

    def __enter__(self) -> OperatorStop:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                self._handlers[number] = signal.signal(number, self._caught)
        if sys.stdin is not None and sys.stdin.isatty():
            import termios
            import tty

            settings = termios.tcgetattr(sys.stdin)
            # What was typed in a hurry must not answer the next question.
            self._restore_terminal = partial(
                termios.tcsetattr, sys.stdin, termios.TCSAFLUSH, settings
            )
            tty.setcbreak(sys.stdin)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._handlers.clear()
        if self._restore_terminal is not None:
            self._restore_terminal()
            self._restore_terminal = None

    def _caught(self, number: int, _: FrameType | None) -> None:
        self.how = f"signal {signal.Signals(number).name}"
