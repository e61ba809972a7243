"""Runs without a fault, slow and worn units among them: how many are stopped all the same."""

from __future__ import annotations

import gc
import re
import resource
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.benchmark import Result, report
from benchmarks.deploy.craft import TASKS, Craft
from benchmarks.deploy.flights import flight
from benchmarks.deploy.trouble import Trouble
from benchmarks.deploy.unit_robot import UnitRobot
from sim2real.data import Origin, Provenance
from sim2real.data.formats.recording import read_recording
from sim2real.intervals import wilson
from sim2real.reality.breakage import PLAIN_FIRMWARE, Firmware
from sim2real.robot import Recording

_FIRST_UNIT = 2000
_REAL = Provenance(kind=Origin.REAL)
_NUMBER = re.compile(r"-?\d+(\.\d+)?")


@dataclass(frozen=True, kw_only=True)
class Undisturbed:
    """What became of runs without a fault."""

    runs: int = 0
    worn: int = 0
    """Of them, on units after years of work."""
    stops: dict[str, int] = field(default_factory=dict)
    """Stops by reason; joints and numbers taken out."""
    worn_stops: int = 0
    unlogged: int = 0
    """Periods that a recording lacks."""
    memory: tuple[float, float] = (1.0, 1.0)
    """Memory after a quarter and at the end [MiB]."""


def undisturbed(numbers: Sequence[int], *, seed: int) -> Undisturbed:
    """Fly those runs; every third unit is worn, and every second has cheap drives."""
    crafts = {task: Craft.load(task) for task in TASKS}
    stops, worn_stops, worn, unlogged = Counter[str](), 0, 0, 0
    memory: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "flight.arrow"
        for done, number in enumerate(numbers):
            rng = np.random.default_rng([seed, 77, number])
            task = TASKS[number % len(TASKS)]
            old = number // len(TASKS) % 3 == 0
            firmware = PLAIN_FIRMWARE if rng.random() < 0.5 else Firmware()
            robot = UnitRobot(
                task, _FIRST_UNIT + number // len(TASKS), seed=int(rng.integers(2**31)), old=old,
                firmware=firmware,
            )  # fmt: skip
            path.unlink(missing_ok=True)
            recording = Recording.of(crafts[task].bundle.contract, path, _REAL)
            begin_s = robot.now()
            flown = flight(crafts[task], robot, Trouble(begin_s=np.inf), recording=recording)
            unlogged += flown.logged - len(read_recording(path)["action"].times)
            trip = flown.trace.first_trip(begin_s)
            why = flown.stopped or ("" if trip is None or trip[1] == "asked to" else trip[1])
            worn += old
            if why:
                stops[_without_numbers(why, robot.device.names)] += 1
                worn_stops += old
            gc.collect()
            memory.append(_resident_mib())
            if done % 20 == 19:
                report(
                    f"{done + 1} of {len(numbers)} runs without a fault, {stops.total()} stopped"
                )
    return Undisturbed(
        runs=len(numbers), worn=worn, stops=dict(stops.most_common()), worn_stops=worn_stops,
        unlogged=unlogged, memory=(memory[len(memory) // 4], memory[-1]),
    )  # fmt: skip


def false_stop_results(parts: Sequence[Undisturbed]) -> Iterator[Result]:
    """The share of runs that were stopped, and why."""
    runs, worn = sum(part.runs for part in parts), sum(part.worn for part in parts)
    stops = Counter[str]()
    for part in parts:
        stops.update(part.stops)
    rate = wilson(stops.total(), runs)
    of_worn = sum(part.worn_stops for part in parts)
    reasons = ", ".join(f"{reason} ({n})" for reason, n in stops.most_common(8))
    yield Result(
        name="deploy.false_stops",
        value=rate.value,
        unit="share",
        interval=(rate.low, rate.high),
        target="<= 0.02",
        note=f"{stops.total()} of {runs} runs without a fault, {of_worn} of them among {worn} on"
        f" slow and worn units. {reasons}",
    )
    yield Result(
        name="deploy.periods_unlogged",
        value=sum(part.unlogged for part in parts),
        unit="periods",
        target="<= 0",
    )
    worst = max(parts, key=lambda part: part.memory[1] / part.memory[0])
    yield Result(
        name="deploy.memory_growth",
        value=worst.memory[1] / worst.memory[0],
        unit="ratio",
        target="<= 1.05",
        note=f"memory at the end against after a quarter ({worst.memory[0]:.0f} MiB)",
    )


def _without_numbers(why: str, names: Sequence[str]) -> str:
    for name in sorted(names, key=len, reverse=True):
        why = why.replace(name, "…")
    return _NUMBER.sub("…", why)


def _resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20
