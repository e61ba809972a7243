"""`sim2real bench deploy`: the loop on a robot, its time, and its ends.

What is timed is the whole period: readings to command through graphs, supervisor, kinematics and
recording. Faults happen on stand-in hardware in virtual time; kills in real time, to processes.
"""

from __future__ import annotations

import gc
import os
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from sim2real.bench.config import BenchDeploy
from sim2real.bench.kills import bench_kills
from sim2real.bench.run import Report, Result
from sim2real.data import Origin, Provenance
from sim2real.data.formats.recording import read_recording
from sim2real.errors import Sim2RealError
from sim2real.policy import Bundle, Pilot, Runtime
from sim2real.robot import Recording, StandIn, Supervisor
from sim2real.robot.connect import WallClock
from sim2real.robot.kinematics import Kinematics
from sim2real.robot.runner import Flight, fly
from sim2real.robot.supervisor import Inputs
from sim2real.twin import Twin

_TASKS = ("pendulum-swingup", "arm-reach", "arm-push")
_FAULTS = ("encoder freeze", "dropped link", "brown-out", "stuck reading", "slow bus")
_ON_TIME_S = 5e-5
_REAL = Provenance(kind=Origin.REAL)


@dataclass(frozen=True, kw_only=True)
class Craft:
    """A bundle, ready to fly."""

    bundle: Bundle
    runtime: Runtime
    kinematics: Kinematics

    @classmethod
    def load(cls, folder: Path) -> Craft:
        """The bundle in a folder with what is needed to fly it."""
        bundle = Bundle.open(folder)
        twin = Twin.load(bundle.twin)
        return cls(
            bundle=bundle,
            runtime=Runtime(bundle),
            kinematics=Kinematics(twin, bundle.contract, bundle.limits),
        )


def bench_deploy(config: BenchDeploy, report: Report) -> Iterator[Result]:
    """Every measurement of the loop."""
    for task in _TASKS:
        if not Bundle.is_bundle(config.bundles / task):
            raise Sim2RealError(f"the benchmark needs a bundle of {task} in {config.bundles}")
    # First, while this process has no threads of its own that a fork would lose.
    if "kills" in config.parts:
        yield from bench_kills(config, report)
    crafts = {task: Craft.load(config.bundles / task) for task in _TASKS}
    if "time" in config.parts:
        yield from _times(config, crafts, report)
    if "faults" in config.parts:
        yield from _hour(config, crafts, report)


def _times(config: BenchDeploy, crafts: Mapping[str, Craft], report: Report) -> Iterator[Result]:
    """How long a period takes, and how late it begins."""
    report("time of a period")
    times = {task: _period_times(craft) for task, craft in crafts.items()}
    p99 = {task: 1e3 * float(np.quantile(found, 0.99)) for task, found in times.items()}
    worst = max(p99, key=lambda task: p99[task])
    medians = ", ".join(f"{task} {1e3 * float(np.median(t)):.3f}" for task, t in times.items())
    yield Result(
        name="deploy.period_p99_ms",
        value=p99[worst],
        unit="ms",
        target="<= 1",
        note=f"graphs, kinematics and supervisor on one core; slowest task, {worst}; medians"
        f" {medians} ms",
    )
    report(f"jitter at 100 Hz, {config.seconds:g} s")
    flight = _paced(crafts["arm-reach"], 100.0, config.seconds, WallClock())
    late = 1e3 * flight.late_s
    yield Result(
        name="deploy.jitter_p99_ms",
        value=float(np.quantile(late, 0.99)),
        unit="ms",
        target="<= 2",
        note=f"lateness of {len(late)} periods at 100 Hz in real time, recording; median"
        f" {np.median(late):.3f}, largest {late.max():.2f} ms",
    )
    report("1 kHz")
    khz = _paced(crafts["arm-reach"], 1000.0, 60.0, SkippingClock())
    yield Result(
        name="deploy.khz_overruns",
        value=float((khz.late_s > _ON_TIME_S).sum()),
        unit="periods",
        target="<= 0",
        note=f"periods of {len(khz.late_s)} at 1 kHz that began late; waiting is skipped, computing"
        " takes the time it takes",
    )


def _period_times(craft: Craft, *, periods: int = 5000) -> np.ndarray:
    """Time of each period's computing [s], on one core."""
    contract, limits = craft.bundle.contract, craft.bundle.limits
    readings = np.zeros(contract.readings_width)
    goals = np.zeros(sum(goal.width for goal in contract.goals))
    flicker = np.random.default_rng(0).normal(0.0, 1e-3, (periods, len(readings)))
    pilot = Pilot(craft.runtime)
    free = replace(
        limits,
        observation_low=(-1e9,) * contract.frame_width,
        observation_high=(1e9,) * contract.frame_width,
        tool="",
        workspace_low=(),
        workspace_high=(),
    )
    supervisor = Supervisor(contract, free)
    pilot.start(readings, goals)
    supervisor.arm(person="bench", resting=pilot.command[0])
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    times = np.zeros(periods)
    try:
        for period in range(periods):
            seen = readings + flicker[period]
            begin = time.perf_counter()
            frame, _, wanted = pilot.step(seen)
            decision = supervisor.step(
                Inputs(readings=seen, frame=frame, wanted=wanted, tool=craft.kinematics.tool(seen))
            )
            times[period] = time.perf_counter() - begin
            if decision.command is None:
                raise Sim2RealError(f"the bench was stopped: {decision.reason}")
            pilot.sent(decision.command)
    finally:
        os.sched_setaffinity(0, cores)
    return times[100:]


