"""Recording a robot for identification: the motions a person asks for, or a series for a loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np

from sim2real.arrays import Floats
from sim2real.data import Episode, Lake, Origin, Provenance, read_recording
from sim2real.errors import Sim2RealError
from sim2real.phases import phase
from sim2real.plain import PlainData
from sim2real.robot.abilities import refuse_unwatched
from sim2real.robot.agreed_limits import agreed_limits
from sim2real.robot.attendance import Attendance
from sim2real.robot.connect import clock_of, connected, open_robot
from sim2real.robot.deployment import OperatorPrompts
from sim2real.robot.driver_errors import driver_says
from sim2real.robot.excite.plan import Excitation, ExcitationPlan, resting
from sim2real.robot.excite.record import ExcitedRobot, PreparedMotion, prepare_motion
from sim2real.robot.excite.record_config import RecordConfig
from sim2real.robot.kinematics import Kinematics
from sim2real.robot.operator import OperatorStop
from sim2real.robot.protocol import Robot
from sim2real.robot.readings import first_readings, make_ready
from sim2real.robot.recording import Recording, write_outcome
from sim2real.robot.runner import Flight, fly
from sim2real.robot.supervisor import Supervisor

_PLANNING_ATTEMPTS = 4
"""How often a motion is planned for a robot that sinks meanwhile."""
_AMPLITUDE = 0.5
"""Amplitude of a series' motions before any stop."""
_SHRINK = 0.7
"""Share of the amplitude that is left after a stop."""
_MAX_STOPS = 4
"""Stops after which a robot is not moved again."""
_MIN_MOTION_S = 2.0
"""Shortest motion that is still recorded after a stop [s]."""
_TRIALS_LATER = 2
"""Several trials have to be set up, a single one need not be."""
_REST_S = 10.0
"""Time in which a robot that was stopped comes to rest."""


@dataclass(frozen=True, kw_only=True)
class RecordedMotion(
    PlainData,
    also=(
        "file=path", "episode=episode.id", "flight.periods", "flight.lost", "flight.limited",
        "late_s=flight.latest_s", "flight.stopped",
    ),
    without=("path", "flight"),
):  # fmt: skip
    """One recorded motion of a robot."""

    path: Path
    flight: Flight
    episode: Episode


@dataclass(frozen=True, kw_only=True)
class MotionPlayer:
    """Plays motions on a connected robot, supervised, and records them."""

    subject: ExcitedRobot
    robot: Robot
    person: str
    seed: int = 0
    by_the_switch: bool = False
    """Whether the person stands by the switch that cuts the robot's power."""
    execute: bool = True
    """Whether to send commands; without it motions are only planned and shown."""
    operator_stop: Callable[[], bool] = lambda: False
    show: Callable[[PreparedMotion], None] = lambda prepared: None
    report: Callable[[int, int], None] = lambda done, of: None

    def __post_init__(self) -> None:
        if self.execute and not self.person:
            raise Sim2RealError(
                "--person NAME is required: who stands at the robot and lets it move"
            )

    def play(
        self,
        motions: Sequence[str],
        folder: Path,
        *,
        planned: Callable[..., PreparedMotion] = prepare_motion,
    ) -> Iterator[RecordedMotion]:
        """Play motions, a file `FOLDER/MOTION.arrow` each.

        Each is `planned` from where the robot is and shown. All end where the first one began, so
        that an arm does not sink from one to the next. A motion that ends early ends them all.
        """
        if self.execute:
            refuse_unwatched(self.robot, self.by_the_switch)
        home: Floats | None = None
        for motion in motions:
            prepared, home = self._planned_where_it_is(
                partial(planned, self.subject, motion, seed=self.seed), home
            )
            self.show(prepared)
            if self.execute:
                recorded = self._play(prepared, folder / f"{motion}.arrow")
                yield recorded
                if recorded.flight.stopped:
                    return

    def _planned_where_it_is(
        self, planned: Callable[..., PreparedMotion], home: Floats | None
    ) -> tuple[PreparedMotion, Floats]:
        """A motion planned from where the robot is, again if it sinks meanwhile; and its `home`."""
        robot, contract, clock = self.robot, self.subject.contract, clock_of(self.robot)
        attempt = 1
        while True:
            with driver_says(f"{robot.name} failed while it was made ready"):
                readings = (make_ready if self.execute else first_readings)(robot, contract, clock)
            home = resting(contract, readings) if home is None else home
            prepared = planned(readings, home=home)
            if not self.execute:
                return prepared, home
            # A robot that hears nothing during planning may stop by itself, and sink.
            with driver_says(f"{robot.name} failed while it was made ready"):
                readings = make_ready(robot, contract, clock)
            try:
                Excitation(contract, prepared.plan).start(readings, np.zeros(0))
            except Sim2RealError:
                if attempt == _PLANNING_ATTEMPTS:
                    raise
                attempt += 1
            else:
                return prepared, home

    def _play(self, prepared: PreparedMotion, path: Path) -> RecordedMotion:
        """Send a prepared motion, and record it.

        It ends in the safe stop, also when the operator or the supervisor ends it early. What was
        recorded until then is kept and says why it ended.
        """
        subject, robot, plan = self.subject, self.robot, prepared.plan
        size = f"amplitude {prepared.amplitude:g}, {plan.seconds:.1f} s"
        source = Provenance(
            kind=Origin.REAL,
            twin=subject.twin.name,
            twin_version=subject.twin.version,
            robot=robot.name,
            serial=robot.serial,
            operator=self.person,
            seed=self.seed,
            software={name: version(name) for name in ("sim2real", "mujoco")},
            recorded=datetime.now(UTC).isoformat(timespec="milliseconds"),
            process=f"record: {plan.motion}, {size}",
        )
        plan.check()
        flight = fly(
            robot,
            Excitation(subject.contract, plan),
            Supervisor(subject.contract, subject.limits),
            clock_of(robot),
            goals={},
            seconds=plan.seconds,
            person=self.person,
            execute=True,
            tool=Kinematics(subject.twin, subject.contract, subject.limits).tool,
            recording=Recording.of(subject.contract, path, source),
            operator_stop=self.operator_stop,
            report=phase(self.report, plan.motion),
        )
        if flight.stopped:
            write_outcome(path, "", stopped=flight.stopped)
        return RecordedMotion(path=path, flight=flight, episode=read_recording(path))


