"""`test-time`: how long the tests take, those that `make test-fast` runs and all of them."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence

from benchmarks.benchmark import Options, Result, report, side_by_side
from benchmarks.machine import ROOT
from sim2real.errors import Sim2RealError

_QUICK = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "tests/params")


def _shards(options: Options) -> tuple[str, ...]:
    return ("fast",) if options.quick else ("fast", "whole")


def _run(shard: str, options: Options) -> list[Result]:
    if not options.quick:
        _ran(("make", ".venv/.dev"))  # what tests need is not the time of tests
    command = ("make", "test-fast" if shard == "fast" else "test")
    report(f"{' '.join(command)}")
    begin = time.monotonic()
    said = _ran(_QUICK if options.quick else command)
    seconds = time.monotonic() - begin
    if shard == "fast":
        return [_result("fast_seconds", seconds, "s", "<= 60", said)]
    return [_result("minutes", seconds / 60, "min", "<= 12", said)]


def _ran(command: Sequence[str]) -> str:
    """The last lines of a command, which has to end well: the time of failing tests is none."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = [line.strip("= ") for line in done.stdout.splitlines() if line.strip()]
    if done.returncode:
        said = lines or done.stderr.splitlines()
        raise Sim2RealError(f"{' '.join(command)} failed: {'; '.join(said[-2:])}")
    return "; ".join(line for line in lines[-2:] if "passed" in line or "skipped" in line)


def _result(name: str, value: float, unit: str, target: str, note: str) -> Result:
    return Result(name=f"tests.{name}", value=value, unit=unit, target=target, note=note)


MEASUREMENT = side_by_side(_shards, _run)
