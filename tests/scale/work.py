"""What shards of the tests do."""

import errno
import os
import signal
import time
from pathlib import Path

from sim2real.errors import Sim2RealError


def squares(count, seed=0):
    """Numbers that depend on nothing else."""
    import numpy as np

    return {"sums": (np.random.default_rng(seed).normal(size=(count, 3)) ** 2).sum(0).tolist()}


def slow(number, seconds=0.2):
    time.sleep(seconds)
    return number / 7


def killed_once(mark, number):
    """The first attempt at it is killed, and leaves a mark."""
    try:
        Path(mark).touch(exist_ok=False)
    except FileExistsError:
        return number / 7
    os.kill(os.getpid(), signal.SIGKILL)


def killed(number):
    os.kill(os.getpid(), signal.SIGKILL)


def refused(number):
    if number % 2:
        raise Sim2RealError(f"{number} is odd")
    return number


def broken(number):
    return {}[number]


def on_a_full_disk(number):
    """From here on its process can write nothing to the end."""

    def full(file):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    os.fsync = full
    return number


def environment(names):
    return {name: os.environ.get(name) for name in names}


def long_text(file, folder):
    """Reads a file that is given, and makes one."""
    text = Path(file).read_text() * 3
    (folder / "deep").mkdir(exist_ok=True)
    (folder / "deep" / "text.txt").write_text(text)
    return len(text)


def module_file(name):
    """Where a worker has a module from."""
    import importlib

    return importlib.import_module(name).__file__
