"""Faults at random moments of random trials, on stand-in hardware in virtual time."""

from __future__ import annotations

import gc
import resource
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.benchmark import Result, report
from benchmarks.deploy.craft import TASKS, Craft, Plan
from sim2real.arrays import Bools
from sim2real.data import Episode, Origin, Provenance
from sim2real.data.formats.recording import read_recording
from sim2real.policy import Bundle, Pilot
from sim2real.robot import Recording, StandIn, Supervisor, fly

_FAULTS = ("encoder freeze", "dropped link", "brown-out", "stuck reading", "slow bus")
_REAL = Provenance(kind=Origin.REAL)


@dataclass
class _Tally:
    """What happened in an hour."""

    seconds: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    stopped: Counter[str] = field(default_factory=Counter)
    slow: list[str] = field(default_factory=list)
    exceeded: int = 0
    unlogged: int = 0
    healthy: int = 0
    tripped: Counter[str] = field(default_factory=Counter)
    """Stops of runs without a fault, by reason."""


def measure_faults(plan: Plan) -> Iterator[Result]:
    """Virtual deployment with random faults."""
    crafts = {task: Craft.load(task) for task in TASKS}
    rng = np.random.default_rng(plan.seed)
    tally = _Tally()
    memory: list[float] = []
    unit = 0
    with tempfile.TemporaryDirectory() as folder:
        while tally.seconds < 3600 * plan.hours:
            task = TASKS[unit % len(TASKS)]
            with StandIn(100 + unit, task) as robot:
                for trial in range(8):
                    _trial(crafts[task], robot, trial, rng, Path(folder), tally)
            unit += 1
            gc.collect()
            memory.append(_resident_mib())
            report(
                f"{tally.seconds / 60:.0f} of {60 * plan.hours:g} min, {tally.faults.total()}"
                f" faults, {tally.stopped.total()} stopped in time"
            )
    kinds = ", ".join(f"{kind} {tally.stopped[kind]}/{tally.faults[kind]}" for kind in _FAULTS)
    yield Result(name="deploy.faults", value=tally.faults.total(), unit="faults", note=kinds)
    yield Result(
        name="deploy.faults_stopped",
        value=tally.stopped.total(),
        unit="faults",
        target=f">= {tally.faults.total()}",
        note="in the safe stop within two periods; dead encoders: within two periods of motion. "
        + "; ".join(tally.slow[:3]),
    )
    yield Result(
        name="deploy.limits_exceeded",
        value=tally.exceeded,
        unit="periods",
        target="<= 0",
        note=f"commands or joints beyond a limit in {tally.seconds / 3600:.2f} h",
    )
    yield Result(
        name="deploy.periods_unlogged", value=tally.unlogged, unit="periods", target="<= 0"
    )
    reasons = ", ".join(f"{reason} ({n})" for reason, n in tally.tripped.most_common(3))
    yield Result(
        name="deploy.false_stops",
        value=tally.tripped.total() / max(tally.healthy, 1),
        unit="share",
        note=f"of {tally.healthy} runs without a fault. {reasons}",
    )
    early = memory[len(memory) // 4]
    yield Result(
        name="deploy.memory_growth",
        value=memory[-1] / early,
        unit="ratio",
        target="<= 1.05",
        note=f"memory at the end against after a quarter ({early:.0f} MiB)",
    )


def _trial(
    craft: Craft,
    robot: StandIn,
    trial: int,
    rng: np.random.Generator,
    folder: Path,
    tally: _Tally,
) -> None:
    bundle = craft.bundle
    contract = bundle.contract
    goals = robot.reset(trial)
    robot.enable()
    begin = robot.now()
    kind, after = "", 0.0
    if rng.random() < 0.8:
        kind = str(rng.choice(_FAULTS))
        after = float(rng.uniform(0.05, 0.8)) * contract.episode_s
        robot.fault(kind, after)
    path = folder / "flight.arrow"
    path.unlink(missing_ok=True)
    flight = fly(
        robot, Pilot(craft.runtime), Supervisor(contract, bundle.limits), robot, goals=goals,
        seconds=contract.episode_s, person="bench", execute=True, tool=craft.kinematics.tool,
        recording=Recording.of(contract, path, _REAL),
    )  # fmt: skip
    end = robot.now()
    tally.seconds += end - begin
    logged = read_recording(path)
    tally.unlogged += len(flight.late_s) - len(logged["action"].times)
    tally.exceeded += _exceeded(bundle, logged)
    happened = bool(kind) and end >= begin + after
    if not happened:
        tally.healthy += 1
        if flight.stopped:
            tally.tripped[flight.stopped] += 1
        return
    tally.faults[kind] += 1
    periods = (end - begin - after) * contract.rate_hz
    if kind == "encoder freeze":
        # Dead encoders on a robot at rest look like rest: what counts is how long it moved blind.
        periods = robot.moved_blind() * contract.rate_hz
        in_time = periods <= 2.0
    else:
        in_time = bool(flight.stopped) and periods <= 2.0 + 1e-6
    if in_time:
        tally.stopped[kind] += 1
    else:
        tally.slow.append(f"{kind} on {robot.name}: {periods:.2f} periods, '{flight.stopped}'")


def _exceeded(bundle: Bundle, episode: Episode) -> int:
    """Periods in which a command, or a joint for more than two periods, was beyond its limits."""
    joints = bundle.limits.joints
    sent = episode.signals.get("command")
    if sent is None:
        return 0
    low, high, rate = (
        np.array([getattr(joint, f"command_{name}") for joint in joints])
        for name in ("low", "high", "rate")
    )
    values = sent.values.astype(float)
    wrong: Bools = np.any((values < low - 1e-6) | (values > high + 1e-6), axis=1)
    steps = np.abs(np.diff(values, axis=0)) * bundle.contract.rate_hz
    wrong[1:] |= (steps > rate * (1 + 1e-5) + 1e-6).any(axis=1)
    found = int(wrong.sum())
    for sensor in bundle.contract.sensors:
        for joint in joints:
            if sensor.of != joint.name or sensor.kind not in ("jointpos", "jointvel"):
                continue
            values = episode[f"sensor/{sensor.name}"].values[:, 0].astype(float)
            if sensor.kind == "jointpos":
                beyond = (values < joint.position_low - 0.05) | (
                    values > joint.position_high + 0.05
                )
            else:
                beyond = np.abs(values) > joint.velocity
            found += max(0, int(beyond.sum()) - 2)
    return found


def _resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20
