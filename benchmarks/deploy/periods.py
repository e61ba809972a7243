"""How long a period takes, from readings to command, and how late it begins."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.benchmark import Result, report
from benchmarks.deploy.craft import TASKS, Craft, Plan
from sim2real.data import Origin, Provenance
from sim2real.errors import Sim2RealError
from sim2real.policy import Pilot
from sim2real.robot import Recording, RobotAbilities, Supervisor, fly
from sim2real.robot.connect import WallClock
from sim2real.robot.protocol import ControlClock
from sim2real.robot.runner import Flight
from sim2real.robot.supervisor import Inputs

_ON_TIME_S = 5e-5
_REAL = Provenance(kind=Origin.REAL)


def measure_time(plan: Plan) -> Iterator[Result]:
    """How long a period takes, and how late it begins."""
    crafts = {task: Craft.load(task) for task in TASKS}
    report("time of a period")
    times = {task: _period_times(craft, plan.periods) for task, craft in crafts.items()}
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
    slow_hz, fast_hz = plan.rates_hz
    report(f"jitter at {slow_hz:g} Hz, {plan.seconds:g} s")
    flight = _paced(crafts["arm-reach"], slow_hz, plan.seconds, WallClock())
    late = 1e3 * flight.late_s
    yield Result(
        name="deploy.jitter_p99_ms",
        value=float(np.quantile(late, 0.99)),
        unit="ms",
        target="<= 2",
        note=f"lateness of {len(late)} periods at {slow_hz:g} Hz in real time, recording; median"
        f" {np.median(late):.3f}, largest {late.max():.2f} ms",
    )
    report(f"{fast_hz:g} Hz")
    khz = _paced(crafts["arm-reach"], fast_hz, plan.khz_seconds, SkippingClock())
    yield Result(
        name="deploy.khz_overruns",
        value=float((khz.late_s > _ON_TIME_S).sum()),
        unit="periods",
        target="<= 0",
        note=f"periods of {len(khz.late_s)} at {fast_hz / 1000:g} kHz that began late; waiting is"
        " skipped, computing takes the time it takes",
    )


def _period_times(craft: Craft, periods: int) -> np.ndarray:
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
    abilities = RobotAbilities()

    def __init__(self, craft: Craft) -> None:
        self._contract = craft.bundle.contract
        self._rng = np.random.default_rng(0)
        self._angles = {command.joint: 0.0 for command in self._contract.commands}

    def connect(self) -> None:
        """Nothing to do."""

    def get_observation(self) -> Mapping[str, float | list[float]]:
        """Where the joints were told to be."""
        noise = self._rng.normal(0.0, 1e-4)
        found: dict[str, float | list[float]] = {"@age": 0.0}
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


def _paced(craft: Craft, rate_hz: float, seconds: float, clock: ControlClock) -> Flight:
    """A recorded flight of the loop itself at some rate."""
    bundle = craft.bundle
    contract = replace(bundle.contract, rate_hz=rate_hz)
    wide = (1e9,) * contract.frame_width
    limits = replace(
        bundle.limits,
        observation_low=tuple(-value for value in wide),
        observation_high=wide,
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
