"""`sim2real data …`: show, label and maintain a lake, and record consent."""

from __future__ import annotations

import getpass
from typing import Any

import numpy as np

from sim2real.cli.options import (
    ConsentGrant,
    ConsentWithdraw,
    DataLabel,
    DataLineage,
    DataLs,
    DataQuery,
    DataShow,
    InLake,
)
from sim2real.cli.output import answer, print_json, print_table, say, shorten
from sim2real.data import Consent, Label, Lake, Signal
from sim2real.errors import Sim2RealError
from sim2real.report import bar, curve, plot_episode
from sim2real.units import counted

_MAX_CURVES = 8
"""Most components of a channel that are drawn."""


def run_query(verb: DataQuery) -> int:
    """Query with SQL; 0."""
    found = Lake.open(verb.lake).query(verb.sql, version=verb.version)
    try:
        columns = [column.to_pylist() for column in found.columns]
    except (OverflowError, ValueError) as error:
        raise Sim2RealError(f"the answer cannot be shown: {error}") from None
    names = found.column_names
    rows = list(zip(*columns, strict=True))
    told = [dict(zip(names, row, strict=True)) for row in rows]
    return answer(told, lambda: print_table(names, rows), json=verb.json)


def run_ls(verb: DataLs) -> int:
    """List episodes; 0."""
    rows = Lake.open(verb.lake).keeper.episodes(
        where=verb.where, limit=verb.limit, version=verb.version
    )
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
    return answer(rows, lambda: print_table(titles, table, whole=titles), json=verb.json)


def run_show(verb: DataShow) -> int:
    """Show an episode, with its curves in the terminal or in a picture; 0."""
    lake = Lake.open(verb.lake)
    episode = lake.get(lake.resolve(verb.id))
    told = lake.keeper.episode(episode, verb.channels)
    if verb.png is not None:
        try:
            plot_episode(verb.png, episode, list(told["channels"]))
        except ValueError as error:
            raise Sim2RealError(f"cannot draw {verb.png}: {error}") from None
    if verb.json:
        print_json({**told, "png": str(verb.png) if verb.png else None})
        return 0
    said = lake.query(f"select verdict from verdicts where id = '{episode.id}'")["verdict"][0]
    say(f"episode {episode.id}  {said.as_py() or 'not judged'}  {episode.duration_s:.3f} s")
    for key, value in told["provenance"].items():
        say(f"  {key}: {value}")
    for label in told["labels"]:
        when = f" {label['start_s']}–{label['end_s']} s" if label["start_s"] is not None else ""
        say(f"  label {label['tag']} {label['value']}{when} by {label['who']} ({label['id']})")
    for name, fact in told["channels"].items():
        shape = "×".join(str(side) for side in fact["shape"]) or "1"
        say(
            f"{name} [{fact['unit'] or '-'}] {fact['samples']} samples of {shape}"
            f" at {fact['rate_hz']:.5g} Hz"
        )
        if verb.png is None and name in episode.signals:
            _draw(episode.signals[name])
    if verb.png is not None:
        say(f"plot: {verb.png}")
    return 0


def _draw(signal: Signal) -> None:
    if not len(signal.times):
        return
    flat = signal.values.reshape(len(signal.times), -1).astype(float)
    for k in range(min(flat.shape[1], _MAX_CURVES)):
        say(f"  [{k}] {_range(flat[:, k])}")
        for line in curve(signal.times, flat[:, k]):
            say("  " + line)
    if flat.shape[1] > _MAX_CURVES:
        say(f"  … and {flat.shape[1] - _MAX_CURVES} more components")


def _range(values: Any) -> str:
    good = values[np.isfinite(values)]
    text = f"{good.min():.5g} .. {good.max():.5g}" if len(good) else "no numbers"
    return text + (f", {len(values) - len(good)} not finite" if len(good) < len(values) else "")


def run_versions(verb: InLake) -> int:
    """List the versions; 0."""
    rows = Lake.open(verb.lake).versions()
    columns = ("version", "when", "episodes")
    cells = [row.values() for row in rows]
    return answer(rows, lambda: print_table(columns, cells), json=verb.json)


def run_stats(verb: InLake) -> int:
    """Count episodes; 0."""
    told = Lake.open(verb.lake).keeper.totals()

    def show() -> None:
        say(
            f"{told['episodes']:,} episodes, {told['seconds'] / 3600:.2f} h,"
            f" {told['samples']:,} samples, {told['labels']:,} labels,"
            f" {told['bytes'] / 1e6:,.1f} MB, version {told['version']}"
        )
        if groups := told["groups"]:
            print_table(list(groups[0]), (group.values() for group in groups))

    return answer(told, show, json=verb.json)


