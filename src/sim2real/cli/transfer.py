"""`sim2real data import | export | check`: episodes in, out, and looked at on the way."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from sim2real.cli.output import print_json, say, say_error
from sim2real.errors import Sim2RealError, table_at
from sim2real.files import read_json

if TYPE_CHECKING:
    from sim2real.data import Episode, Lake, LogFault, Provenance

_AT_ONCE = 32


def default_lake() -> str:
    """Where a lake is if nobody says: the variable SIM2REAL_LAKE, or the folder `lake`."""
    return os.environ.get("SIM2REAL_LAKE", "lake")


@dataclass(frozen=True, kw_only=True)
class _Reading:
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
class DataImport(_Reading):
    """Import recordings into a lake; what is there already is skipped, so it can be repeated."""

    paths: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Files or folders."""
    lake: str = field(default_factory=default_lake)
    """Folder or `s3://` address of the lake; made if there is none."""
    json: bool = False
    """Print as JSON."""


@dataclass(frozen=True, kw_only=True)
class DataExport:
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
    lake: str = field(default_factory=default_lake)
    """Folder or `s3://` address of the lake."""
    json: bool = False
    """Print as JSON."""


@dataclass(frozen=True, kw_only=True)
class DataCheck(_Reading):
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
    lake: str = field(default_factory=default_lake)
    """Folder or `s3://` address of the lake."""
    json: bool = False
    """Print as JSON."""


def import_(verb: DataImport) -> int:
    """Import files, a batch of episodes at a time; what cannot be read is told and left out."""
    from sim2real.data import Lake
    from sim2real.report.progress import bar

    if not verb.paths:
        raise Sim2RealError("name a file or a folder to import")
    base = _base(verb)
    first = _episodes(verb, verb.paths[0], base)
    begin, problem = None, ""
    try:
        begin = next(first, None)  # nothing is made for a file that cannot be read
    except Sim2RealError as error:
        if len(verb.paths) == 1:
            raise
        problem = str(error)
    lake = Lake.create(verb.lake)
    before = len(lake)
    ids: list[str] = []
    problems = [problem] if problem else []
    with bar("import", quiet=verb.json) as report:
        for number, path in enumerate(verb.paths):
            found = _chain(begin, first) if number == 0 else _episodes(verb, path, base)
            try:
                _append(lake, found, ids)
            except Sim2RealError as error:
                problems.append(str(error))
            report(number + 1, len(verb.paths))
    fresh = len(lake) - before
    if verb.json:
        print_json(
            {
                "lake": verb.lake,
                "version": lake.version,
                "episodes": ids,
                "new": fresh,
                "problems": problems,
            }
        )
    else:
        known = len(ids) - fresh
        say(f"{fresh} episodes imported into {verb.lake}" + (f", {known} known" if known else ""))
    for text in problems:
        say_error(text)
    return 2 if problems else 0


def _append(lake: Lake, episodes: Iterator[Episode], ids: list[str]) -> None:
    """Append in batches; what came before an error is kept."""
    batch: list[Episode] = []
    try:
        for episode in episodes:
            batch.append(episode)
            if len(batch) == _AT_ONCE:
                batch, full = [], batch
                ids += lake.append(full)
    finally:
        ids += lake.append(batch)


def export(verb: DataExport) -> int:
    """Write episodes to another format, and record what left the lake."""
    from sim2real.data import Lake, Mixture, Part, quoted, write_episodes
    from sim2real.report.progress import bar

    lake = Lake.open(verb.lake)
    if bool(verb.ids) == bool(verb.where):
        raise Sim2RealError("say which episodes: ids, or a condition with --where")
    chosen = [lake.resolve(start) for start in verb.ids]
    condition = verb.where or f"id in ({quoted(chosen)})"
    part = Part(name="all", select=f"select id from episodes where {condition}", weight=1.0)
    if verb.out.exists():
        raise Sim2RealError(f"{verb.out} exists already; choose a new name")
    names = dict(_pair(text) for text in verb.rename)
    # Recorded before anything leaves, so that no copy is unknown.
    name = f"export {verb.out.absolute()}"
    manifest = Mixture(name=name, parts=(part,), purpose=verb.purpose).resolve(
        lake, version=verb.version
    )
    with bar("export", quiet=verb.json) as report:

        def episodes() -> Iterator[Episode]:
            for done, episode in enumerate(lake.read(manifest.ids), 1):
                yield _renamed(episode, names)
                report(done, len(manifest.ids))

        write_episodes(
            verb.out, episodes(), format=verb.format, rate_hz=verb.rate_hz, clock=verb.clock
        )
    if verb.json:
        print_json({"out": str(verb.out), "dataset": manifest.id, "episodes": manifest.ids})
    else:
        say(f"{len(manifest.ids)} episodes written to {verb.out}; data set {manifest.id}")
    return 0


