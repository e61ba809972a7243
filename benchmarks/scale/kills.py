"""Killing workers and drivers at random moments: are the results those of an undisturbed run?"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.benchmark import report
from benchmarks.machine import ROOT
from benchmarks.scale.chunk import Plan, chunks
from sim2real.errors import Sim2RealError
from sim2real.scale import ShardStore, open_executor

_PATIENCE_S = 300.0
_APART_S = 1.5 / 64
"""Mean time between kills of workers, for each episode of a shard."""


@dataclass(frozen=True, kw_only=True)
class Killed:
    """What became of runs that were killed."""

    executor: str
    workers: int
    """Workers that were killed while they had a shard."""
    drivers: int
    """Drivers that were killed."""
    shards: int
    """Shards whose results were compared."""
    same: int
    """Those with the same result, bit for bit."""


def killed(plan: Plan, name: str, kills: int, drivers: int) -> Killed:
    """Run the same shards again and again, until so many were killed; then compare all results."""
    rng = np.random.default_rng([plan.seed, len(name)])
    with tempfile.TemporaryDirectory(prefix="bench-scale-") as made:
        whole = _whole(plan, Path(made) / "whole")
        done = Tally()
        runs = compared = same = 0
        while done.workers < kills or done.drivers < drivers:
            runs += 1
            store = Path(made) / f"run-{runs}"
            while not _ended(name, plan, store, done, kills, drivers, rng):
                pass
            found = _digests(plan, store)
            compared += len(whole)
            same += sum(found.get(key) == digest for key, digest in whole.items())
            report(f"{name}: {done.workers} of {kills} workers and {done.drivers} of {drivers}"
                   f" drivers killed; {same} of {compared} results the same")  # fmt: skip
    return Killed(
        executor=name, workers=done.workers, drivers=done.drivers, shards=compared, same=same
    )


@dataclass
class Tally:
    """Kills so far."""

    workers: int = 0
    drivers: int = 0


def _whole(plan: Plan, folder: Path) -> dict[str, str]:
    """Hashes of the results of a run that was left alone."""
    with open_executor("local", workers=plan.workers) as executor:
        done = executor.run(chunks(plan.shards, plan.episodes), ShardStore(folder))
        return {one.key: one.digest for one in done}


def _digests(plan: Plan, folder: Path) -> dict[str, str]:
    store = ShardStore(folder)
    found = (store.get(shard.key) for shard in chunks(plan.shards, plan.episodes))
    return {one.key: one.digest for one in found if one is not None}


class Driver:
    """A driver in a process of its own, and what it says."""

    def __init__(self, name: str, plan: Plan, store: Path) -> None:
        words = ["-m", "benchmarks.scale.driver", name, str(store)]
        words += [str(plan.shards), str(plan.episodes), str(plan.workers)]
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.process = subprocess.Popen(
            [sys.executable, *words], stdout=subprocess.PIPE, stderr=self.errors, text=True,
            cwd=ROOT,
        )  # fmt: skip
        self.working: dict[str, int] = {}
        """Process of each shard that has begun and not ended."""
        self.heard = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            said = json.loads(line)
            if said["kind"] == "begun":
                self.working[said["key"]] = int(said["where"].rpartition(":")[2])
            elif "key" in said:
                self.working.pop(said["key"], None)
            self.heard.set()

    def said(self) -> str:
        """What it wrote to standard error, in the end."""
        self.errors.seek(0)
        return self.errors.read()[-500:]


@contextmanager
def _driver(name: str, plan: Plan, store: Path) -> Iterator[Driver]:
    driver = Driver(name, plan, store)
    try:
        yield driver
    finally:
        driver.process.kill()
        driver.process.wait()
        driver.errors.close()


def _ended(
    name: str, plan: Plan, store: Path, done: Tally, kills: int, drivers: int,
    rng: np.random.Generator,
) -> bool:  # fmt: skip
    """Whether a driver came to its end; False where it was killed."""
    with _driver(name, plan, store) as driver:
        if not driver.heard.wait(_PATIENCE_S):
            raise Sim2RealError(f"a driver of {name!r} did not start: {driver.said()}")
        end = time.monotonic() + _PATIENCE_S
        fate = _fate(plan, rng) if done.drivers < drivers else np.inf
        fate += time.monotonic()
        while driver.process.poll() is None:
            if time.monotonic() > end:
                raise Sim2RealError(f"a driver of {name!r} did not end: {driver.said()}")
            time.sleep(
                min(
                    float(rng.exponential(_APART_S * plan.episodes)),
                    max(0.0, fate - time.monotonic()),
                )
            )
            if driver.process.poll() is not None:
                break
            if time.monotonic() >= fate:
                done.drivers += 1
                return False
            if done.workers < kills:
                done.workers += _kill_one(driver, rng)
        if driver.process.returncode:
            raise Sim2RealError(f"a driver of {name!r} failed: {driver.said()}")
    return True


def _fate(plan: Plan, rng: np.random.Generator) -> float:
    """Seconds that a driver may live: from its start to about the end of its work."""
    return float(rng.uniform(0.5, 5.0 * plan.workers + plan.shards * plan.episodes / 100))


def _kill_one(driver: Driver, rng: np.random.Generator) -> bool:
    """Kill a worker that has a shard."""
    working = list(dict(driver.working).items())
    if not working:
        return False
    key, process = working[int(rng.integers(len(working)))]
    driver.working.pop(key, None)
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
        return True
    return False