def run_label(verb: DataLabel) -> int:
    """Label an episode; 0."""
    lake = Lake.open(verb.lake)
    label = Label(
        episode=lake.resolve(verb.id),
        tag=verb.tag,
        value=verb.value,
        start_s=verb.start,
        end_s=verb.end,
        who=verb.who or _user(),
        supersedes=lake.resolve(verb.supersedes, "label") if verb.supersedes else "",
    )
    lake.label(label)
    told = {"label": label.id, "episode": label.episode}
    return answer(told, f"label {label.id} on episode {label.episode}", json=verb.json)


def run_lineage(verb: DataLineage) -> int:
    """Show what an episode was made from, and what from it; 0."""
    lake = Lake.open(verb.lake)
    walk = lake.lineage(lake.resolve(verb.id)).to_pylist()
    lines = []
    for row in walk:
        depth = row["steps"] - min(r["steps"] for r in walk)
        what = f"{row['kind']}" if row["present"] else "not in this lake"
        how = f" by {row['process']}" if row["process"] else ""
        if row["kind"] == "policy":
            how = ", which acted in it" if row["steps"] < 0 else f", made from it: {row['process']}"
        mark = "  <- this" if row["steps"] == 0 else ""
        lines.append(f"{'  ' * depth}{row['id']}  {what}{how}{mark}")
    return answer(walk, "\n".join(lines), json=verb.json)


def run_verify(verb: InLake) -> int:
    """Check every hash; 1 if anything has changed."""
    lake = Lake(verb.lake)  # not `open`, which refuses a damaged lake
    if not lake.storage.names("episodes"):
        raise Sim2RealError(f"no lake at {verb.lake}")
    with bar("verify", quiet=verb.json) as report:
        damage = lake.keeper.verify(report=report)
    lines = [f"{one.file}: {one.message}" for one in damage]
    lines += [
        f"{counted(len(damage), 'thing')} changed" if damage else "no file or episode has changed"
    ]
    answer({"sound": not damage, "damage": damage}, "\n".join(lines), json=verb.json)
    return 1 if damage else 0


def run_compact(verb: InLake) -> int:
    """Merge small files; 0."""
    lake = Lake.open(verb.lake)
    fewer = lake.compact()
    told = {"files_fewer": fewer, "version": lake.version}
    return answer(told, f"{fewer} files fewer; version {lake.version}", json=verb.json)


def run_grant(verb: ConsentGrant) -> int:
    """Record an agreement; 0."""
    scope = tuple(part for part in verb.scope if part != "none")
    consent = Consent(participant=verb.participant, scope=scope, expires=verb.expires)
    Lake.open(verb.lake).grant(consent, who=verb.who or _user())
    given = ", ".join(consent.scope) or "nothing"
    end = f" until {consent.expires}" if consent.expires else ""
    return answer(consent, f"{consent.participant}: {given}{end}", json=verb.json)


def run_consents(verb: InLake) -> int:
    """List the agreements in force; 0."""
    listed = Lake.open(verb.lake).keeper.participants()
    columns = ("participant", "episodes", "scope", "expires", "from")
    rows = [row.values() for row in listed]
    return answer(listed, lambda: print_table(columns, rows), json=verb.json)


def run_withdraw(verb: ConsentWithdraw) -> int:
    """Erase a person's data; 0."""
    lake = Lake.open(verb.lake)
    if verb.dry_run:
        ids = sorted(lake.keeper.affected(verb.participant))
        words = f"{len(ids)} episodes would be erased from every version; nothing was erased"
        return answer({"dry_run": True, "episodes": ids}, words, json=verb.json)
    gone = lake.keeper.withdraw(verb.participant)
    names = lake.query("select id, name from datasets").to_pydict()
    known = dict(zip(names["id"], names["name"], strict=True))
    lines = [f"erased {len(gone.episodes)} episodes; tombstone {gone.id}"]
    lines += [f"data set made from them: {one} ({known.get(one, '')})" for one in gone.datasets]
    lines += [f"policy made from them: {policy}" for policy in gone.policies]
    lines += [f"erased result of an analysis of them: {result}" for result in gone.results]
    return answer(gone, "\n".join(lines), json=verb.json)


def _user() -> str:
    """Name of the user."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        raise Sim2RealError("name yourself with --who") from None
