"""Logs made of columns (CSV, npz, JSON, MATLAB) as episodes, by a channel map.

Without a map, files that sim2real wrote are restored, and others are read by a simple rule: one
column with a common name is the time, and every other numeric column is a channel without a unit.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from sim2real.data.episode import Episode, channel_name
from sim2real.data.formats import format_by_name
from sim2real.data.formats.channel_map import (
    ChannelMap,
    ChannelSource,
    ClockSource,
    RecordingMap,
    ScalarSource,
)
from sim2real.data.formats.columns.column_table import ColumnTable
from sim2real.data.formats.columns.convert import Rows, signal
from sim2real.data.formats.columns.csv import MAP, read_csv
from sim2real.data.formats.columns.json import read_json_table
from sim2real.data.formats.columns.mat import read_mat
from sim2real.data.formats.columns.npz import OWN, own_episodes, read_npz
from sim2real.data.formats.file_errors import explained, naming
from sim2real.data.provenance import Provenance
from sim2real.errors import Sim2RealError

_TIME = re.compile(r"(t|times?|time_?stamps?|stamp|secs?|seconds)(_(s|ms|us|ns))?$")
_OUTCOMES = {"success": "success", "true": "success", "1": "success", "1.0": "success",
             "failure": "failure", "false": "failure", "0": "failure", "0.0": "failure",
             "": ""}  # fmt: skip


def column_format(path: Path) -> str:
    """'csv', 'npz', 'json' or 'mat' by the name of a file; '' for others."""
    found = format_by_name(path)
    return found if found in ("csv", "npz", "json", "mat") else ""


def read_columns(
    path: Path,
    *,
    base: Provenance,
    channels: ChannelMap | None = None,
    rate_hz: float = 0.0,
) -> Iterator[Episode]:
    """The episodes of a log, or of all logs in a folder and its subfolders, by name.

    `base` is the provenance that the caller knows; the map and the files complete it. `rate_hz`
    [Hz] turns row numbers into times where there is neither a map nor a time column.
    """
    path = Path(path)
    if not path.exists():
        raise Sim2RealError(f"no such file: {path}")
    if channels is not None:
        yield from _mapped(path, channels, base)
        return
    maps = sorted(path.rglob(MAP)) if path.is_dir() else []
    for map_path in maps:
        yield from _mapped(map_path.parent, ChannelMap.load(map_path), base)
    if maps:
        return
    files = [path] if path.is_file() else [p for p in _below(path) if column_format(p)]
    if not files:
        raise Sim2RealError(f"{path} contains no CSV, npz, JSON or MATLAB file")
    for file in files:
        with explained(file):
            yield from _plain(file, base, rate_hz)


def _below(folder: Path) -> list[Path]:
    """The folder and everything in it that is not hidden, by name."""
    inside = (p.relative_to(folder).parts for p in folder.rglob("*"))
    return [
        folder.joinpath(*parts)
        for parts in [(), *sorted(inside)]
        if not any(part.startswith(".") for part in parts)
    ]


def _read_table(path: Path, *, header: bool = True, rows: str = "") -> ColumnTable:
    kind = column_format(path)
    if kind == "npz":
        return read_npz(path)
    if kind == "json":
        return read_json_table(path, rows=rows)
    if kind == "mat":
        return read_mat(path)
    return read_csv(path, header=header)


def _mapped(path: Path, channels: ChannelMap, base: Provenance) -> Iterator[Episode]:
    some = False
    for place in _below(path) if path.is_dir() else [path]:
        kinds = [kind for kind in channels.recordings if _may_hold(place, kind)]
        with explained(place):
            if place.is_dir() and kinds:
                yield _folder_episode(place, kinds[0], base)
                some = True
            elif kinds:
                yield from _file_episodes(place, kinds, base)
                some = True
    if not some:
        wanted = sorted({p for kind in channels.recordings for p in (*kind.together, *kind.files)})
        raise Sim2RealError(
            f"{path} contains nothing that the channel map describes ({', '.join(wanted)})"
        )


def _may_hold(place: Path, kind: RecordingMap) -> bool:
    if not kind.fits(place):
        return False
    if kind.together:
        return all((place / name).is_file() for name in kind.together)
    # A pattern may name logs with any suffix; a bare '*' means the usual ones.
    return place.is_file() and (bool(column_format(place)) or kind.files != ("*",))


def _folder_episode(folder: Path, kind: RecordingMap, base: Provenance) -> Episode:
    tables = {}
    for name in kind.together:
        with explained(folder / name):
            tables[name] = _read_table(folder / name, header=kind.header, rows=kind.rows)
    hasher = hashlib.sha256("".join(f"{n} {t.sha256}\n" for n, t in tables.items()).encode())
    scalars = {name: value for table in tables.values() for name, value in table.scalars.items()}
    rows = {name: Rows(table=table, skip=kind.skip) for name, table in tables.items()}
    name = folder.absolute().name
    known = {**scalars, "@file": name, "@folder": name}
    return _episode(kind, rows, known, base, f"{name} sha256:{hasher.hexdigest()}")


def _file_episodes(path: Path, kinds: list[RecordingMap], base: Provenance) -> Iterator[Episode]:
    """The episodes of one file, by the first kinds of recording that fit its content."""
    tables: dict[tuple[bool, str], ColumnTable] = {}
    taken: set[str] = set()
    misfit = None
    for kind in kinds:
        key = (kind.header, kind.rows)
        if key not in tables:
            tables[key] = _read_table(path, header=kind.header, rows=kind.rows)
        table = tables[key]
        known = {**table.scalars, "@file": path.name, "@folder": path.absolute().parent.name}
        if not kind.episodes:
            misfit = misfit or Rows(table=table).missing(kind)
            if Rows(table=table).missing(kind):
                continue
            yield from _repeats(kind, Rows(table=table, skip=kind.skip), known, base, path.name)
            return
        names = [n for n in table.names if fnmatchcase(n, kind.episodes) and n not in taken]
        taken.update(names)
        for name in names:
            rows = Rows(table=table, skip=kind.skip, array=name)
            where = f"{path.name}:{name}"
            yield from _repeats(kind, rows, {**known, "@array": name}, base, where)
            table.forget()
    if not taken:
        raise Sim2RealError(misfit or f"no array has a name that matches {kinds[0].episodes!r}")


def _repeats(
    kind: RecordingMap, rows: Rows, known: Mapping[str, object], base: Provenance, where: str
) -> Iterator[Episode]:
    if not kind.repeats:
        yield _episode(kind, {"": rows}, known, base, f"{where} sha256:{rows.table.sha256}")
        return
    for number in range(rows.repeats(kind)):
        one, told = replace(rows, repeat=number), {**known, "@repeat": str(number)}
        yield _episode(kind, {"": one}, told, base, f"{where}[{number}] sha256:{rows.table.sha256}")


def _episode(
    kind: RecordingMap,
    rows: Mapping[str, Rows],
    known: Mapping[str, object],
    base: Provenance,
    source: str,
) -> Episode:
    """One episode; `rows` are by file, `known` are the scalars that a map may refer to."""
    channels = {}
    for name, channel in kind.channels.items():
        clock = channel.clock or kind.clock
        rate_hz = _rate(_value(clock.rate_hz, known), "rate_hz")
        stated_hz = _rate(_value(clock.stated_hz, known), "stated_hz")
        with naming(f"{channel.file}, channel {name!r}" if channel.file else f"channel {name!r}"):
            channels[name] = signal(
                channel, rows[channel.file], clock, rate_hz=rate_hz, stated_hz=stated_hz
            )
    outcome = str(_value(kind.outcome, known)).lower()
    if outcome not in _OUTCOMES:
        raise Sim2RealError(f"outcome {outcome!r} is neither 'success' nor 'failure'")
    found = Episode(
        channels=channels,
        provenance=_provenance(kind, known, base, source),
        outcome=_OUTCOMES[outcome],
    )
    if kind.id and found.id != kind.id:
        raise Sim2RealError(
            f"the data have changed since they were written as episode {kind.id[:40]}"
            " (remove 'id' from the map to import them as they are)"
        )
    return found


def _provenance(
    kind: RecordingMap, known: Mapping[str, object], base: Provenance, source: str
) -> Provenance:
    """What the caller knows, completed by the map; a map written by `write_csv` is complete."""
    data: dict[str, object] = {} if kind.id else {**base.to_dict(), "source": source}
    for name, value in kind.provenance.items():
        if isinstance(value, Mapping):
            given, found = data.get(name), {k: _value(entry, known) for k, entry in value.items()}
            data[name] = {**given, **found} if isinstance(given, Mapping) else found
        elif isinstance(value, ScalarSource):
            told = _value(value, known)
            if name == "seed" and isinstance(told, int | float) and told == int(told):
                data[name] = int(told)
            else:
                data[name] = str(told)
        else:
            data[name] = value
    return Provenance.from_dict(data)


def _value(value: object, known: Mapping[str, object]) -> object:
    """The value itself, or what a `ScalarSource` stands for."""
    if not isinstance(value, ScalarSource):
        return value
    if value.source not in known:
        there = ", ".join(sorted(known)[:20])
        raise Sim2RealError(f"no scalar {value.source!r}; there are {there}")
    found = known[value.source]
    if value.match:
        match = re.search(value.match, str(found))
        if match is None:
            raise Sim2RealError(
                f"{value.source} = {str(found)[:80]!r} does not match {value.match!r}"
            )
        return match[1] or ""
    return found


def _rate(value: object, name: str) -> float:
    try:
        rate = float(value) if isinstance(value, str | int | float) else math.nan
    except (ValueError, OverflowError):
        rate = math.nan
    if not (math.isfinite(rate) and rate >= 0):
        raise Sim2RealError(f"{name} = {str(value)[:40]!r} is not a rate")
    return rate


def _plain(path: Path, base: Provenance, rate_hz: float) -> Iterator[Episode]:
    """The episodes of a file without a map."""
    table = _read_table(path)
    if OWN in table.texts:
        yield from own_episodes(table)
        return
    times = {name: found for name in table.names if (found := _TIME.match(name.lower()))}
    if len(times) != 1 and rate_hz <= 0:
        what = "several columns could hold the time" if times else "no column is named like a time"
        raise Sim2RealError(f"{what}: give a channel map{table.listing()}")
    if len(times) == 1:
        name, found = next(iter(times.items()))
        clock = ClockSource(columns=(name,), unit=found[3] or "s", stated_hz=rate_hz)
    else:
        clock = ClockSource(rate_hz=rate_hz)
    channels: dict[str, ChannelSource] = {}
    for name in table.names:
        if (name,) == clock.columns or (name in table.scalars and len(table.names) > 2):
            continue
        plain = channel_name(name)
        if plain in channels:
            raise Sim2RealError(f"two columns would be the channel {plain!r}: give a channel map")
        channels[plain] = ChannelSource(columns=(name,))
    if not channels:
        raise Sim2RealError(f"there is no column of numbers except the time{table.listing()}")
    kind = RecordingMap(clock=clock, channels=channels)
    rows = {"": Rows(table=table)}
    yield _episode(kind, rows, {}, base, f"{path.name} sha256:{table.sha256}")
