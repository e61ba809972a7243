"""Killing a loop at random moments: resumed, does it end with the same numbers?"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.benchmark import report
from sim2real.errors import Sim2RealError

_ID = re.compile(r"\b(?=[0-9]*[a-f])(?:[0-9a-f]{8}|[0-9a-f]{32})\b")
"""Ids of episodes: they have the time of their recording in them."""


def killed_loops(count: int, options: list[str], seed: Sequence[int]) -> tuple[bool, ...]:
    """Whether each of some loops, killed so often in all, ends as one that was left alone.

    A kill comes at any moment of a loop's length; what is left may end before, or be killed again.
    """
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as made:
        return tuple(_same(Path(made), count, options, rng))


def _same(folder: Path, count: int, options: list[str], rng: np.random.Generator) -> Iterator[bool]:
    begin = time.monotonic()
    whole = ended(started(folder / "whole", *options))
    whole_s = time.monotonic() - begin
    kills, loops = 0, 0
    while kills < count:
        loops += 1
        while kills < count and killed(
            started(folder / f"{loops}", *options), float(rng.uniform(0.0, whole_s))
        ):
            kills += 1
        same = ended(started(folder / f"{loops}", *options)) == whole
        report(f"{kills} of {count} kills: loop {loops} {'the same' if same else 'differs'}")
        yield same


def started(folder: Path, *options: str) -> subprocess.Popen[str]:
    """A loop of a few updates in a process of its own, begun or gone on with."""
    command = [
        sys.executable, "-m", "sim2real.cli", "loop", "pendulum-swingup", "--robot", "unit:3",
        "--iterations", "3", "--budget", "4", "--first", "2", "--seconds", "18", "--force",
        "--json", "--out", str(folder), *options,
    ]  # fmt: skip
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def killed(process: subprocess.Popen[str], after_s: float) -> bool:
    """Kill a loop and its robot after a while; False where it had ended before."""
    end = time.monotonic() + after_s
    while time.monotonic() < end:
        if process.poll() is not None:
            return False
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return True


def ended(process: subprocess.Popen[str]) -> dict[str, object]:
    """The summary of a loop that is let run to its end; without ids of episodes."""
    text, _ = process.communicate()
    if process.returncode not in (0, 1) or not text:
        raise Sim2RealError(f"a loop ended with exit code {process.returncode}")
    found: dict[str, object] = json.loads(_ID.sub("", text))
    del found["folder"]
    return found
