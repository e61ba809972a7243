"""Options of deploying; light, so that the command line starts at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro


@dataclass(frozen=True, kw_only=True)
class DeployConfig:
    """Run a bundle on a robot, a step of the ladder of trust at a time; moves only if told to.

    Without --execute nothing is sent: it says what would be. Any key, Ctrl-C or the stop file
    ends in the robot's safe stop.
    """

    bundle: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="BUNDLE")]
    """Folder of the bundle."""
    robot: str = ""
    """The robot: HOST:PORT, lerobot:FILE.toml, or unit:7 for stand-in hardware (virtual time;
    unit:7:real for real time)."""
    step: Literal["replay", "shadow", "limited", "full"] = "full"
    """Step of the ladder: replay on logs, shadow beside the controller in charge, limited (slow
    and small), full."""
    execute: bool = False
    """Really send commands."""
    force: bool = False
    """Skip steps of the ladder that are missing."""
    person: str = ""
    """Who stands at the robot and lets it move; needed with --execute."""
    trials: int = 1
    """Attempts, one recording each."""
    seconds: float = 0.0
    """Length of an attempt [s]; the task's own if not given."""
    goal: tuple[str, ...] = ()
    """Goals of the task where the robot's bench does not set them, as `name=0.2,0,0.1`."""
    seed: int = 0
    """Number of the first set-up, for stand-in hardware."""
    in_charge: str = "hold"
    """Who drives in shadow mode: `hold` keeps still, `robot` is another program that drives
    already (nothing is sent), or the folder of another bundle."""
    logs: tuple[str, ...] = ()
    """Recordings, folders of them, or lakes to replay on."""
    stop_file: Path | None = None
    """File that stops the robot as soon as it exists; STOP in the run's folder by default."""
    rearm: bool = False
    """Go on after a stop without asking a person; for stand-in hardware only."""
    site: str = ""
    """Where the robot stands, for the episodes' provenance."""
    out: Path | None = None
    """Folder of the recordings; `runs/deploy/ROBOT/TIME` by default."""
    lake: str = ""
    """Also keep the episodes in the lake at this address."""
    json: bool = False
    """Print the result as JSON."""
