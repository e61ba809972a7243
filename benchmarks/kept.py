"""What was measured and is kept: a file a shard, and one of the whole benchmark made from them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.benchmark import Benchmark, Measurement, Result
from benchmarks.machine import RESULTS, changed
from sim2real.files import read_json, write_json
from sim2real.plain import of_plain, plain


@dataclass(frozen=True, kw_only=True)
class Checked:
    """A canary that agreed with what was kept, though the code had changed."""

    commit: str
    date: str
    canary: str
    """The shard that was measured again."""


@dataclass(frozen=True, kw_only=True)
class Shard:
    """One shard as it was measured."""

    bench: str
    shard: str
    command: str = ""
    commit: str
    machine: dict[str, str | int]
    date: str
    seconds: float | None = None
    """How long it took; None where that was not kept."""
    plan: dict[str, object] | None = None
    """Sizes it was measured with."""
    checked: Checked | None = None
    data: dict[str, object]


@dataclass(frozen=True, kw_only=True)
class Whole:
    """A benchmark's figures, as its tables show them."""

    bench: str
    command: str
    commit: str
    """Of the last shard that was measured."""
    machine: dict[str, str | int]
    date: str
    seconds: float = 0.0
    """What it takes: on all cores at once where shards run side by side."""
    commits: dict[str, list[str]] | None = None
    """Shards of each commit, where they are of several."""
    checked: Checked | None = None
    results: list[dict[str, object]]


def plan_of(work: Measurement[object]) -> dict[str, object] | None:
    """Sizes of a full run, as a kept shard has them."""
    if work.plan is None:
        return None
    found: dict[str, object] = json.loads(json.dumps(plain(work.plan)))
    return found


def path_of(bench: str, shard: str, folder: Path = RESULTS) -> Path:
    """Where a shard is kept."""
    return folder / bench / f"{shard}.json"


def shard_of(bench: str, shard: str, folder: Path = RESULTS) -> Shard | None:
    """A shard that is kept, or None."""
    path = path_of(bench, shard, folder)
    return of_plain(Shard, read_json(path)) if path.is_file() else None


def write_shard(shard: Shard, folder: Path = RESULTS) -> None:
    """Keep a shard."""
    write_json(path_of(shard.bench, shard.shard, folder), plain(shard))


def kept_shards(
    bench: str, names: Sequence[str], plan: Mapping[str, object] | None, folder: Path = RESULTS
) -> dict[str, Shard]:
    """Shards of one plan that are kept."""
    found = {name: shard_of(bench, name, folder) for name in names}
    return {name: shard for name, shard in found.items() if shard and shard.plan == plan}


def wholes_of(bench: str, folder: Path = RESULTS) -> list[Whole]:
    """The benchmark's figures; older ones are in several files, NAME-PART.json each."""
    file = folder / f"{bench}.json"
    files = [file] if file.is_file() else sorted(folder.glob(f"{bench}-*.json"))
    found = [of_plain(Whole, read_json(path)) for path in files]
    # `test-time` is no part of a benchmark `test`.
    return [whole for whole in found if whole.bench == bench]


def made_whole(
    benchmark: Benchmark, shards: Mapping[str, Shard], results: Sequence[Result]
) -> Whole:
    """The figures of all shards together."""
    last = max(reversed(list(shards.values())), key=lambda shard: shard.date)
    by_commit: dict[str, list[str]] = {}
    for name, shard in shards.items():
        by_commit.setdefault(shard.commit, []).append(name)
    cores = int(last.machine["cores"]) if benchmark.at_once else 1
    checked = [shard.checked for shard in shards.values() if shard.checked]
    return Whole(
        bench=benchmark.name,
        command=f"python -m benchmarks {benchmark.name}",
        commit=last.commit,
        machine=last.machine,
        date=last.date,
        seconds=round(sum(shard.seconds or 0.0 for shard in shards.values()) / cores, 1),
        commits=by_commit if len(by_commit) > 1 else None,
        checked=max(checked, key=lambda one: one.date, default=None),
        results=[result.to_dict() for result in results],
    )


def write_whole(whole: Whole, folder: Path = RESULTS) -> None:
    """Keep the figures; parts that they replace go."""
    data = {name: value for name, value in plain(whole).items() if value is not None}
    write_json(folder / f"{whole.bench}.json", data)
    for old in folder.glob(f"{whole.bench}-*.json"):
        if of_plain(Whole, read_json(old)).bench == whole.bench:
            old.unlink()


def parsed(work: Measurement[object], shards: Mapping[str, Shard]) -> dict[str, object]:
    """What kept shards gave, as the benchmark has it."""
    return {name: of_plain(work.kind, shard.data) for name, shard in shards.items()}


def outdated(benchmark: Benchmark, shard: Shard) -> tuple[str, ...]:
    """Modules that have changed since a shard was measured or checked; why it is unknown, if so."""
    modules = (*benchmark.modules, benchmark.code)
    since = [shard.commit, *([shard.checked.commit] if shard.checked else [])]
    found = [changed(modules, commit) for commit in since]
    known = [modules for modules in found if modules is not None]
    if not known:
        return (f"commit {shard.commit} is not in this checkout",)
    return min(known, key=len)


def confirmed(shard: Shard, checked: Checked) -> Shard:
    """The shard with the canary that speaks for it."""
    return replace(shard, checked=checked)
