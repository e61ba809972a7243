"""Motions one after another, and smaller ones where the robot had to be stopped.

A motion is planned with the twin as it is. A robot whose motors are stronger gets faster than
planned, and the supervisor stops it: what was recorded until then tells much of it, and the rest is
recorded with less.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from sim2real.errors import Sim2RealError
from sim2real.robot.connect import clock_of
from sim2real.robot.excite.record import (
    ExcitedRobot,
    RecordedMotion,
    play_motions,
    prepare_motion,
)
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

    `rearm` is told why the supervisor stopped a motion, and says whether the robot may go on.
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
