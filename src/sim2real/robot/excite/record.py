"""Recording a robot for identification: plan a motion, see that it is clear, play it, keep it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from sim2real.contract import Contract, Limits
from sim2real.data import Episode, Origin, Provenance
from sim2real.errors import Sim2RealError, nearest
from sim2real.policy.bundle import Bundle
from sim2real.policy.make import model_limits, twin_contract
from sim2real.robot.excite.clearance import Clearance
from sim2real.robot.excite.plan import Envelope, Excitation, Plan, plan_motion, resting
from sim2real.robot.kinematics import Kinematics
from sim2real.robot.open import clock_of
from sim2real.robot.protocol import Robot
from sim2real.robot.recording import Recording, read_recording, write_outcome
from sim2real.robot.runner import Clock, Flight, first_readings, fly, make_ready, units_of
from sim2real.robot.supervisor import Supervisor
from sim2real.twin import Twin

_TOWARDS_DEFAULT = (0.0, 0.5, 1.0)
_ENOUGH = 0.3
"""Part of the wanted amplitude with which a motion stays where the robot is."""
_ATTEMPTS = 4
_LOST_PERIODS = 3.75
"""Age of the last reading that ends a motion [control periods]: a plan needs no readings, and in
thousands of periods two lost packets in a row are met."""
_SMALLER = 0.75
_SMALLEST = 0.05
"""Least part of the wanted amplitude that is worth a recording."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What is recorded: a robot as its twin knows it, and how far it may go."""

    task: str
    """Task of the bundle; '' for a twin."""
    twin: Twin
    contract: Contract
    limits: Limits

    @classmethod
    def open(
        cls, folder: Path, *, rate_hz: float | None = None, speed: float | None = None
    ) -> Subject:
        """The subject of a twin, or of a bundle: then its twin, its rate and its limits.

        `rate_hz` is the control rate of a twin, 50 Hz by default; `speed` as in `model_limits`.
        """
        if not Bundle.is_bundle(folder):
            twin = Twin.load(folder)
            contract = twin_contract(twin, 50.0 if rate_hz is None else rate_hz)
            limits = model_limits(twin, contract, speed=speed)
            return cls(task="", twin=twin, contract=contract, limits=limits)
        bundle = Bundle.open(folder)
        if rate_hz is not None and rate_hz != bundle.contract.rate_hz:
            raise Sim2RealError(
                f"the bundle is run at {bundle.contract.rate_hz:g} Hz; another rate needs its twin:"
                f" {bundle.twin}"
            )
        # An excitation observes nothing: what belongs to the policy is left out.
        contract = replace(
            bundle.contract, task="", history=1, goals=(), observations=(), actions=()
        )
        limits = replace(bundle.limits, observation_low=(), observation_high=())
        return cls(
            task=bundle.contract.task,
            twin=Twin.load(bundle.twin, check=False),
            contract=contract,
            limits=limits,
        )


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A plan that is clear."""

    plan: Plan
    amplitude: float
    """What was asked for."""
    reduced: str
    """Why some joints move less than that; '' where none does."""
    moved: float
    """How far towards the twin's default pose it goes first, to have room: 0 for not, to 1."""

    def to_dict(self, contract: Contract) -> dict[str, Any]:
        """What would be sent, in plain data."""
        plan = self.plan
        rows = zip(
            contract.commands,
            plan.commands.min(axis=0).tolist(),
            plan.commands.max(axis=0).tolist(),
            plan.speed.tolist(),
            plan.acceleration.tolist(),
            plan.amplitude.tolist(),
            strict=True,
        )
        return {
            "motion": plan.motion,
            "seconds": plan.seconds,
            "reduced": self.reduced,
            "moved": self.moved,
            "commands": [
                {
                    "name": command.name,
                    "unit": command.unit,
                    "low": low,
                    "high": high,
                    "speed": speed,
                    "acceleration": acceleration,
                    "amplitude": amplitude,
                }
                for command, low, high, speed, acceleration, amplitude in rows
            ],
        }


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """One motion on a robot, as it was kept."""

    path: Path
    flight: Flight
    episode: Episode


def prepare(
    subject: Subject,
    motion: str,
    readings: np.ndarray,
    *,
    seconds: float = 20.0,
    amplitude: float = 0.5,
    joints: Sequence[str] = (),
    speed: float | None = None,
    seed: int = 0,
    home: np.ndarray | None = None,
    clearance: Clearance | None = None,
) -> Prepared:
    """Plan a motion from present readings (numbers,), as large as stays clear of everything.

    The amplitude of a joint that would bring the robot near something, or get too fast, is reduced.
    Where that leaves little of it, the motion goes towards the twin's default pose first. It ends
    at `home` (commands,), by default where it starts. A `Sim2RealError` where not even a twentieth
    is clear.
    """
    contract = subject.contract
    clearance = clearance or Clearance(subject.twin, contract, subject.limits)
    envelope = Envelope.of(contract, subject.limits, speed=speed)
    if not 0.0 < amplitude <= 1.0:
        raise Sim2RealError(
            f"an amplitude is a part of the range, above 0 up to 1, not {amplitude:g}"
        )
    start = resting(contract, readings)
    home = start if home is None else home
    default = np.array([command.default for command in contract.commands])
    best: Prepared | None = None
    problem = ""
    for moved in _TOWARDS_DEFAULT if envelope.servo.any() else (0.0,):
        parts, reduced = amplitude * chosen(contract, joints), ""
        found: Prepared | None = None
        while True:
            plan = plan_motion(
                motion,
                envelope,
                rate_hz=contract.rate_hz,
                start=start,
                seconds=seconds,
                amplitude=parts,
                seed=seed,
                home=home,
                around=home + moved * (default - home),
            )
            trouble = clearance.trouble(plan, readings, home=home)
            if trouble is None:
                found = Prepared(plan=plan, amplitude=amplitude, reduced=reduced, moved=moved)
                break
            problem = f"{trouble.what} at {trouble.row / plan.rate_hz:.1f} s"
            reduced = reduced or problem
            parts = np.where(trouble.blamed, _SMALLER * parts, parts)
            if not (trouble.blamed & (parts > _SMALLEST * amplitude)).any():
                break
        if found and (best is None or plan.amplitude.sum() > best.plan.amplitude.sum()):
            best = found
        if (
            best
            and best.plan.amplitude[best.plan.amplitude > 0].min(initial=1) >= _ENOUGH * amplitude
        ):
            break
    if best is None:
        raise Sim2RealError(
            f"no {motion} from here is clear: {problem}; bring the robot to another pose"
        )
    return best


