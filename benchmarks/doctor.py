"""`doctor`: faults put into logs of stand-in hardware, and clean logs.

Every fault that can exist under a task's contract, at three magnitudes and several seeds, in logs
of units that are never the same robot as the twin.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.benchmark import Measurement, Options, Result, report
from benchmarks.machine import ROOT
from sim2real.data import Episode, Origin, Provenance
from sim2real.data.formats.recording import read_recording
from sim2real.doctor.doctor import Doctor
from sim2real.doctor.findings import Fault
from sim2real.policy import Bundle, Pilot, Runtime
from sim2real.robot import Recording, StandIn, Supervisor, fly
from sim2real.tasks import find_task
from sim2real.testing import LEVELS, inject, possible

_TASKS = ("pendulum-swingup", "arm-reach", "arm-push")
BUNDLES = ROOT / "examples" / "bundles"
_LONG_ENOUGH = 20
"""Periods of a log that faults are put into."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Sizes of the measurement."""

    first_unit: int = 500
    """Number of the first unit of stand-in hardware."""
    units: int = 10
    """Units that are flown, a task."""
    flights: int = 10
    """Clean flights, a unit."""
    seeds: int = 10
    """Places and values that each fault is tried with, a magnitude and task."""


@dataclass(frozen=True, kw_only=True)
class Tried:
    """What the doctor said of one task's logs."""

    named: dict[str, int]
    """Faults that were named first, at the two larger magnitudes."""
    tried: dict[str, int]
    smallest: tuple[int, int]
    """(named, tried) of the smallest magnitude, whatever the fault."""
    alarms: int
    """Clean logs in which it found a fault."""
    clean: int


_FULL, _QUICK = Plan(), Plan(units=1, flights=2, seeds=1)


def _shards(options: Options) -> tuple[str, ...]:
    return _TASKS[:1] if options.quick else _TASKS


def _run(task: str, options: Options) -> Tried:
    """Share of faults named, and false alarms on clean logs, of one task."""
    plan = _QUICK if options.quick else _FULL
    bundle = Bundle.open(BUNDLES / task)
    doctor = Doctor(bundle)
    report(f"{task}: flying {plan.units} units")
    episodes = list(flights(bundle, plan))
    verdicts = [doctor.diagnose([episode]) for episode in episodes]
    for found in verdicts:
        if not found.fine:
            report(f"{task}: false alarm, {found.verdict}")
    long = [e for e in episodes if len(e["action"].times) >= _LONG_ENOUGH]
    named: Counter[str] = Counter()
    tried: Counter[str] = Counter()
    smallest: Counter[bool] = Counter()
    for fault in Fault:
        if not possible(fault, bundle.contract):
            continue
        for level in LEVELS:
            for seed in range(plan.seeds):
                episode = long[seed % len(long)]
                spoilt = inject(doctor.interface, episode, fault, level=level, seed=seed)
                findings = doctor.diagnose([spoilt]).findings
                right = bool(findings) and findings[0].fault is fault
                if level == 0:
                    smallest[right] += 1
                    continue
                named[fault.name] += right
                tried[fault.name] += 1
        report(f"{task}: {fault}: {named[fault.name]} of {tried[fault.name]}")
    return Tried(
        named=dict(named),
        tried=dict(tried),
        smallest=(smallest[True], smallest.total()),
        alarms=sum(not found.fine for found in verdicts),
        clean=len(verdicts),
    )


def _results(data: Mapping[str, Tried], options: Options) -> list[Result]:
    parts = list(data.values())
    named = sum((Counter(part.named) for part in parts), Counter[str]())
    tried = sum((Counter(part.tried) for part in parts), Counter[str]())
    smallest = [sum(part.smallest[k] for part in parts) for k in (0, 1)]
    units = _QUICK.units if options.quick else _FULL.units
    return [
        *(
            Result(
                name=f"doctor.named.{fault.name.lower()}",
                value=named[fault.name] / tried[fault.name],
                unit="share",
                target=">= 0.95",
                note=f"{fault}; {named[fault.name]} of {tried[fault.name]} at the two larger"
                " magnitudes",
            )
            for fault in Fault
            if tried[fault.name]
        ),
        Result(
            name="doctor.named",
            value=named.total() / max(1, tried.total()),
            unit="share",
            target=">= 0.95",
            note=f"{named.total()} of {tried.total()}; of the smallest magnitude"
            f" {smallest[0]} of {smallest[1]}",
        ),
        Result(
            name="doctor.false_alarms",
            value=float(sum(part.alarms for part in parts)),
            unit="logs",
            target="<= 0",
            note=f"{sum(part.clean for part in parts)} clean logs of {units} units a task",
        ),
    ]


def flights(bundle: Bundle, plan: Plan) -> Iterator[Episode]:
    """Logs of a bundle on stand-in hardware, one a unit and seed."""
    contract = bundle.contract
    runtime = Runtime(bundle)
    seconds = find_task(contract.task).episode_s
    with tempfile.TemporaryDirectory() as folder:
        for unit in range(plan.first_unit, plan.first_unit + plan.units):
            with StandIn(unit, contract.task) as robot:
                for seed in range(plan.flights):
                    goals = robot.reset(seed)
                    robot.enable()
                    path = Path(folder) / f"{unit}-{seed}.arrow"
                    source = Provenance(
                        kind=Origin.REAL, robot=contract.robot, serial=f"unit-{unit}"
                    )
                    fly(
                        robot,
                        Pilot(runtime),
                        Supervisor(contract, bundle.limits),
                        robot,
                        goals=goals,
                        seconds=seconds,
                        person="bench",
                        execute=True,
                        recording=Recording.of(contract, path, source),
                    )
                    yield read_recording(path)


MEASUREMENT = Measurement(kind=Tried, shards=_shards, run=_run, results=_results, plan=_FULL)