def _pair(text: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not (old and equals and new):
        raise Sim2RealError(f"{text!r} is not old=new")
    return old, new


def _renamed(episode: Episode, names: dict[str, str]) -> Episode:
    mine = {old: new for old, new in names.items() if old in episode.channels}
    if not mine:
        return episode
    channels = {mine.get(name, name): value for name, value in episode.channels.items()}
    if len(channels) < len(episode.channels):
        raise Sim2RealError(f"two channels of episode {episode.id} would have one name")
    said = ", ".join(f"{old} to {new}" for old, new in mine.items())
    return episode.derive(f"rename {said}", channels=channels)


def check(verb: DataCheck) -> int:
    """Check episodes of files or of the lake."""
    from sim2real.data import Lake, check_episode, repair_episode

    rows, worst = [], 0
    for place, episode in _to_check(verb):
        findings = check_episode(episode)
        worst += sum(finding.severity != "note" for finding in findings)
        row: dict[str, Any] = {
            "episode": episode.id,
            "source": place,
            "findings": [finding.to_dict() for finding in findings],
        }
        if verb.repair and any(finding.repairable for finding in findings):
            fixed = repair_episode(episode, findings)
            Lake.create(verb.lake).append([episode, fixed])
            row |= {"repaired": fixed.id, "process": fixed.provenance.process}
        rows.append(row)
        if not verb.json:
            _say_findings(row, findings)
    if verb.json:
        print_json({"episodes": rows})
    elif not worst:
        say(f"nothing wrong in {len(rows)} episodes")
    return 1 if worst else 0


def _to_check(verb: DataCheck) -> Iterator[tuple[str, Episode]]:
    from sim2real.data import Lake

    files = [Path(what) for what in verb.what if _is_there(what)]
    base = _base(verb)
    for path in files:
        for episode in _episodes(verb, path, base):
            yield str(path), episode
    starts = [what for what in verb.what if not _is_there(what)]
    if not starts and verb.what:
        return
    for start in starts:
        if not start or not all(sign in "0123456789abcdef" for sign in start):
            raise Sim2RealError(f"no such file or folder, and not an episode's id: {start[:80]!r}")
    lake = Lake.open(verb.lake)
    fixed = "select unnest(parents) from episodes where process like 'repair%'"
    left = "true" if verb.all else f"id not in ({fixed})"
    everything = f"select id from episodes where ({verb.where}) and {left} order by added, id"
    ids = [lake.resolve(start) for start in starts] or lake.query(everything)["id"].to_pylist()
    for episode in lake.read(ids):
        yield episode.provenance.source.partition(" sha256:")[0] or verb.lake, episode


def _is_there(name: str) -> bool:
    try:
        return bool(name) and Path(name).exists()
    except (OSError, ValueError):  # too long for a name, or no name at all
        return False


def _say_findings(row: dict[str, Any], findings: list[LogFault]) -> None:
    if findings:
        say(f"episode {row['episode']} from {row['source']}")
    for finding in findings:
        place = finding.span
        where = (
            finding.channel if place.component is None else f"{finding.channel}[{place.component}]"
        )
        say(
            f"  {finding.severity}: {finding.kind}: {where},"
            f" {place.start_s:.4g}–{place.end_s:.4g} s: {finding.message}; {finding.remedy}"
        )
    if "repaired" in row:
        say(f"  repaired as episode {row['repaired']} ({row['process']})")


def _episodes(verb: _Reading, path: Path, base: Provenance) -> Iterator[Episode]:
    from sim2real.data import ChannelMap, read_episodes

    channels = ChannelMap.load(verb.channels) if verb.channels is not None else None
    return read_episodes(
        path, base=base, format=verb.format, channels=channels, rate_hz=verb.rate_hz
    )


def _chain(begin: Episode | None, rest: Iterator[Episode]) -> Iterator[Episode]:
    if begin is not None:
        yield begin
        yield from rest


def _base(verb: _Reading) -> Provenance:
    """The provenance that the user gives."""
    from sim2real.data import Provenance

    given: dict[str, Any] = {"kind": verb.kind}
    if verb.provenance is not None:
        given |= _table(verb.provenance)
    base = Provenance.from_dict(given)
    named = {key: getattr(verb, key) for key in ("task", "robot", "serial", "site", "operator")}
    return replace(base, **{key: value for key, value in named.items() if value})


def _table(path: Path) -> dict[str, Any]:
    if path.suffix == ".json":
        return dict(table_at(read_json(path), f"{path}"))
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Sim2RealError(f"cannot read {path}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Sim2RealError(f"{path} is not readable TOML: {error}") from None