def chosen(contract: Contract, joints: Sequence[str]) -> np.ndarray:
    """(commands,) 1.0 for the joints that move, by their own or their actuators' names."""
    names = {command.joint: k for k, command in enumerate(contract.commands)}
    names |= {command.name: k for k, command in enumerate(contract.commands)}
    found = np.zeros(len(contract.commands))
    for name in joints or list(names):
        if name not in names:
            raise Sim2RealError(f"no joint {name!r} is commanded{nearest(name, names)}")
        found[names[name]] = 1.0
    return found


def play(
    robot: Robot,
    clock: Clock,
    subject: Subject,
    prepared: Prepared,
    path: Path,
    *,
    person: str,
    seed: int = 0,
    operator_stop: Callable[[], bool] = lambda: False,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> Recorded:
    """Send a prepared motion to a connected robot, supervised, and record it.

    It ends in the safe stop, also where the operator or the supervisor ends it early; what was
    recorded until then is kept, and says why.
    """
    contract, plan = subject.contract, prepared.plan
    source = Provenance(
        kind=Origin.REAL,
        twin=subject.twin.name,
        twin_version=subject.twin.version,
        robot=robot.name,
        serial=robot.serial,
        operator=person,
        seed=seed,
        software={name: version(name) for name in ("sim2real", "mujoco")},
        recorded=datetime.now(UTC).isoformat(timespec="milliseconds"),
        process=f"record: {plan.motion}, amplitude {prepared.amplitude:g}, {plan.seconds:.1f} s",
    )
    plan.check()
    tool = Kinematics(subject.twin, contract, subject.limits).tool
    recording = Recording(path, units_of(contract), source)
    try:
        flight = fly(
            robot,
            Excitation(contract, plan),
            Supervisor(contract, replace(subject.limits, stale_periods=_LOST_PERIODS)),
            clock,
            goals={},
            seconds=plan.seconds,
            person=person,
            execute=True,
            tool=tool,
            recording=recording,
            operator_stop=operator_stop,
            report=report,
        )
    finally:
        recording.close()
    if flight.stopped:
        write_outcome(path, "", stopped=flight.stopped)
    return Recorded(path=path, flight=flight, episode=read_recording(path))


def record(
    subject: Subject,
    robot: Robot,
    motions: Sequence[str],
    folder: Path,
    *,
    person: str,
    execute: bool,
    seconds: float = 20.0,
    amplitude: float = 0.5,
    joints: Sequence[str] = (),
    speed: float | None = None,
    seed: int = 0,
    operator_stop: Callable[[], bool] = lambda: False,
    show: Callable[[Prepared], None] = lambda prepared: None,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> Iterator[Recorded]:
    """Play motions on a connected robot, a file `FOLDER/MOTION.arrow` each; dry without `execute`.

    Each motion is planned from where the robot is, shown, and played; it ends where the first one
    began, so that an arm does not sink from one to the next. What ends a motion early ends all.
    """
    if execute and not person:
        raise Sim2RealError("only a person lets a robot move: say who with --person")
    contract, clock = subject.contract, clock_of(robot)
    clearance = Clearance(subject.twin, contract, subject.limits)
    home: np.ndarray | None = None
    for motion in motions:
        for attempt in range(_ATTEMPTS):
            if execute:
                readings = make_ready(robot, contract, clock)
            else:
                readings = first_readings(robot, contract, clock)
            home = resting(contract, readings) if home is None else home
            prepared = prepare(
                subject,
                motion,
                readings,
                seconds=seconds,
                amplitude=amplitude,
                joints=joints,
                speed=speed,
                seed=seed,
                home=home,
                clearance=clearance,
            )
            if not execute:
                break
            # A robot that hears nothing while it is planned for may stop by itself, and sink.
            readings = make_ready(robot, contract, clock)
            try:
                Excitation(contract, prepared.plan).start(readings, np.zeros(0))
                break
            except Sim2RealError:
                if attempt == _ATTEMPTS - 1:
                    raise
        show(prepared)
        if not execute:
            continue
        recorded = play(
            robot,
            clock,
            subject,
            prepared,
            folder / f"{motion}.arrow",
            person=person,
            seed=seed,
            operator_stop=operator_stop,
            report=report,
        )
        yield recorded
        if recorded.flight.stopped:
            return
