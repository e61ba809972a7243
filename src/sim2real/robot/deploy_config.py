"""Options of deploying; light, so that the command line starts at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import tyro

from sim2real.files import results_lake


@dataclass(frozen=True, kw_only=True)
class DeployConfig:
    """Run a policy on a robot, one step of the ladder of trust; it moves only with --execute.

    Without --execute no command is sent, only shown. Any key, Ctrl-C or the stop file brings the
    robot to its safe stop.
    """

    bundle: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="BUNDLE")]
    """Folder of the bundle; or another policy: an ONNX file with a contract beside it, or
    `package.module:Class`."""
    robot: str = ""
    """The robot: HOST:PORT, lerobot:FILE.toml, package.module:Class, or unit:7 for stand-in
    hardware (virtual time; unit:7:real for real time)."""
    step: Literal["replay", "shadow", "limited", "full"] = "full"
    """Step of the ladder: replay on logs, shadow beside the controller in charge, limited (slow
    and small), full."""
    execute: bool = False
    """Really send commands."""
    force: bool = False
    """Skip earlier steps of the ladder that were not passed; for stand-in hardware only."""
    by_the_switch: bool = False
    """Drive a robot without a watchdog: the person stands by the switch that cuts its power."""
    person: str = ""
    """Name of the person who stands at the robot and lets it move; required with --execute."""
    trials: int = 1
    """Attempts, one recording each."""
    seconds: float = 0.0
    """Length of an attempt [s]; the task's own by default."""
    goal: tuple[str, ...] = ()
    """Goals of the task, if the robot's bench does not set them, as `name=0.2,0,0.1`."""
    judge: Path | None = None
    """File of outcomes, for a robot whose bench judges none: CSV or JSON rows of `trial`, which
    counts from --seed plus 1, and `outcome`. It may grow while the robot moves."""
    seed: int = 0
    """Seed of the first trial's set-up, for stand-in hardware; it grows by one per trial."""
    in_charge: str = "hold"
    """What drives the robot in shadow mode: `hold` keeps it still, `robot` is another program that
    drives it already (nothing is sent), or another policy, as the bundle."""
    logs: tuple[str, ...] = ()
    """Recordings, folders of them, or lakes to replay."""
    stop_file: Path | None = None
    """File that stops the robot as soon as it exists; STOP in the run's folder by default."""
    rearm: bool = False
    """Continue after a stop without asking a person; for stand-in hardware only."""
    site: str = ""
    """Where the robot stands, for the provenance of the episodes."""
    out: Path | None = None
    """Folder of the recordings; `runs/deploy/ROBOT/TIME` by default."""
    lake: str = field(default_factory=results_lake)
    """Lake that the episodes are kept in too; by default the one that the variable SIM2REAL_LAKE
    names, or `runs/lake`; '' for none."""
    json: bool = False
    """Print the result as JSON."""
