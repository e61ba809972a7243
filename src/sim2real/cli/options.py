"""Options of the verbs about data, twins and tasks; light, so that `--help` answers at once."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import tyro


def default_lake() -> str:
    """Where a lake is if nobody says: the variable SIM2REAL_LAKE, or the folder `lake`."""
    return os.environ.get("SIM2REAL_LAKE", "lake")


@dataclass(frozen=True, kw_only=True)
class InLake:
    """Options of every verb that works on a lake, and all that some of them have."""

    lake: str = field(default_factory=default_lake)
    """Folder or `s3://` address of the lake; the variable SIM2REAL_LAKE is its default."""
    json: bool = False
    """Print as JSON."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How files become episodes."""

    format: str = ""
    """csv, npz, json, mat, hdf5, mcap or lerobot; found out if not given."""
    channels: Path | None = None
    """Channel map (TOML) for CSV, npz, JSON and MATLAB files."""
    rate_hz: float = 0.0
    """Rate of rows that have no time stamps [Hz]."""
    kind: Literal["real", "simulated", "generated"] = "real"
    """What kind of world the episodes happened in."""
    task: str = ""
    """Task that was done, where the file does not say."""
    robot: str = ""
    """Model of the robot, where the file does not say."""
    serial: str = ""
    """Its serial number."""
    site: str = ""
    """Where it stood."""
    operator: str = ""
    """Who ran it, as a pseudonym."""
    provenance: Path | None = None
    """TOML or JSON file with more provenance: consent, calibration, parameters, …"""


@dataclass(frozen=True, kw_only=True)
class DataImport(Reading, InLake):
    """Import recordings into a lake; what is there already is skipped, so it can be repeated."""

    paths: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Files or folders."""


@dataclass(frozen=True, kw_only=True)
class DataExport(InLake):
    """Write episodes of a lake to another format."""

    out: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="OUT")]
    """File or folder to write; must not exist."""
    ids: tuple[str, ...] = ()
    """Ids of the episodes, or the begins of them."""
    where: str = ""
    """Condition in SQL, instead of ids: "kind = 'real'"."""
    format: Literal["lerobot", "mcap", "hdf5", "npz", "csv"] = "lerobot"
    """Format to write."""
    rate_hz: float = 0.0
    """Rate for formats that have one for all channels [Hz]."""
    clock: str = ""
    """Or the channel whose samples are the frames."""
    rename: tuple[str, ...] = ()
    """Other names for channels, as `command=action position=observation.state`."""
    purpose: Literal["training", "evaluation", "sharing"] = "training"
    """What the people in the episodes must have agreed to."""
    version: int | None = None
    """Version of the lake; the newest if not given."""


@dataclass(frozen=True, kw_only=True)
class DataCheck(Reading, InLake):
    """Find what ruins identification and training; exit code 1 if there is an error or warning.

    Time stamps that lie, stuck or clipped channels, absurd values, wrong units, shifted actions.
    """

    what: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
    """Files or folders, or ids of episodes in the lake; all of the lake if none is given."""
    repair: bool = False
    """Keep the episode and a new one with the fixes in the lake; the new one names the old."""
    where: str = "true"
    """Condition in SQL on the lake's episodes, where none is named."""
    all: bool = False
    """Also look at episodes that were repaired already."""


@dataclass(frozen=True, kw_only=True)
class DataQuery(InLake):
    """Ask the lake with SQL: episodes, signals, labels, current_labels, consents, datasets, …"""

    sql: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SQL")]
    """The query, as "select kind, count(*) from episodes group by kind"."""
    version: int | None = None
    """Version of the lake to ask; the newest if not given."""


@dataclass(frozen=True, kw_only=True)
class DataLs(InLake):
    """List episodes, the newest first."""

    where: str = "true"
    """Condition in SQL, as "kind = 'real' and outcome = 'failure'"."""
    limit: int = 50
    """Most episodes to list."""
    version: int | None = None
    """Version of the lake to list; the newest if not given."""


@dataclass(frozen=True, kw_only=True)
class DataShow(InLake):
    """Show an episode: where it comes from, and its channels as curves."""

    id: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ID")]
    """Id of the episode, or the begin of it."""
    png: Path | None = None
    """Draw the curves into this file instead of the terminal."""
    channels: tuple[str, ...] = ()
    """Channels to draw; all if none is given."""


@dataclass(frozen=True, kw_only=True)
class DataLabel(InLake):
    """Say something about an episode; what was said before stays."""

    id: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ID")]
    """Id of the episode, or the begin of it."""
    tag: Annotated[
        Literal["success", "failure", "phase", "dimension", "note"], tyro.conf.Positional
    ]
    """What is said."""
    value: str = ""
    """The phase of the failure, the dimension of the gap, or free text."""
    start: float | None = None
    """Begin of the interval it is about [s]."""
    end: float | None = None
    """End of the interval [s]."""
    who: str = ""
    """Who says so; the user's name if not given."""
    supersedes: str = ""
    """Id of the label that this one corrects."""


@dataclass(frozen=True, kw_only=True)
class DataLineage(InLake):
    """Show what an episode was made from, and what was made from it."""

    id: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ID")]
    """Id of the episode, or the begin of it."""


@dataclass(frozen=True, kw_only=True)
class ConsentGrant(InLake):
    """Record what a participant agrees to from now on."""

    participant: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="PARTICIPANT")]
    """Pseudonym of the person."""
    scope: tuple[Literal["training", "evaluation", "sharing", "none"], ...]
    """What their data may be used for; `none` for nothing."""
    expires: str = ""
    """Last day, as 2027-12-31; without end if not given."""
    who: str = ""
    """Who records it; the user's name if not given."""


@dataclass(frozen=True, kw_only=True)
class ConsentWithdraw(InLake):
    """Erase a participant's data from every table, version and file, and list what it went into."""

    participant: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="PARTICIPANT")]
    """Pseudonym of the person."""
    dry_run: bool = False
    """Only say how many episodes would go."""


@dataclass(frozen=True, kw_only=True)
class OnTwin:
    """Options of the verbs that look at a twin."""

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER")]
    """Folder of the twin."""
    json: bool = False
    """Print as JSON."""


@dataclass(frozen=True, kw_only=True)
class Tasks:
    """List the tasks that can be trained."""

    json: bool = False
    """Print as JSON."""


@dataclass(frozen=True, kw_only=True)
class ReportPage:
    """Make the page of a stored result again; nothing is computed."""

    result: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RESULT")]
    """File of the result, or the folder that it is in."""
    out: Path | None = None
    """The page; KIND.html beside the result by default."""
    json: bool = False
    """Print what the result says as JSON."""
