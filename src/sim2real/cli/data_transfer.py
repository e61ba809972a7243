"""`sim2real data import | export | check`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from sim2real.cli.options import DataCheck, DataExport, DataImport, Reading
from sim2real.cli.output import answer, print_json, say, say_error
from sim2real.data import (
    ChannelMap,
    Episode,
    Lake,
    LogFault,
    Provenance,
    check_episodes,
    export_episodes,
    import_episodes,
    read_episodes,
)
from sim2real.errors import Sim2RealError
from sim2real.files import read_table
from sim2real.report import bar
from sim2real.units import counted


def run_import(verb: DataImport) -> int:
    """Import files; 2 if some could not be read and were left out."""
    with bar("import", quiet=verb.json) as report:
        found = import_episodes(
            verb.paths,
            verb.lake,
            executor=verb.executor,
            workers=verb.workers,
            store=verb.store,
            report=report,
            **_reading(verb) | {"channels": verb.channels},
        )
    known = len(found.episodes) - found.new
    more = f", {known} known" if known else ""
    answer(
        found, f"{counted(found.new, 'episode')} imported into {verb.lake}{more}", json=verb.json
    )
    for text in found.problems:
        say_error(text)
    return 2 if found.problems else 0


def run_export(verb: DataExport) -> int:
    """Write episodes to another format, and record what left the lake; 0."""
    with bar("export", quiet=verb.json) as report:
        found = export_episodes(
            Lake.open(verb.lake),
            verb.out,
            ids=verb.ids,
            where=verb.where,
            format=verb.format,
            rate_hz=verb.rate_hz,
            clock=verb.clock,
            rename=dict(_pair(text) for text in verb.rename),
            purpose=verb.purpose,
            version=verb.version,
            report=report,
        )
    words = (
        f"{counted(len(found.episodes), 'episode')} written to {verb.out}; data set {found.dataset}"
    )
    return answer(found, words, json=verb.json)


def _pair(text: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not (old and equals and new):
        raise Sim2RealError(f"--rename takes OLD=NEW, not {text!r}")
    return old, new


def run_check(verb: DataCheck) -> int:
    """Check episodes of files or of the lake; 1 if there is an error or warning."""
    checked = []
    for one in check_episodes(_to_check(verb), repair_in=verb.lake if verb.repair else ""):
        checked.append(one)
        if not verb.json:
            if one.findings:
                say(f"episode {one.episode} from {one.source}")
            _say_faults(one.findings)
            if (fixed := one.repaired) is not None:
                say(f"  repaired as episode {fixed.id} ({fixed.provenance.process})")
    bad = any(one.bad for one in checked)
    if verb.json:
        print_json({"episodes": checked})
    elif not bad:
        say(f"nothing wrong in {counted(len(checked), 'episode')}")
    return 1 if bad else 0


def _to_check(verb: DataCheck) -> Iterator[tuple[str, Episode]]:
    for what in verb.what:
        if _is_there(what):
            for episode in read_episodes(Path(what), **_reading(verb)):
                yield what, episode
    starts = [what for what in verb.what if not _is_there(what)]
    if not starts and verb.what:
        return
    for start in starts:
        if not start or not all(sign in "0123456789abcdef" for sign in start):
            raise Sim2RealError(f"no such file or folder, and not an episode's id: {start[:80]!r}")
    lake = Lake.open(verb.lake)
    ids = [lake.resolve(start) for start in starts]
    for episode in lake.read(ids or lake.keeper.unrepaired(where=verb.where, repaired=verb.all)):
        yield episode.provenance.source.partition(" sha256:")[0] or verb.lake, episode


def _is_there(name: str) -> bool:
    try:
        return bool(name) and Path(name).exists()
    except (OSError, ValueError):  # too long, or not valid as a name
        return False


def _say_faults(faults: Iterable[LogFault]) -> None:
    for finding in faults:
        place = finding.span
        where = (
            finding.channel if place.component is None else f"{finding.channel}[{place.component}]"
        )
        say(
            f"  {finding.severity}: {finding.kind}: {where},"
            f" {place.start_s:.4g}–{place.end_s:.4g} s: {finding.message}; {finding.remedy}"
        )


def _reading(verb: Reading) -> dict[str, Any]:
    """Arguments of `read_episodes`."""
    return {
        "base": _base(verb),
        "format": verb.format,
        "channels": None if verb.channels is None else ChannelMap.load(verb.channels),
        "rate_hz": verb.rate_hz,
    }


def _base(verb: Reading) -> Provenance:
    """The provenance that the user gives."""
    given: dict[str, Any] = {"kind": verb.kind}
    if verb.provenance is not None:
        given |= read_table(verb.provenance)
    base = Provenance.from_dict(given)
    named = {key: getattr(verb, key) for key in ("task", "robot", "serial", "site", "operator")}
    return replace(base, **{key: value for key, value in named.items() if value})
