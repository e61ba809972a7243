"""How a person stops a robot: a key, a file, or a signal."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP)


class OperatorStop:
    """Whether the operator wants it to stop; watches while it is entered.

    Any key in the terminal, the file `file` coming to be, Ctrl-C or a signal to end. Once wanted
    it stays so until `clear`.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._handlers: dict[int, Any] = {}
        self._terminal: list[Any] | None = None
        self.how = ""
        """What stopped it: 'a key', 'the file …', 'signal SIGINT'; '' while nothing has."""

    def __call__(self) -> bool:
        """Whether it was stopped; costs a few microseconds."""
        if not self.how and self._file is not None and self._file.exists():
            self.how = f"the file {self._file}"
        if not self.how and self._terminal is not None:
            ready, _, _ = select.select([sys.stdin], [], [], 0)
            if ready and os.read(sys.stdin.fileno(), 1):
                self.how = "a key"
        return bool(self.how)

    @property
    def signalled(self) -> bool:
        """Whether a signal asked the whole program to end."""
        return self.how.startswith("signal")

    def clear(self) -> None:
        """Let it go on; a stop file that is still there stops it again."""
        self.how = ""

    def __enter__(self) -> OperatorStop:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                self._handlers[number] = signal.signal(number, self._caught)
        if sys.stdin is not None and sys.stdin.isatty():
            import termios
            import tty

            self._terminal = termios.tcgetattr(sys.stdin)
            tty.setcbreak(sys.stdin)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._handlers.clear()
        if self._terminal is not None:
            import termios

            # What was typed in a hurry must not answer the next question.
            termios.tcsetattr(sys.stdin, termios.TCSAFLUSH, self._terminal)
            self._terminal = None

    def _caught(self, number: int, _: FrameType | None) -> None:
        self.how = f"signal {signal.Signals(number).name}"
