"""`sim2real data …`: looking at a lake, adding to what is said about it, keeping it sound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from sim2real.cli.consent import (
    ConsentGrant,
    ConsentLs,
    ConsentWithdraw,
    DataConsent,
    consents,
    grant,
    withdraw_,
)
from sim2real.cli.lake import InLake, open_lake, user
from sim2real.cli.output import print_json, print_table, say, shorten
from sim2real.cli.transfer import (
    DataCheck,
    DataExport,
    DataImport,
    check,
    export,
    import_,
)
from sim2real.errors import Sim2RealError

if TYPE_CHECKING:
    pass

_LISTED = "id, kind, task, robot, verdict, duration_s, samples, channels, added"
_MOST_CURVES = 8
_STATS = """
select kind, task, robot, outcome, count(*) as episodes, sum(duration_s) as seconds,
    sum(samples)::bigint as samples from episodes group by all order by all
"""


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
class DataStats(InLake):
    """Count what is in the lake, by kind, task, robot and outcome."""


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
class DataVerify(InLake):
    """Hash every file and episode again; exit code 1 if anything has changed."""


@dataclass(frozen=True, kw_only=True)
class DataVersions(InLake):
    """List the versions of the lake: number, time, episodes."""


@dataclass(frozen=True, kw_only=True)
class DataCompact(InLake):
    """Merge small files into large ones; every version stays."""


_sub = tyro.conf.subcommand
Whats = Annotated[
    Annotated[DataImport, _sub("import")]
    | Annotated[DataExport, _sub("export")]
    | Annotated[DataCheck, _sub("check")]
    | Annotated[DataQuery, _sub("query")]
    | Annotated[DataLs, _sub("ls")]
    | Annotated[DataShow, _sub("show")]
    | Annotated[DataStats, _sub("stats")]
    | Annotated[DataLabel, _sub("label")]
    | Annotated[DataConsent, _sub("consent")]
    | Annotated[DataLineage, _sub("lineage")]
    | Annotated[DataVerify, _sub("verify")]
    | Annotated[DataVersions, _sub("versions")]
    | Annotated[DataCompact, _sub("compact")],
    tyro.conf.OmitSubcommandPrefixes,
]


@dataclass(frozen=True, kw_only=True)
class DataVerb:
    """Episodes with provenance: import, check, query, label, export, keep."""

    what: Whats


def run_data(verb: Any) -> int:
    """Run one of the verbs above; the exit code."""
    if isinstance(verb, DataConsent):
        verb = verb.what
    runners: dict[type, Callable[[Any], int]] = {
        DataImport: import_,
        DataExport: export,
        DataCheck: check,
        DataQuery: _query,
        DataLs: _ls,
        DataShow: _show,
        DataStats: _stats,
        DataLabel: _label,
        ConsentGrant: grant,
        ConsentLs: consents,
        ConsentWithdraw: withdraw_,
        DataLineage: _lineage,
        DataVerify: _verify,
        DataVersions: _versions,
        DataCompact: _compact,
    }
    return runners[type(verb)](verb)


def _query(verb: DataQuery) -> int:
    _print_answer(open_lake(verb).query(verb.sql, version=verb.version), verb.json)
    return 0


def _ls(verb: DataLs) -> int:
    sql = (
        f"select {_LISTED} from episodes join verdicts using (id) where {verb.where}"
        f" order by added desc, id limit {verb.limit}"
    )
    rows = open_lake(verb).query(sql, version=verb.version).to_pylist()
    if verb.json:
        print_json(rows)
        return 0
    titles = ("id", "kind", "task", "robot", "verdict", "s", "ch.", "added")
    table = (
        (
            row["id"][:10],
            {"simulated": "sim", "generated": "gen"}.get(row["kind"], row["kind"]),
            shorten(row["task"], 17),
            shorten(row["robot"], 9),
            row["verdict"],
            f"{row['duration_s']:.4g}",
            len(row["channels"]),
            row["added"].strftime("%m-%d %H:%M"),
        )
        for row in rows
    )
    print_table(titles, table, whole=titles)
    return 0


def _print_answer(answer: Any, as_json: bool) -> None:
    try:
        columns = [column.to_pylist() for column in answer.columns]
    except (OverflowError, ValueError) as error:
        raise Sim2RealError(f"the answer cannot be shown: {error}") from None
    names = answer.column_names
    rows = list(zip(*columns, strict=True))
    if as_json:
        print_json([dict(zip(names, row, strict=True)) for row in rows])
    else:
        print_table(names, rows)


def _show(verb: DataShow) -> int:
    from sim2real.report.terminal import curve

    lake = open_lake(verb)
    episode = lake.get(lake.resolve(verb.id))
    names = verb.channels or tuple(episode.channels)
    chosen = {name: episode.channels.get(name) or episode[name] for name in names}
    labels = lake.query(
        "select tag, value, start_s, end_s, who, created, id from current_labels"
        f" where episode = '{episode.id}' order by created"
    ).to_pylist()
    if verb.png is not None:
        from sim2real.report.plots import plot_episode

        try:
            plot_episode(verb.png, episode, list(chosen))
        except ValueError as error:
            raise Sim2RealError(f"cannot draw {verb.png}: {error}") from None
    shapes: dict[str, dict[str, Any]] = {
        name: {
            "unit": channel.unit,
            "shape": list(channel.shape),
            "samples": len(channel.times),
            "rate_hz": channel.rate_hz,
            "stated_hz": channel.stated_hz,
        }
        for name, channel in chosen.items()
    }
    if verb.json:
        print_json(
            {
                "id": episode.id,
                "outcome": episode.outcome,
                "start_s": episode.start_s,
                "duration_s": episode.duration_s,
                "provenance": episode.provenance.to_dict(),
                "channels": shapes,
                "labels": labels,
                "png": str(verb.png) if verb.png else None,
            }
        )
        return 0
    said = lake.query(f"select verdict from verdicts where id = '{episode.id}'")["verdict"][0]
    say(f"episode {episode.id}  {said.as_py() or 'not judged'}  {episode.duration_s:.3f} s")
    for key, value in episode.provenance.to_dict().items():
        say(f"  {key}: {value}")
    for label in labels:
        when = f" {label['start_s']}–{label['end_s']} s" if label["start_s"] is not None else ""
        say(f"  label {label['tag']} {label['value']}{when} by {label['who']} ({label['id']})")
    for name, channel in chosen.items():
        fact = shapes[name]
        shape = "×".join(str(side) for side in fact["shape"]) or "1"
        say(
            f"{name} [{channel.unit or '-'}] {fact['samples']} samples of {shape}"
            f" at {fact['rate_hz']:.5g} Hz"
        )
        signal = episode.signals.get(name)
        if verb.png is None and signal is not None and len(signal.times):
            flat = signal.values.reshape(len(signal.times), -1).astype(float)
            for k in range(min(flat.shape[1], _MOST_CURVES)):
                say(f"  [{k}] {_range(flat[:, k])}")
                for line in curve(signal.times, flat[:, k]):
                    say("  " + line)
            if flat.shape[1] > _MOST_CURVES:
                say(f"  … and {flat.shape[1] - _MOST_CURVES} more components")
    if verb.png is not None:
        say(f"plot: {verb.png}")
    return 0


def _range(values: Any) -> str:
    import numpy as np

    good = values[np.isfinite(values)]
    text = f"{good.min():.5g} .. {good.max():.5g}" if len(good) else "no number"
    return text + (f", {len(values) - len(good)} not finite" if len(good) < len(values) else "")


def _versions(verb: DataVersions) -> int:
    rows = open_lake(verb).versions()
    if verb.json:
        print_json(rows)
    else:
        print_table(("version", "when", "episodes"), ([*row.values()] for row in rows))
    return 0


def _stats(verb: DataStats) -> int:
    lake = open_lake(verb)
    groups = lake.query(_STATS)
    totals = lake.query(
        "select count(*) as episodes, coalesce(sum(duration_s), 0) as seconds,"
        " coalesce(sum(samples), 0)::bigint as samples from episodes"
    ).to_pylist()[0]
    totals["labels"] = lake.query("select count(*) as n from current_labels")["n"][0].as_py()
    totals["version"] = lake.version
    totals["bytes"] = lake.storage.size()
    if verb.json:
        print_json({**totals, "groups": groups.to_pylist()})
        return 0
    say(
        f"{totals['episodes']:,} episodes, {totals['seconds'] / 3600:.2f} h,"
        f" {totals['samples']:,} samples, {totals['labels']:,} labels,"
        f" {totals['bytes'] / 1e6:,.1f} MB, version {totals['version']}"
    )
    _print_answer(groups, as_json=False)
    return 0


def _label(verb: DataLabel) -> int:
    from sim2real.data import Label

    lake = open_lake(verb)
    label = Label(
        episode=lake.resolve(verb.id),
        tag=verb.tag,
        value=verb.value,
        start_s=verb.start,
        end_s=verb.end,
        who=verb.who or user(),
        supersedes=lake.resolve_label(verb.supersedes) if verb.supersedes else "",
    )
    lake.label(label)
    if verb.json:
        print_json({"label": label.id, "episode": label.episode})
    else:
        say(f"label {label.id} on episode {label.episode}")
    return 0


def _lineage(verb: DataLineage) -> int:
    lake = open_lake(verb)
    walk = lake.lineage(lake.resolve(verb.id)).to_pylist()
    if verb.json:
        print_json(walk)
        return 0
    for row in walk:
        depth = row["steps"] - min(r["steps"] for r in walk)
        what = f"{row['kind']}" if row["present"] else "not in this lake"
        how = f" by {row['process']}" if row["process"] else ""
        mark = "  <- this" if row["steps"] == 0 else ""
        say(f"{'  ' * depth}{row['id']}  {what}{how}{mark}")
    return 0


def _verify(verb: DataVerify) -> int:
    from sim2real.data import Lake, verify
    from sim2real.report.progress import bar

    lake = Lake(verb.lake)  # not `open`: a damaged one is to be looked at too
    if not lake.storage.names("episodes"):
        raise Sim2RealError(f"no lake at {verb.lake}")
    with bar("verify", quiet=verb.json) as report:
        damage = verify(lake, report=report)
    if verb.json:
        print_json({"sound": not damage, "damage": [vars(one) for one in damage]})
    else:
        for one in damage:
            say(f"{one.file}: {one.message}")
        say(f"{len(damage)} things have changed" if damage else "everything is as it was written")
    return 1 if damage else 0


def _compact(verb: DataCompact) -> int:
    lake = open_lake(verb)
    fewer = lake.compact()
    if verb.json:
        print_json({"files_fewer": fewer, "version": lake.version})
    else:
        say(f"{fewer} files fewer; version {lake.version}")
    return 0
