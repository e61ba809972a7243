"""Which motions of a robot to record next, and the commands that record them.

Motions inside the limits and free of collisions are simulated in the twin; `informative_motions`
chooses among them. Nothing is sent to a robot.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from sim2real.errors import Sim2RealError
from sim2real.plan.chosen_motions import MotionPlan
from sim2real.plan.informative_motions import CandidateMotion, choose
from sim2real.policy import Bundle
from sim2real.robot import MOTIONS, ExcitedRobot, prepare_motion
from sim2real.twin import Twin

_AMPLITUDES = (0.3, 0.8)
_SLOW = 0.3
"""Speed of slow motions, which show friction, as a share of the fastest command."""
_ALONE = ("steps", "chirp")
"""Motions that are also tried with each joint alone."""
_SEEDED = ("multisine", "targets")
"""Random motions, tried with two seeds."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Options of `sim2real record` for one motion."""

    motion: str
    seconds: float
    amplitude: float = _AMPLITUDES[-1]
    joint: str = ""
    speed: float | None = None
    """Fastest command, if it is not the plan's."""
    seed: int = 0

    @property
    def name(self) -> str:
        """Its name in a plan."""
        parts = [self.motion]
        if self.motion != "hold":
            parts.append(f"{self.amplitude:g}")
        if self.joint:
            parts.append(self.joint)
        if self.speed is not None:
            parts.append(f"at {self.speed:g}/s")
        if self.seed:
            parts.append(f"seed {self.seed}")
        return " ".join(parts)

    def command(self, source: Path | str, *, speed: float | None, rate_hz: float | None) -> str:
        """The shell command that records it; `speed` is the fastest command [rad/s or m/s]."""
        words = ["sim2real", "record", str(source), "--motion", self.motion]
        words += ["--seconds", f"{self.seconds:g}"]
        if self.motion != "hold":
            words += ["--amplitude", f"{self.amplitude:g}"]
        if self.joint:
            words += ["--joints", self.joint]
        if speed is not None:
            words += ["--speed", f"{speed:g}"]
        if rate_hz is not None:
            words += ["--rate-hz", f"{rate_hz:g}"]
        if self.seed:
            words += ["--seed", str(self.seed)]
        return shlex.join(words)


def plan_motions(
    twin: Twin | Bundle | Path | str,
    *,
    seconds: float = 60.0,
    motions: int = 4,
    parameters: tuple[str, ...] = (),
    speed: float | None = None,
    rate_hz: float | None = None,
    seed: int = 0,
    threads: int = 0,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> MotionPlan:
    """Choose `motions` motions, `seconds` in all, that determine a twin's parameters best.

    `parameters` are those to determine, by default all whose prior leaves them open. `speed` is the
    fastest command of a position servo, `rate_hz` the control rate of a twin, as in
    `ExcitedRobot.open`; a bundle has its own rate and limits.
    """
    each = seconds / max(1, motions)
    if motions < 1 or each < 1.0:
        raise Sim2RealError(
            f"{seconds:g} s for {motions} motions is too short: a motion takes at least 1 s"
        )
    subject = ExcitedRobot.open(twin, rate_hz=rate_hz, speed=speed)
    candidates, refused = [], []
    for recipe in _recipes(subject, each, speed):
        try:
            candidates.append(_candidate(twin, recipe, speed, rate_hz))
        except Sim2RealError as error:
            refused.append(f"{recipe.name}: {error}")
    if not candidates:
        raise Sim2RealError(f"no motion is possible from the twin's default pose: {refused[0]}")
    chosen = choose(
        subject.twin,
        subject.contract,
        candidates,
        motions=motions,
        wanted=parameters,
        seed=seed,
        threads=threads,
        report=report,
    )
    return replace(chosen, refused=tuple(refused))


def _candidate(
    twin: Twin | Bundle | Path | str, recipe: Recipe, speed: float | None, rate_hz: float | None
) -> CandidateMotion:
    """A motion that is possible from the twin's default pose; else a `Sim2RealError`."""
    speed = speed if recipe.speed is None else recipe.speed
    # The limits of a twin depend on the speed, as they will in `record`.
    subject = ExcitedRobot.open(twin, rate_hz=rate_hz, speed=speed)
    prepared = prepare_motion(
        subject,
        recipe.motion,
        seconds=recipe.seconds,
        amplitude=recipe.amplitude,
        joints=(recipe.joint,) if recipe.joint else (),
        speed=speed,
        seed=recipe.seed,
    )
    source = twin if isinstance(twin, Path | str) else twin.folder
    record = recipe.command(source, speed=speed, rate_hz=rate_hz)
    return CandidateMotion(name=recipe.name, command=prepared.plan.commands, record=record)


def _recipes(subject: ExcitedRobot, seconds: float, speed: float | None) -> Iterator[Recipe]:
    envelope = subject.envelope(speed=speed)
    speeds: list[float | None] = [None]
    if envelope.servo.any():
        speeds.append(float(f"{_SLOW * envelope.rate[envelope.servo].min():.2g}"))
    yield Recipe(motion="hold", seconds=seconds)
    for motion in MOTIONS:
        if motion == "hold":
            continue
        for slow in speeds:
            for amplitude in _AMPLITUDES:
                yield Recipe(motion=motion, seconds=seconds, amplitude=amplitude, speed=slow)
        if motion in _SEEDED:
            yield Recipe(motion=motion, seconds=seconds, seed=1)
        if motion in _ALONE and len(subject.contract.commands) > 1:
            for command in subject.contract.commands:
                yield Recipe(motion=motion, seconds=seconds, joint=command.joint)
