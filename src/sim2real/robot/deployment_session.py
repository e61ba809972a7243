"""The attempts of one step of the ladder on a robot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from sim2real import __version__
from sim2real.contract import Contract, Limits
from sim2real.data import Lake, Origin, Provenance, read_recording
from sim2real.errors import Sim2RealError
from sim2real.evaluation import OpenedPolicy
from sim2real.files import write_json
from sim2real.phases import phase
from sim2real.policy import Pilot
from sim2real.robot.abilities import judge_of, patient, refuse_unwatched
from sim2real.robot.agreed_limits import agreed_limits
from sim2real.robot.attendance import Attendance
from sim2real.robot.connect import ADDRESSES, clock_of, open_robot
from sim2real.robot.deploy_config import DeployConfig
from sim2real.robot.deployment import AttemptRecord, Deployment, OperatorPrompts
from sim2real.robot.driver_errors import driver_says, said_by
from sim2real.robot.in_charge import check_charge, policy_in_charge
from sim2real.robot.kinematics import Kinematics
from sim2real.robot.ladder import LadderRecord, Shortfall, small_and_slow, write_record
from sim2real.robot.operator import OperatorStop
from sim2real.robot.permission import Permission, permission, refuse_force
from sim2real.robot.protocol import Robot
from sim2real.robot.readings import Goals, first_readings, goal_vector, make_ready
from sim2real.robot.recording import Recording, write_outcome
from sim2real.robot.rehearsal import of_agreement
from sim2real.robot.runner import Controller, Flight, fly
from sim2real.robot.shadow import Holding, Overheard, ShadowComparison, Shadowed
from sim2real.robot.supervisor import Supervisor

_MIN_PERIODS = 25
"""Fewest control periods with which a step counts."""


class DeploymentSession:
    """One step of the ladder on one robot."""

    def __init__(
        self, config: DeployConfig, policy: OpenedPolicy, goals: Goals, prompts: OperatorPrompts
    ) -> None:
        self._config, self._policy, self._prompts = config, policy, prompts
        self._goals = goals
        listening = config.step == "shadow" and config.in_charge == "robot"
        self._sends = config.execute and not listening
        if config.step == "shadow" and not (listening or config.execute):
            raise Sim2RealError(
                f"shadow with --in-charge {config.in_charge} moves the robot: add --execute, or use"
                " --in-charge robot to listen to another program that drives it"
            )
        if self._sends and not config.person:
            raise Sim2RealError(
                "--person NAME is required: who stands at the robot and lets it move"
            )
        if not config.robot:
            raise Sim2RealError(f"--robot is required: {ADDRESSES}")
        self._runtime = policy.runtime()
        self._kinematics = Kinematics(policy.twin, policy.contract, policy.limits)
        self._in_charge = policy_in_charge(config, policy)
        self.robot: Robot = open_robot(config.robot, task=policy.contract.task)
        self._comparison = ShadowComparison(policy.contract, policy.limits)
        self._moved = False
        self._lake: Lake | None = None
        self._attendance = Attendance(
            robot=self.robot,
            prompts=prompts,
            judge=config.judge,
            trials=config.trials,
            first=config.seed,
        )

    def run(self) -> Deployment:
        """All trials of the step, on the `robot`, which is connected."""
        config, robot = self._config, self.robot
        self._clock = clock_of(robot)
        _check_robot(robot, self._policy.contract)
        if config.rearm and not robot.abilities.simulated:
            raise Sim2RealError(
                "--rearm is for stand-in hardware only: a person must re-arm a robot"
            )
        refuse_force(robot, force=config.force)
        self._permission = self._permitted() if self._sends else Permission()
        agreed = agreed_limits(self._policy.limits, self._policy.contract, self._policy.twin, robot)
        self._agreed = agreed.limits
        recorded = config.execute or config.step == "shadow"
        if recorded and config.lake:  # before anything moves
            self._lake = Lake.create(config.lake)
            self._policy.keep_origin(self._lake)
        folder = self._folder() if recorded else None
        stop = OperatorStop(config.stop_file or (folder / "STOP" if folder else None))
        for line in agreed.lines() if self._sends else ():
            self._prompts.tell(line)
        trials: list[AttemptRecord] = []
        try:
            for number in range(config.trials):
                goals = self._set_up(number)
                if self._attendance.ended:
                    stop.how = self._attendance.ended
                    break
                trial = self._trial(number, goals, folder, stop)
                trials.append(trial)
                self._prompts.tell(_line(number, config.trials, trial))
                if stop.how:
                    break
                stop.how = self._attendance.ended or self._not_re_armed(trial, number)
                if stop.how:
                    break
        except BaseException as error:
            # What has moved is on record, however it ended.
            if folder and self._moved:
                self._record(trials, ended=said_by(error))
            raise
        record = self._record(trials) if folder else None
        found = Deployment(
            step=config.step,
            robot=robot.name,
            serial=robot.serial,
            execute=self._sends,
            skipped=self._permission.skipped,
            trials=tuple(trials),
            record=record,
            folder=folder,
            ended=stop.how,
        )
        if folder:
            write_json(folder / "result.json", found.to_dict())
        return found

    def _permitted(self) -> Permission:
        """What lets this step move the robot; whatever speaks against it is a `Sim2RealError`."""
        config, robot = self._config, self.robot
        if not robot.serial:
            raise Sim2RealError(
                f"this {robot.name} has no serial number, but each robot needs its own ladder:"
                " give it an id"
            )
        if self._in_charge is not None and not config.force:
            check_charge(self._in_charge, config.in_charge, robot)
        self._attendance.check(judged=config.step == "full")
        refuse_unwatched(robot, config.by_the_switch)
        return permission(
            self._policy, config.step, robot, force=config.force, prompts=self._prompts
        )

    def _trial(
        self, number: int, goals: Goals, folder: Path | None, stop: OperatorStop
    ) -> AttemptRecord:
        config, robot, contract = self._config, self.robot, self._policy.contract
        goal_vector(contract, goals)  # refuse missing goals before the drives are on
        with driver_says(f"{robot.name} failed while it was read"):
            first_readings(robot, contract, self._clock)  # and another robot
        if self._sends:
            self._moved = True
            with driver_says(f"{robot.name} failed while its drives were started"):
                make_ready(robot, contract, self._clock)
        limits = self._limits(goals)
        recording = None
        if folder:
            path = folder / f"trial-{number + 1:04d}.arrow"
            recording = Recording.of(contract, path, self._provenance(number))
        pilot = Pilot(self._runtime)
        controller: Controller = pilot
        flown: Robot = robot
        if config.step == "shadow" and config.in_charge == "robot":
            flown = charge = Overheard(robot, contract)
            controller = Shadowed(charge, pilot, self._comparison, overheard=True)
        elif config.step == "shadow":
            controller = Shadowed(self._charge(), pilot, self._comparison)
        judged, seen = self._sends and config.step == "full", list[str]()

        def seen_by_bench() -> None:
            """A bench judges before the servos come to rest."""
            if judged and judge_of(robot) is not None:
                seen.append(self._attendance.judged(number, ""))

        with stop, _impatient(robot, contract.rate_hz):
            flight = fly(
                flown,
                controller,
                Supervisor(contract, limits),
                self._clock,
                goals=goals,
                seconds=config.seconds or contract.episode_s or 10.0,
                person=config.person or "nobody",
                execute=self._sends,
                tool=self._kinematics.tool,
                recording=recording,
                operator_stop=stop,
                report=phase(self._prompts.report, f"trial {number + 1} of {config.trials}"),
                show=self._prompts.show,
                at_end=seen_by_bench,
            )
        outcome = "".join(seen)
        if judged and not seen:
            outcome = self._attendance.judged(number, flight.stopped)
        return self._kept(flight, outcome, recording)

    def _charge(self) -> Controller:
        """The controller in charge, which a policy shadows."""
        if self._in_charge is None:
            return Holding(Pilot(self._runtime))
        return Pilot(self._in_charge.runtime())

    def _kept(self, flight: Flight, outcome: str, recording: Recording | None) -> AttemptRecord:
        late = flight.late_s if len(flight.late_s) else np.zeros(1)
        trial = AttemptRecord(
            outcome=outcome,
            stopped=flight.stopped,
            periods=flight.periods,
            lost=flight.lost,
            limited=flight.limited,
            late_p99_s=float(np.quantile(late, 0.99)),
            late_max_s=float(late.max()),
            overruns=int((late * self._policy.contract.rate_hz > 1.0).sum()),
        )
        if recording is None:
            return trial
        write_outcome(recording.path, outcome, stopped=flight.stopped, periods=flight.periods)
        episode = read_recording(recording.path)
        if self._lake is not None:
            self._lake.append(episode)
        return replace(trial, episode=episode.id, recording=str(recording.path))

    def _set_up(self, number: int) -> Goals:
        """Have the robot's bench, or a person, set up a trial; its goals."""
        moves = self._sends and (self._config.step == "full" or self._config.trials > 1)
        with driver_says(f"{self.robot.name} failed while its bench set up a trial"):
            told = self._attendance.set_up(number, moves=moves, resets=self._resets)
        return {**told, **self._goals}

    @property
    def _resets(self) -> bool:
        """Whether the robot's bench sets up trials by seed; not while another program drives it."""
        abilities = self.robot.abilities
        return abilities.resets and (self._sends or abilities.owned)

    def _limits(self, goals: Goals) -> Limits:
        policy = self._policy
        if self._config.step != "limited":
            return self._agreed
        readings = first_readings(self.robot, policy.contract, self._clock)
        pilot = Pilot(self._runtime)
        pilot.start(readings, goal_vector(policy.contract, goals))
        return small_and_slow(self._agreed, pilot.command[0])

    def _not_re_armed(self, trial: AttemptRecord, number: int) -> str:
        """Why it does not continue: after a stop a person must say so; '' if it does."""
        if number + 1 == self._config.trials or not trial.stopped or self._config.rearm:
            return ""
        who = self._prompts.ask("stopped; who re-arms it? [name, Enter to end]").strip()
        return "" if who else "nobody re-armed it"

    def _record(self, trials: list[AttemptRecord], *, ended: str = "") -> LadderRecord:
        """Keep how it went; `ended` is the error that ended it."""
        config, robot = self._config, self.robot
        short = Shortfall(why=ended) if ended else self._shortfall(trials)
        figures: dict[str, object] = {"trials": [asdict(trial) for trial in trials]}
        if config.step == "shadow":
            figures["in_charge"] = config.in_charge
            if self._comparison.periods:
                figures["agreement"] = self._comparison.agreement().to_dict()
        record = LadderRecord(
            step=config.step,
            passed=short is None,
            why=short.why if short else "",
            to_pass=short.to_pass if short else "",
            doubt=short is not None and short.doubt,
            bundle=self._policy.seal,
            robot=robot.name,
            serial=robot.serial,
            person=config.person,
            skipped=self._permission.skipped,
            despite=self._permission.despite,
            episodes=tuple(trial.episode for trial in trials),
            figures=figures,
        )
        write_record(self._policy, record)
        return record

    def _shortfall(self, trials: list[AttemptRecord]) -> Shortfall | None:
        """Why the step was not passed; None if it was."""
        stopped = [trial.stopped for trial in trials if trial.stopped]
        periods = sum(trial.periods for trial in trials)
        if stopped:
            to_pass = f"take {self._config.step} again, to its end"
            return Shortfall(why=f"stopped: {stopped[0]}", to_pass=to_pass, doubt=True)
        if periods < _MIN_PERIODS:
            why = f"only {periods} control periods; at least {_MIN_PERIODS} are needed"
            return Shortfall(why=why, to_pass="run it for longer", doubt=True)
        if self._config.step == "shadow":
            return of_agreement(self._comparison.agreement())
        return None

    def _provenance(self, number: int) -> Provenance:
        config, contract = self._config, self._policy.contract
        return Provenance(
            kind=Origin.REAL,
            task=contract.task,
            twin=contract.robot,
            twin_version=contract.twin_version,
            seed=config.seed + number if self._resets else None,
            policy=self._policy.id,
            robot=self.robot.name,
            serial=self.robot.serial,
            site=config.site,
            operator=config.person,
            software={"sim2real": __version__},
            recorded=datetime.now(UTC).isoformat(timespec="milliseconds"),
            process=f"deploy: {config.step}",
        )

    def _folder(self) -> Path:
        time = datetime.now().strftime("%Y%m%d-%H%M%S-%f")
        robot = f"{self.robot.name}-{self.robot.serial}".strip("-").replace("/", "_")
        folder = self._config.out or Path("runs") / "deploy" / robot / time
        if folder.exists() and any(folder.glob("trial-*")):
            raise Sim2RealError(f"{folder} holds recordings already; choose another with --out")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Sim2RealError(f"cannot record to {folder}: {error.strerror or error}") from None
        return folder


@contextmanager
def _impatient(robot: Robot, rate_hz: float) -> Iterator[None]:
    """While it moves, wait little more than a period for a robot's answer."""
    link = patient(robot)
    if link is None or robot.abilities.virtual_time:
        yield
        return
    patience_s, link.patience_s = link.patience_s, 1.5 / rate_hz
    try:
        yield
    finally:
        link.patience_s = patience_s


def _check_robot(robot: Robot, contract: Contract) -> None:
    wanted = [command.name for command in contract.commands]
    there = robot.abilities.actuators
    if there is not None and sorted(there) != sorted(wanted):
        raise Sim2RealError(
            f"the policy is for another robot: it commands {', '.join(wanted)}, but this one"
            f" has {', '.join(there)}"
        )


def _line(number: int, trials: int, trial: AttemptRecord) -> str:
    end = trial.outcome or "done"
    if trial.stopped:
        end += f", stopped: {trial.stopped}"
    return (
        f"trial {number + 1} of {trials}: {end}; {trial.periods} periods, {trial.lost} without"
        f" readings, {trial.limited} limited, 99th percentile of lateness"
        f" {1e3 * trial.late_p99_s:.1f} ms"
    )
