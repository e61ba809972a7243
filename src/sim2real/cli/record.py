"""`sim2real record`: excite a robot within its limits, and keep what it did."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from sim2real.cli.output import print_json, print_table, say
from sim2real.errors import Sim2RealError

if TYPE_CHECKING:
    from sim2real.robot import ExcitedRobot, PreparedMotion, RecordedMotion


@dataclass(frozen=True, kw_only=True)
class RecordConfig:
    """Move a robot for identification, and record it; a dry run until --execute."""

    subject: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="SUBJECT")]
    """Folder of the robot's twin, or of a bundle: then its rate and its limits."""
    robot: str = ""
    """Address of the robot: HOST:PORT, lerobot:FILE.toml, or unit:7 for stand-in hardware. Without
    one, a dry run from the twin's default pose."""
    motion: Literal["all", "hold", "steps", "chirp", "multisine", "targets"] = "all"
    """What to do: keep still, steps, a sweep, sums of sines, random targets, or one after the
    other."""
    seconds: float = 20.0
    """Time of each motion, without the way to where it has room and back [s]."""
    joints: tuple[str, ...] = ()
    """Joints that move; all by default."""
    amplitude: float = 0.5
    """Largest way from the middle of a motion, as a part of half the range; less where the robot
    would come near something."""
    speed: float | None = None
    """Fastest command of a position servo [rad/s or m/s]."""
    rate_hz: float | None = None
    """Control rate of a twin [Hz]; 50 by default. A bundle has its own."""
    seed: int = 0
    """Seed of what is random in a motion."""
    execute: bool = False
    """Really move the robot."""
    person: str = ""
    """Who is responsible for the robot while it moves, as a pseudonym."""
    task: str = ""
    """Bench of stand-in hardware, where a twin and not a bundle is recorded."""
    out: Path | None = None
    """Folder for recordings and plots; `runs/record/TWIN/TIME` by default, and none in a dry
    run."""
    lake: str = ""
    """Also keep the episodes in the lake at this address."""
    json: bool = False
    """Print the result as JSON."""


def run_record(config: RecordConfig) -> int:
    """Plan, and with `execute` play and keep; 0 if all went to the end, 1 if it was stopped."""
    from sim2real.robot import ExcitedRobot

    subject = ExcitedRobot.open(config.subject, rate_hz=config.rate_hz, speed=config.speed)
    if config.execute and not config.robot:
        raise Sim2RealError("--execute needs a --robot to move")
    if config.execute and not config.person:
        raise Sim2RealError("only a person lets a robot move: say who with --person")
    if not config.robot:
        plans = _from_default(config, subject)
        _plot(subject, plans, config.out)
        _tell(config, subject, plans, [])
        return 0
    from sim2real.robot import open_robot

    robot = open_robot(config.robot, task=config.task or subject.task)
    try:
        robot.connect()
        return _with(config, subject, robot)
    finally:
        # A robot that cannot be reached has a watchdog of its own.
        with suppress(Exception):
            robot.disconnect()


def _with(config: RecordConfig, subject: ExcitedRobot, robot: Any) -> int:
    from datetime import datetime

    from sim2real.report.progress import bar
    from sim2real.robot import OperatorStop, record_motions

    folder = config.out
    if folder is None and config.execute:
        stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
        folder = Path("runs/record") / subject.twin.name / stamp
    lake = _lake(config)
    plans: list[PreparedMotion] = []
    kept: list[RecordedMotion] = []

    def show(prepared: PreparedMotion) -> None:
        plans.append(prepared)
        if config.execute and not config.json:
            say(f"{prepared.plan.motion}: {prepared.plan.seconds:.0f} s; Ctrl-C stops it")

    with OperatorStop() as stopped, bar("record", quiet=config.json) as report:
        for recorded in record_motions(
            subject,
            robot,
            _motions(config),
            folder or Path(),
            person=config.person,
            execute=config.execute,
            seconds=config.seconds,
            amplitude=config.amplitude,
            joints=config.joints,
            speed=config.speed,
            seed=config.seed,
            operator_stop=stopped,
            show=show,
            report=report,
        ):
            kept.append(recorded)
            _plot(subject, plans[-1:], folder)
            if lake is not None:
                lake.append(recorded.episode)
    if not config.execute:
        _plot(subject, plans, folder)
    _tell(config, subject, plans, kept)
    if stopped.signalled:
        return 130
    return 1 if any(recorded.flight.stopped for recorded in kept) else 0


def _motions(config: RecordConfig) -> tuple[str, ...]:
    from sim2real.robot import MOTIONS

    return MOTIONS if config.motion == "all" else (config.motion,)


def _from_default(config: RecordConfig, subject: ExcitedRobot) -> list[PreparedMotion]:
    from sim2real.robot import prepare_motion

    return [
        prepare_motion(
            subject,
            motion,
            seconds=config.seconds,
            amplitude=config.amplitude,
            joints=config.joints,
            speed=config.speed,
            seed=config.seed,
        )
        for motion in _motions(config)
    ]


def _lake(config: RecordConfig) -> Any:
    if not (config.lake and config.execute):
        return None
    from sim2real.data import Lake

    return Lake.create(config.lake)


def _plot(subject: ExcitedRobot, plans: list[PreparedMotion], folder: Path | None) -> None:
    if folder is None:
        return
    from sim2real.report.motion import plot_motion

    for prepared in plans:
        plot_motion(folder / f"{prepared.plan.motion}.png", prepared.plan, subject.contract)


def _tell(
    config: RecordConfig,
    subject: ExcitedRobot,
    plans: list[PreparedMotion],
    kept: list[RecordedMotion],
) -> None:
    contract = subject.contract
    if config.json:
        recordings = [
            {
                "file": str(recorded.path),
                "episode": recorded.episode.id,
                "periods": recorded.flight.periods,
                "lost": recorded.flight.lost,
                "limited": recorded.flight.limited,
                "late_s": float(recorded.flight.late_s.max(initial=0.0)),
                "stopped": recorded.flight.stopped,
            }
            for recorded in kept
        ]
        planned = [prepared.to_dict(contract) for prepared in plans]
        print_json({"executed": config.execute, "plans": planned, "recordings": recordings})
        return
    for prepared in plans:
        if not config.execute:
            _show(prepared, subject)
    for recorded in kept:
        flight = recorded.flight
        end = f"stopped: {flight.stopped}" if flight.stopped else "complete"
        say(f"{recorded.path}: {flight.periods} periods, {flight.lost} without readings, {end}")
    if not config.execute:
        say("nothing was sent; add --execute and --person to move the robot")


def _show(prepared: PreparedMotion, subject: ExcitedRobot) -> None:
    told = prepared.to_dict(subject.contract)
    say(f"{told['motion']}: {told['seconds']:.1f} s")
    if prepared.moved:
        say("  goes towards the twin's default pose first, to have room")
    if prepared.reduced:
        say(f"  smaller than asked for: else {prepared.reduced}")
    print_table(
        ("command", "unit", "from", "to", "a second", "a second squared", "amplitude"),
        (
            [
                entry["name"],
                entry["unit"],
                round(entry["low"], 3),
                round(entry["high"], 3),
                round(entry["speed"], 3),
                round(entry["acceleration"], 3),
                round(entry["amplitude"], 2),
            ]
            for entry in told["commands"]
        ),
    )
