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
_LONGEST_S = 25.0
"""A kill comes this long after a start at most, so that there are several in one loop."""


def killed_loops(config: BenchTransfer, report: Report) -> Iterator[Result]:
    """Loops of a few updates, killed again and again and gone on with."""
    rng = np.random.default_rng([config.seed, 3])
    kills, same, loops = 0, 0, 0
    with tempfile.TemporaryDirectory() as made:
        whole = ended(started(Path(made) / "whole"))
        while kills < config.kills:
            folder = Path(made) / f"{loops}"
            while kills < config.kills:
                process = started(folder)
                if killed(process, float(rng.uniform(1.0, _LONGEST_S))):
                    kills += 1
                else:
                    break
            same += ended(started(folder)) == whole
            loops += 1
            report(f"{kills} of {config.kills} kills, {same} of {loops} loops the same")
    yield Result(
        name="transfer.killed_loops_same",
        value=same / loops,
        unit="share",
        target=">= 1.0",
        note=f"{kills} kills at random moments of {loops} loops, each then run to its end: the same"
        " summary but for ids of recordings",
    )


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
