"""Recording a robot for identification, from its address to its episodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

from sim2real.contract import Contract
from sim2real.data import Lake
from sim2real.errors import Sim2RealError
from sim2real.robot.connect import connected, open_robot
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


@dataclass(frozen=True, kw_only=True)
class RecordedMotions:
    """What a robot did, or would do."""

    contract: Contract
    executed: bool
    plans: tuple[PreparedMotion, ...]
    kept: tuple[RecordedMotion, ...]
    """Recordings, one a motion; none of a dry run."""
    folder: Path | None
    """Where they are; in a dry run where pictures may go, or None."""
    interrupted: bool = False
    """Whether a signal asked the program to end."""

    @property
    def stopped(self) -> bool:
        """Whether a motion did not come to its end."""
        return any(recorded.flight.stopped for recorded in self.kept)

    def to_dict(self) -> dict[str, object]:
        """Plain data."""
        return {
            "executed": self.executed,
            "plans": [prepared.to_dict(self.contract) for prepared in self.plans],
            "recordings": [
                {
                    "file": str(recorded.path),
                    "episode": recorded.episode.id,
                    "periods": recorded.flight.periods,
                    "lost": recorded.flight.lost,
                    "limited": recorded.flight.limited,
                    "late_s": float(recorded.flight.late_s.max(initial=0.0)),
                    "stopped": recorded.flight.stopped,
                }
                for recorded in self.kept
            ],
        }


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
            contract=subject.contract,
            executed=False,
            plans=tuple(planned(subject, one, seed=request.seed) for one in _motions(request)),
            kept=(),
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
        contract=subject.contract,
        executed=request.execute,
        plans=tuple(plans),
        kept=tuple(kept),
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
