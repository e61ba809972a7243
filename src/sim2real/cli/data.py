"""`sim2real data …`: looking at a lake, adding to what is said about it, keeping it sound."""

from __future__ import annotations

from typing import Any

import numpy as np

from sim2real.cli.data_options import (
    DataCompact,
    DataLabel,
    DataLineage,
    DataLs,
    DataQuery,
    DataShow,
    DataStats,
    DataVerify,
    DataVersions,
)
from sim2real.cli.lake import open_lake, user
from sim2real.cli.output import answer, print_json, print_table, say, shorten
from sim2real.data import Label, Lake, LakeKeeper, Signal
from sim2real.errors import Sim2RealError
from sim2real.report import bar, curve, plot_episode

_MOST_CURVES = 8


def run_query(verb: DataQuery) -> int:
    """Ask with SQL; 0."""
    found = open_lake(verb).query(verb.sql, version=verb.version)
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
    rows = LakeKeeper(open_lake(verb)).episodes(
        where=verb.where, limit=verb.limit, version=verb.version
    )
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


def run_show(verb: DataShow) -> int:
    """Show an episode, with its curves in the terminal or in a picture; 0."""
    lake = open_lake(verb)
    episode = lake.get(lake.resolve(verb.id))
    told = LakeKeeper(lake).episode(episode, verb.channels)
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
    for k in range(min(flat.shape[1], _MOST_CURVES)):
        say(f"  [{k}] {_range(flat[:, k])}")
        for line in curve(signal.times, flat[:, k]):
            say("  " + line)
    if flat.shape[1] > _MOST_CURVES:
        say(f"  … and {flat.shape[1] - _MOST_CURVES} more components")


def _range(values: Any) -> str:

    good = values[np.isfinite(values)]
    text = f"{good.min():.5g} .. {good.max():.5g}" if len(good) else "no number"
    return text + (f", {len(values) - len(good)} not finite" if len(good) < len(values) else "")


def run_versions(verb: DataVersions) -> int:
    """List the versions; 0."""
    rows = open_lake(verb).versions()
    columns = ("version", "when", "episodes")
    cells = [row.values() for row in rows]
    return answer(rows, lambda: print_table(columns, cells), json=verb.json)


def run_stats(verb: DataStats) -> int:
    """Count what is there; 0."""
    told = LakeKeeper(open_lake(verb)).totals()
    if verb.json:
        print_json(told)
        return 0
    say(
        f"{told['episodes']:,} episodes, {told['seconds'] / 3600:.2f} h,"
        f" {told['samples']:,} samples, {told['labels']:,} labels,"
        f" {told['bytes'] / 1e6:,.1f} MB, version {told['version']}"
    )
    if groups := told["groups"]:
        print_table(list(groups[0]), (group.values() for group in groups))
    return 0


def run_label(verb: DataLabel) -> int:
    """Say something about an episode; 0."""
    lake = open_lake(verb)
    label = Label(
        episode=lake.resolve(verb.id),
        tag=verb.tag,
        value=verb.value,
        start_s=verb.start,
        end_s=verb.end,
        who=verb.who or user(),
        supersedes=lake.resolve(verb.supersedes, "label") if verb.supersedes else "",
    )
    lake.label(label)
    told = {"label": label.id, "episode": label.episode}
    return answer(told, f"label {label.id} on episode {label.episode}", json=verb.json)


def run_lineage(verb: DataLineage) -> int:
    """Show what an episode was made from, and into; 0."""
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


def run_verify(verb: DataVerify) -> int:
    """Hash everything again; 1 where something has changed."""
    lake = Lake(verb.lake)  # not `open`: a damaged one is to be looked at too
    if not lake.storage.names("episodes"):
        raise Sim2RealError(f"no lake at {verb.lake}")
    with bar("verify", quiet=verb.json) as report:
        damage = LakeKeeper(lake).verify(report=report)
    if verb.json:
        print_json({"sound": not damage, "damage": damage})
    else:
        for one in damage:
            say(f"{one.file}: {one.message}")
        say(f"{len(damage)} things have changed" if damage else "everything is as it was written")
    return 1 if damage else 0


def run_compact(verb: DataCompact) -> int:
    """Merge small files; 0."""
    lake = open_lake(verb)
    fewer = lake.compact()
    told = {"files_fewer": fewer, "version": lake.version}
    return answer(told, f"{fewer} files fewer; version {lake.version}", json=verb.json)
