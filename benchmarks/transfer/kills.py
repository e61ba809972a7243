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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from sim2real.bench.config import BenchTransfer
from sim2real.bench.run import Report, Result
from sim2real.errors import Sim2RealError

_ID = re.compile(r"\b(?=[0-9]*[a-f])(?:[0-9a-f]{8}|[0-9a-f]{32})\b")
"""Ids of episodes: they have the time of their recording in them."""
_EXPLAINED = 0.2
"""Share of kills in loops that also explain the gap, which takes most of their time."""


def killed_loops(config: BenchTransfer, report: Report) -> Iterator[Result]:
    """Loops of a few updates, killed again and again and gone on with."""
    rng = np.random.default_rng([config.seed, 3])
    explained = round(_EXPLAINED * config.kills)
    same: list[bool] = []
    for count, options in ((config.kills - explained, ["--no-explain"]), (explained, [])):
        with tempfile.TemporaryDirectory() as made:
            same += _same(Path(made), count, options, rng, report)
    yield Result(
        name="transfer.killed_loops_same",
        value=float(np.mean(same)),
        unit="share",
        target=">= 1.0",
        note=f"{config.kills} kills at random moments of {len(same)} loops, {explained} of them in"
        " loops that explain the gap too, each then run to its end: the same summary but for ids of"
        " recordings",
    )


def _same(
    folder: Path, count: int, options: list[str], rng: np.random.Generator, report: Report
) -> Iterator[bool]:
    """Whether each of some loops, killed so often in all, ends as one that was left alone.

    A kill comes at any moment of a loop's length; what is left may end before, or be killed again.
    """
    begin = time.monotonic()
    whole = ended(started(folder / "whole", *options)) if count else {}
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


def ended(process: subprocess.Popen[str]) -> dict[str, Any]:
    """The summary of a loop that is let run to its end; without ids of episodes."""
    text, _ = process.communicate()
    if process.returncode not in (0, 1):
        raise Sim2RealError(f"a loop ended with exit code {process.returncode}")
    found: dict[str, Any] = json.loads(_ID.sub("", text))
    del found["folder"]
    return found