@dataclass(frozen=True, kw_only=True)
class RecordedMotions(PlainData, without=("folder", "interrupted")):
    """What a robot did, or would do."""

    executed: bool
    plans: tuple[PreparedMotion, ...]
    recordings: tuple[RecordedMotion, ...]
    """One a motion; none of a dry run."""
    folder: Path | None
    """Where they are; of a dry run where its plots go, if anywhere."""
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
    tell: Callable[[str], None] = lambda text: None,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> RecordedMotions:
    """Plan the requested motions, and with `execute` play and record them.

    `show` gets each motion before it is played, and `tell` the limits that hold. Without a robot
    it is a dry run from the twin's default pose; without `execute` one from where the robot is, and
    nothing is sent.
    """
    subject = ExcitedRobot.open(request.subject, rate_hz=request.rate_hz, speed=request.speed)
    if request.execute and not request.robot:
        raise Sim2RealError("--execute needs a robot to move: --robot ADDRESS")
    if request.execute and not request.person:
        raise Sim2RealError("--person NAME is required: who stands at the robot and lets it move")
    motions = ExcitationPlan.MOTIONS if request.motion == "all" else (request.motion,)
    planned = partial(
        prepare_motion,
        seconds=request.seconds,
        amplitude=request.amplitude,
        joints=request.joints,
        speed=request.speed,
    )
    if not request.robot:
        return RecordedMotions(
            executed=False,
            plans=tuple(planned(subject, motion, seed=request.seed) for motion in motions),
            recordings=(),
            folder=request.out,
        )
    robot = open_robot(request.robot, task=request.task or subject.task)
    folder = request.out
    if folder is None and request.execute:
        stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
        folder = Path("runs/record") / subject.twin.name / stamp
    plans: list[PreparedMotion] = []
    kept: list[RecordedMotion] = []

    def shown(prepared: PreparedMotion) -> None:
        plans.append(prepared)
        show(prepared)

    with connected(robot), OperatorStop() as stopped:
        lake = Lake.create(request.lake) if request.lake and request.execute else None
        player = MotionPlayer(
            subject=agreed_with(subject, robot, tell),
            robot=robot,
            person=request.person,
            seed=request.seed,
            by_the_switch=request.by_the_switch,
            execute=request.execute,
            operator_stop=stopped,
            show=shown,
            report=report,
        )
        for recorded in player.play(motions, folder or Path(), planned=planned):
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


def agreed_with(subject: ExcitedRobot, robot: Robot, tell: Callable[[str], None]) -> ExcitedRobot:
    """What is excited, within the tightest of its own limits and those that the robot states."""
    agreed = agreed_limits(subject.limits, subject.contract, subject.twin, robot)
    for line in agreed.lines():
        tell(line)
    return replace(subject, limits=agreed.limits)


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
    prompts: OperatorPrompts | None = None,
    judge: Path | None = None,
    by_the_switch: bool = False,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> list[RecordedMotion]:
    """Play motions of equal length, `seconds` in all; everything that was recorded.

    A motion is planned with the present twin. A robot with stronger motors gets faster than
    planned, and the supervisor stops it: the recording up to then is kept, and the remaining
    motions are made smaller. `rearm` gets the reason of a stop, and says whether the robot may go
    on. With `prompts` to a person, trials follow, with their outcomes in the file `judge` if the
    robot judges none: one whose trials nobody could set up or judge is refused before it moves.
    """
    kept: list[RecordedMotion] = []
    left, amplitude, stops = list(motions), _AMPLITUDE, 0
    with connected(robot), OperatorStop() as stop:
        tell = prompts.tell if prompts else lambda text: None
        if prompts:
            later = Attendance(robot=robot, prompts=prompts, judge=judge, trials=_TRIALS_LATER)
            later.check(judged=True)
        player = MotionPlayer(
            subject=agreed_with(subject, robot, tell),
            robot=robot,
            person=person,
            seed=seed,
            by_the_switch=by_the_switch,
            operator_stop=stop,
            report=report,
        )
        while left:
            spent = sum(one.episode.duration_s for one in kept)
            each = (seconds - spent) / len(left)
            if stops and each < _MIN_MOTION_S:
                break
            within = folder / f"after-stop-{stops}" if stops else folder
            planned = partial(prepare_motion, seconds=each, amplitude=amplitude)
            for one in player.play(tuple(left), within, planned=planned):
                kept.append(one)
                if not one.flight.stopped:
                    left.pop(0)
            if left:
                why = kept[-1].flight.stopped
                stops += 1
                if stop.signalled:
                    raise KeyboardInterrupt
                if stop.how or stops == _MAX_STOPS or not rearm(why):
                    raise Sim2RealError(f"the robot was stopped during a recording: {why}")
                amplitude *= _SHRINK
                clock = clock_of(robot)
                clock.sleep_until(clock.now() + _REST_S)
    return kept
