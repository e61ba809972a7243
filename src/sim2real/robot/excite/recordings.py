"""Recording a robot for identification: the motions a person asks for, or a series for a loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

from sim2real.data import Lake
from sim2real.errors import Sim2RealError
from sim2real.plain import PlainData
from sim2real.robot.connect import clock_of, connected, open_robot
from sim2real.robot.excite.plan import MOTIONS
from sim2real.robot.excite.record import (
    ExcitedRobot,
    PreparedMotion,
    RecordedMotion,
    play_motions,
    prepare_motion,
)
from sim2real.robot.excite.record_config import RecordConfig
from sim2real.robot.operator import OperatorStop
from sim2real.robot.protocol import Robot

_AMPLITUDE = 0.5
_SMALLER = 0.7
"""Part of the amplitude that is left after a stop."""
_STOPS = 4
"""Stops after which a robot is not moved again."""
_SHORTEST_S = 2.0
_REST_S = 10.0
"""Time in which a robot that was stopped comes to rest."""


@dataclass(frozen=True, kw_only=True)
class RecordedMotions(PlainData, without=("folder", "interrupted")):
    """What a robot did, or would do."""

    executed: bool
    plans: tuple[PreparedMotion, ...]
    recordings: tuple[RecordedMotion, ...]
    """One a motion; none of a dry run."""
    folder: Path | None
    """Where they are; in a dry run where pictures may go, or None."""
    interrupted: bool = False
    """Whether a signal asked the program to end."""

    @property
    def stopped(self) -> bool:
        """Whether a motion did not come to its end."""
        return any(recorded.flight.stopped for recorded in self.recordings)


def record_motions(
    request: RecordConfig,
    *,
    show: Callable[[PreparedMotion], None] = lambda prepared: None,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> RecordedMotions:
    """Plan the motions that are asked for, and with `execute` play and record them.

    `show` gets each motion before it is played. Without a robot it is a dry run from the
    twin's default pose; without `execute` one from where the robot is, and nothing is sent.
    """
    subject = ExcitedRobot.open(request.subject, rate_hz=request.rate_hz, speed=request.speed)
    if request.execute and not request.robot:
        raise Sim2RealError("--execute needs a --robot to move")
    if request.execute and not request.person:
        raise Sim2RealError("only a person lets a robot move: say who with --person")
    if not request.robot:
        planned = _planned(request)
        return RecordedMotions(
            executed=False,
            plans=tuple(planned(subject, one, seed=request.seed) for one in _motions(request)),
            recordings=(),
            folder=request.out,
        )
    robot = open_robot(request.robot, task=request.task or subject.task)
    with connected(robot):
        return _with(request, subject, robot, show, report)


def _with(
    request: RecordConfig,
    subject: ExcitedRobot,
    robot: Robot,
    show: Callable[[PreparedMotion], None],
    report: Callable[[int, int], None],
) -> RecordedMotions:
    folder = request.out
    if folder is None and request.execute:
        stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
        folder = Path("runs/record") / subject.twin.name / stamp
    lake = Lake.create(request.lake) if request.lake and request.execute else None
    plans: list[PreparedMotion] = []
    kept: list[RecordedMotion] = []

    def planned(prepared: PreparedMotion) -> None:
        plans.append(prepared)
        show(prepared)

    with OperatorStop() as stopped:
        for recorded in play_motions(
            subject,
            robot,
            _motions(request),
            folder or Path(),
            person=request.person,
            execute=request.execute,
            planned=_planned(request),
            seed=request.seed,
            operator_stop=stopped,
            show=planned,
            report=report,
        ):
            kept.append(recorded)
            if lake is not None:
                lake.append(recorded.episode)
    return RecordedMotions(
        executed=request.execute,
        plans=tuple(plans),
        recordings=tuple(kept),
        folder=folder,
        interrupted=stopped.signalled,
    )


def _motions(request: RecordConfig) -> tuple[str, ...]:
    return MOTIONS if request.motion == "all" else (request.motion,)


def _planned(request: RecordConfig) -> Callable[..., PreparedMotion]:
    return partial(
        prepare_motion,
        seconds=request.seconds,
        amplitude=request.amplitude,
        joints=request.joints,
        speed=request.speed,
    )


def record_series(
    subject: ExcitedRobot,
    robot: Robot,
    motions: Sequence[str],
    folder: Path,
    *,
    person: str,
    seconds: float,
    seed: int = 0,
    rearm: Callable[[str], bool],
    operator_stop: OperatorStop,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> list[RecordedMotion]:
    """Play motions that last so many seconds together, each as long; all that was recorded.

    A motion is planned with the twin as it is. A robot whose motors are stronger gets faster than
    planned, and the supervisor stops it: what was recorded until then tells much of it, and the
    rest is recorded with smaller motions. `rearm` gets why the supervisor stopped a motion, and
    says whether the robot may go on.
    """
    kept: list[RecordedMotion] = []
    left, amplitude, stops = list(motions), _AMPLITUDE, 0
    while left:
        spent = sum(one.episode.duration_s for one in kept)
        each = (seconds - spent) / len(left)
        if stops and each < _SHORTEST_S:
            break
        for one in play_motions(
            subject,
            robot,
            tuple(left),
            folder / f"after-stop-{stops}" if stops else folder,
            person=person,
            execute=True,
            planned=partial(prepare_motion, seconds=each, amplitude=amplitude),
            seed=seed,
            operator_stop=operator_stop,
            report=report,
        ):
            kept.append(one)
            if not one.flight.stopped:
                left.pop(0)
        if left:
            why = kept[-1].flight.stopped
            stops += 1
            if operator_stop.signalled:
                raise KeyboardInterrupt
            if operator_stop.how or stops == _STOPS or not rearm(why):
                raise Sim2RealError(f"the robot was stopped while it was recorded: {why}")
            amplitude *= _SMALLER
            clock = clock_of(robot)
            clock.sleep_until(clock.now() + _REST_S)
    return kept
