"""`sim2real bench doctor`: faults put into logs of stand-in hardware, and clean logs.

Every fault that can exist under a task's contract, at three magnitudes and several seeds, in logs
of units that are never the same robot as the twin.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from sim2real.bench.config import BenchDoctor
from sim2real.bench.faulty_logs import LEVELS, inject, possible
from sim2real.bench.run import Report, Result
from sim2real.data import Episode, Origin, Provenance
from sim2real.data.formats.recording import read_recording
from sim2real.errors import Sim2RealError
from sim2real.gap.doctor import Doctor
from sim2real.gap.findings import Fault
from sim2real.policy import Bundle, Pilot, Runtime
from sim2real.robot import Recording, StandIn, Supervisor
from sim2real.robot.runner import fly
from sim2real.tasks import find_task

_TASKS = ("pendulum-swingup", "arm-reach", "arm-push")
_LONG_ENOUGH = 20
"""Periods of a log that faults are put into."""


def bench_doctor(config: BenchDoctor, report: Report) -> Iterator[Result]:
    """Share of faults named at the two larger magnitudes, and false alarms on clean logs."""
    named: Counter[Fault] = Counter()
    tried: Counter[Fault] = Counter()
    smallest: Counter[bool] = Counter()
    alarms, clean = 0, 0
    for task in _TASKS:
        folder = config.bundles / task
        if not Bundle.is_bundle(folder):
            raise Sim2RealError(f"the benchmark needs a bundle of {task} in {config.bundles}")
        bundle = Bundle.open(folder)
        doctor = Doctor(bundle)
        report(f"{task}: flying {config.units} units")
        episodes = list(flights(bundle, config, report))
        for episode in episodes:
            found = doctor.diagnose([episode])
            clean += 1
            if not found.fine:
                alarms += 1
                report(f"{task}: false alarm, {found.verdict}")
        long = [e for e in episodes if len(e["action"].times) >= _LONG_ENOUGH]
        for fault in Fault:
            if not possible(fault, bundle.contract):
                continue
            for level in LEVELS:
                for seed in range(config.seeds):
                    episode = long[seed % len(long)]
                    spoilt = inject(doctor.interface, episode, fault, level=level, seed=seed)
                    findings = doctor.diagnose([spoilt]).findings
                    right = bool(findings) and findings[0].fault is fault
                    if level == 0:
                        smallest[right] += 1
                        continue
                    named[fault] += right
                    tried[fault] += 1
            if tried[fault]:
                report(f"{task}: {fault}: {named[fault]} of {tried[fault]} so far")
    for fault in Fault:
        if tried[fault]:
            yield Result(
                name=f"doctor.named.{fault.name.lower()}",
                value=named[fault] / tried[fault],
                unit="share",
                target=">= 0.95",
                note=f"{fault}; {named[fault]} of {tried[fault]} at the two larger magnitudes",
            )
    yield Result(
        name="doctor.named",
        value=sum(named.values()) / max(1, sum(tried.values())),
        unit="share",
        target=">= 0.95",
        note=f"{sum(named.values())} of {sum(tried.values())}; of the smallest magnitude"
        f" {smallest[True]} of {smallest.total()}",
    )
    yield Result(
        name="doctor.false_alarms",
        value=float(alarms),
        unit="logs",
        target="<= 0",
        note=f"{clean} clean logs of {config.units} units a task",
    )


def flights(bundle: Bundle, config: BenchDoctor, report: Report) -> Iterator[Episode]:
    """Logs of a bundle on stand-in hardware, one a unit and seed."""
    contract = bundle.contract
    runtime = Runtime(bundle)
    seconds = find_task(contract.task).episode_s
    with tempfile.TemporaryDirectory() as folder:
        for unit in range(config.first_unit, config.first_unit + config.units):
            with StandIn(unit, contract.task) as robot:
                for seed in range(config.flights):
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
