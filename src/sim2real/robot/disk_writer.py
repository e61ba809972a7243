"""Copies its input to its output and waits for the disk, so that a control loop never has to.

It is started by its path in a process of its own, with nothing but Python, so that it is there
within milliseconds. When whoever feeds it ends, however that may be, it writes what it has.
"""

from __future__ import annotations

import os
import select
import sys
import time

SYNC_S = 0.2
"""Longest time that something waits to be on disk [s]."""


def copy(source: int, target: int) -> None:
    """Copy one file to another until it ends."""
    waiting, last_s = False, time.monotonic()
    while True:
        ready, _, _ = select.select([source], [], [], SYNC_S if waiting else None)
        if ready:
            content = os.read(source, 1 << 16)
            if not content:
                break
            while content:
                content = content[os.write(target, content) :]
            waiting = True
        if waiting and (not ready or time.monotonic() - last_s > SYNC_S):
            os.fsync(target)
            waiting, last_s = False, time.monotonic()
    os.fsync(target)


if __name__ == "__main__":
    try:
        copy(sys.stdin.fileno(), sys.stdout.fileno())
    except OSError as problem:
        sys.exit(problem.strerror or str(problem))  # on its standard error
