"""Options of the verbs about data, twins and tasks; light, so that `--help` is fast."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import tyro

from sim2real.files import default_lake
from sim2real.scale import ExecutorOptions


@dataclass(frozen=True, kw_only=True)
class InLake:
    """Options of every verb that works on a lake."""

    lake: str = field(default_factory=default_lake)
    """Folder or `s3://` address of the lake; the default is that of SIM2REAL_LAKE."""
    json: bool = False
    """Print the result as JSON."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How files become episodes."""

    format: str = ""
    """csv, npz, json, mat, hdf5, mcap or lerobot; detected by default."""
    channels: Path | None = None
    """Channel map (TOML) for CSV, npz, JSON and MATLAB files."""
    rate_hz: float = 0.0
    """Rate of rows without time stamps [Hz]."""
    kind: Literal["real", "simulated", "generated"] = "real"
    """Whether the episodes are real, simulated or generated."""
    task: str = ""
    """Name of the task, if the file does not state it."""
    robot: str = ""
    """Model of the robot, if the file does not state it."""
    serial: str = ""
    """Serial number of the robot."""
    site: str = ""
    """Site of the robot."""
    operator: str = ""
    """Pseudonym of the operator."""
    provenance: Path | None = None
    """TOML or JSON file with more provenance: consent, calibration, parameters, …"""


@dataclass(frozen=True, kw_only=True)
class DataImport(ExecutorOptions, Reading, InLake):
    """Import recordings into a lake; episodes that it has already are skipped."""

    paths: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="PATH ...")]
    """Files or folders."""


@dataclass(frozen=True, kw_only=True)
class DataExport(InLake):
    """Write episodes of a lake to another format."""

    out: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="OUT")]
    """File or folder to write; must not exist."""
    ids: tuple[str, ...] = ()
    """Ids of the episodes, or their first characters."""
    where: str = ""
    """SQL condition on episodes, instead of ids, such as "kind = 'real'"."""
    format: Literal["lerobot", "mcap", "hdf5", "npz", "csv"] = "lerobot"
    """Format to write."""
    rate_hz: float = 0.0
    """Rate for formats with one rate for all channels [Hz]."""
    clock: str = ""
    """Channel whose samples are the frames, instead of a rate."""
    rename: tuple[str, ...] = ()
    """New names of channels, such as `command=action position=observation.state`."""
    purpose: Literal["training", "evaluation", "sharing"] = "training"
    """Use that the people in the episodes must have agreed to."""
    version: int | None = None
    """Version of the lake; the newest by default."""


@dataclass(frozen=True, kw_only=True)
class DataCheck(Reading, InLake):
    """Find faults that spoil identification and training; exit code 1 for an error or warning.

    Wrong time stamps, frozen or clipped channels, impossible values, wrong units, shifted actions.
    """

    what: Annotated[
        tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="[PATH|ID ...]")
    ] = ()
    """Files or folders, or ids of episodes in the lake; the whole lake by default."""
    repair: bool = False
    """Add a repaired copy of each episode to the lake; the original stays."""
    where: str = "true"
    """SQL condition on the lake's episodes, if none is named."""
    all: bool = False
    """Also check episodes that were repaired already."""


@dataclass(frozen=True, kw_only=True)
class DataQuery(InLake):
    """Query the lake with SQL: episodes, signals, labels, current_labels, consents, datasets, …"""

    sql: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SQL")]
    """The query, such as "select kind, count(*) from episodes group by kind"."""
    version: int | None = None
    """Version of the lake; the newest by default."""


@dataclass(frozen=True, kw_only=True)
class DataLs(InLake):
    """List episodes, the newest first."""

    where: str = "true"
    """SQL condition, such as "kind = 'real' and outcome = 'failure'"."""
    limit: int = 50
    """Largest number of episodes to list."""
    version: int | None = None
    """Version of the lake; the newest by default."""


@dataclass(frozen=True, kw_only=True)
class DataShow(InLake):
    """Show an episode: its provenance, and its channels as curves."""

    id: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ID")]
    """Id of the episode, or its first characters."""
    png: Path | None = None
    """Draw the curves to this file instead of the terminal."""
    channels: tuple[str, ...] = ()
    """Channels to draw; all by default."""


@dataclass(frozen=True, kw_only=True)
class DataLabel(InLake):
    """Label an episode, or an interval of it; earlier labels stay."""

    id: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ID")]
    """Id of the episode, or its first characters."""
    tag: Annotated[
        Literal["success", "failure", "phase", "dimension", "note"], tyro.conf.Positional
    ]
    """Kind of label."""
    value: str = ""
    """The phase of the failure, the dimension of the gap, or free text."""
    start: float | None = None
    """Start of the interval, if the label is about one [s]."""
    end: float | None = None
    """End of the interval [s]."""
    who: str = ""
    """Who labels it; the user by default."""
    supersedes: str = ""
    """Id of the label that this one corrects."""


@dataclass(frozen=True, kw_only=True)
class DataLineage(InLake):
    """Show what an episode was made from, and what was made from it."""

    id: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ID")]
    """Id of the episode, or its first characters."""


@dataclass(frozen=True, kw_only=True)
class ConsentGrant(InLake):
    """Record what a participant agrees to from now on."""

    participant: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="PARTICIPANT")]
    """Pseudonym of the person."""
    scope: tuple[Literal["training", "evaluation", "sharing", "none"], ...]
    """What their data may be used for; `none` for nothing."""
    expires: str = ""
    """Last day, such as 2027-12-31; no end by default."""
    who: str = ""
    """Who records it; the user by default."""


@dataclass(frozen=True, kw_only=True)
class ConsentWithdraw(InLake):
    """Erase a participant's data from every version, and list what was made from it."""

    participant: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="PARTICIPANT")]
    """Pseudonym of the person."""
    dry_run: bool = False
    """Only show how many episodes would be erased."""


@dataclass(frozen=True, kw_only=True)
class OnTwin:
    """Options of the verbs about a twin."""

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER")]
    """Folder of the twin."""
    json: bool = False
    """Print the result as JSON."""


@dataclass(frozen=True, kw_only=True)
class Tasks:
    """List the tasks that can be trained."""

    json: bool = False
    """Print the result as JSON."""


@dataclass(frozen=True, kw_only=True)
class ReportPage:
    """Make the page of a stored result again; nothing is computed."""

    result: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RESULT")]
    """File of the result, or the folder that it is in."""
    out: Path | None = None
    """The page; KIND.html beside the result by default."""
    json: bool = False
    """Print what the result says as JSON."""