class SkippingClock:
    """Time in which computing takes as long as it takes, and waiting takes none."""

    def __init__(self) -> None:
        self._skipped_s = 0.0

    def now(self) -> float:
        """The time [s]."""
        return time.perf_counter() + self._skipped_s

    def sleep_until(self, moment_s: float) -> None:
        """Be there at once."""
        self._skipped_s += max(0.0, moment_s - self.now())


class Echo:
    """A robot that follows every command at once: no hardware to wait for."""

    name, serial, safe_stop, is_connected = "echo", "", "hold", True

    def __init__(self, craft: Craft) -> None:
        self._contract = craft.bundle.contract
        self._rng = np.random.default_rng(0)
        self._angles = {command.joint: 0.0 for command in self._contract.commands}

    def connect(self) -> None:
        """Nothing to do."""

    def get_observation(self) -> Mapping[str, Any]:
        """Where the joints were told to be."""
        noise = self._rng.normal(0.0, 1e-4)
        found: dict[str, Any] = {"@age": 0.0}
        for sensor in self._contract.sensors:
            here = self._angles.get(sensor.of, 0.0) if sensor.kind == "jointpos" else 0.0
            found[sensor.name] = here + noise if sensor.width == 1 else [noise] * sensor.width
        return found

    def send_action(self, action: Mapping[str, float]) -> Mapping[str, float]:
        """Go a little of the way."""
        for command in self._contract.commands:
            here = self._angles[command.joint]
            self._angles[command.joint] = here + 0.05 * (action[command.name] - here)
        return action

    def stop(self) -> None:
        """Nothing to do."""

    def disconnect(self) -> None:
        """Nothing to do."""


def _paced(craft: Craft, rate_hz: float, seconds: float, clock: Any) -> Flight:
    """A recorded flight of the loop itself at some rate."""
    bundle = craft.bundle
    contract = replace(bundle.contract, rate_hz=rate_hz)
    wide = (1e9,) * contract.frame_width
    limits = replace(
        bundle.limits,
        observation_low=tuple(-value for value in wide),
        observation_high=wide,
        overrun_periods=10.0,
        stale_periods=10.0,
        workspace_low=(-9.0,) * 3,
        workspace_high=(9.0,) * 3,
    )
    pilot = Pilot(craft.runtime)
    pilot.contract = contract
    goals = {goal.name: np.zeros(goal.width) for goal in contract.goals}
    with tempfile.TemporaryDirectory() as folder:
        recording = Recording.of(contract, Path(folder) / "flight.arrow", _REAL)
        flight = fly(
            Echo(craft), pilot, Supervisor(contract, limits), clock, goals=goals,
            seconds=seconds, person="bench", execute=True, tool=craft.kinematics.tool,
            recording=recording,
        )  # fmt: skip
    if flight.stopped:
        raise Sim2RealError(f"the bench was stopped: {flight.stopped}")
    return flight


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


def _hour(config: BenchDeploy, crafts: Mapping[str, Craft], report: Report) -> Iterator[Result]:
    """Virtual deployment with random faults."""
    rng = np.random.default_rng(config.seed)
    tally = _Tally()
    memory: list[float] = []
    unit = 0
    with tempfile.TemporaryDirectory() as folder:
        while tally.seconds < 3600 * config.hours:
            task = _TASKS[unit % len(_TASKS)]
            with StandIn(100 + unit, task) as robot:
                for trial in range(8):
                    _trial(crafts[task], robot, trial, rng, Path(folder), tally)
            unit += 1
            gc.collect()
            memory.append(_resident_mib())
            report(
                f"{tally.seconds / 60:.0f} of {60 * config.hours:g} min, {tally.faults.total()}"
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


def _exceeded(bundle: Bundle, episode: Any) -> int:
    """Periods in which a command, or a joint for more than two periods, was beyond its limits."""
    joints = bundle.limits.joints
    sent = episode.signals.get("command")
    if sent is None:
        return 0
    low, high, rate = (
        np.array([getattr(joint, f"command_{name}") for joint in joints])
        for name in ("low", "high", "rate")
    )
    wrong = ((sent.values < low - 1e-6) | (sent.values > high + 1e-6)).any(axis=1)
    steps = np.abs(np.diff(sent.values, axis=0)) * bundle.contract.rate_hz
    wrong[1:] |= (steps > rate * (1 + 1e-5) + 1e-6).any(axis=1)
    found = int(wrong.sum())
    for sensor in bundle.contract.sensors:
        for joint in joints:
            if sensor.of != joint.name or sensor.kind not in ("jointpos", "jointvel"):
                continue
            values = episode[f"sensor/{sensor.name}"].values[:, 0]
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
