"""Running a benchmark: what it will cost, its shards, its figures."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.benchmark import Benchmark, Measurement, Options, Result, report
from benchmarks.catalogue import named
from benchmarks.kept import (
    Shard,
    kept_shards,
    made_whole,
    outdated,
    parsed,
    plan_of,
    wholes_of,
    write_shard,
    write_whole,
)
from benchmarks.machine import RESULTS, ROOT, commit, machine, uncommitted
from sim2real.errors import Sim2RealError, nearest
from sim2real.plain import of_plain, plain
from sim2real.scale import ExecutorOptions, ShardEvent, open_executor, open_store
from sim2real.scale import Shard as Part

HERE = ExecutorOptions()


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked for."""

    options: Options
    shards: tuple[str, ...] = ()
    """Only these; all by default."""
    again: bool = False
    """Measure again what is kept."""
    minutes: float = 60.0
    """No shard is begun that would not end within this time [min]."""
    json: bool = False
    """Print figures as JSON."""
    results: Path = RESULTS
    """Folder of what is kept."""
    where: ExecutorOptions = HERE
    """Where shards are measured."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What a shard gave, on which machine."""

    data: dict[str, object]
    seconds: float
    machine: dict[str, str | int]


def run(name: str, request: Request) -> int:
    """Measure what is not kept yet, keep it, and print the figures."""
    benchmark = named(name)
    dirty = "" if request.options.quick else uncommitted()
    if dirty and not request.json:
        raise Sim2RealError(f"{dirty}: a figure is of a commit; --json prints without keeping any")
    if request.where.executor and not benchmark.at_once and not request.options.quick:
        raise Sim2RealError(f"shards of {name!r} measure time: they run alone, without --executor")
    if request.where.store and dirty:
        raise Sim2RealError(f"{dirty}: --store keeps shards of a commit; leave it out")
    work = benchmark.load()
    every = work.shards(request.options)
    chosen = _chosen(request.shards, every)
    if request.options.quick:
        return _quick(benchmark, work, chosen, request)
    plan = plan_of(work)
    kept = kept_shards(name, every, plan, request.results)
    fresh = {} if request.again else {n: s for n, s in kept.items() if not outdated(benchmark, s)}
    left = [shard for shard in chosen if shard not in fresh]
    report(cost(benchmark, every, kept, fresh, request.results))
    kept |= _measure(benchmark, work, left, plan, request, keep=not dirty)
    found = {shard: kept[shard] for shard in every if shard in kept}
    if not found:
        raise Sim2RealError(f"nothing of {name!r} can be measured here")
    results = work.results(parsed(work, found), request.options)
    stale = [n for n, shard in found.items() if not dirty and outdated(benchmark, shard)]
    missing = [shard for shard in every if shard not in found]
    if missing or stale:
        report(_unfinished(name, missing, stale))
    elif not dirty:
        write_whole(made_whole(benchmark, found, results), request.results)
    show(benchmark.name, results, as_json=request.json)
    return 0


def cost(
    benchmark: Benchmark,
    every: Sequence[str],
    kept: Mapping[str, Shard],
    fresh: Mapping[str, Shard],
    folder: Path = RESULTS,
) -> str:
    """What a run will take, in a line."""
    minutes, whence = minutes_of(benchmark, folder)
    state = f", {len(fresh)} of them measured with this code" if kept else ""
    count = f"{len(every)} shard{'s' if len(every) > 1 else ''}"
    return f"{benchmark.name}: {told(minutes)} on two idle cores ({whence}); {count}{state}"


def minutes_of(benchmark: Benchmark, folder: Path = RESULTS) -> tuple[float, str]:
    """Minutes of a whole run on two idle cores, and how that is known."""
    wholes = wholes_of(benchmark.name, folder)
    if len(wholes) == 1 and wholes[0].seconds:
        whole = wholes[0]
        shared = int(whole.machine["cores"]) / 2 if benchmark.at_once else 1.0
        return whole.seconds * shared / 60, f"as on {whole.date} at {whole.commit}"
    return benchmark.minutes, "an estimate"


def told(minutes: float) -> str:
    """Minutes as a person says them."""
    if minutes < 1:
        return "less than a minute"
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.0f} h"


def show(name: str, results: Sequence[Result], *, as_json: bool) -> None:
    """Print figures, as a table or as one JSON object."""
    if as_json:
        found = {"bench": name, "commit": commit(), "machine": machine()}
        rows = [result.to_dict() for result in results]
        sys.stdout.write(json.dumps({**found, "results": rows}) + "\n")
        return
    from rich.console import Console
    from rich.table import Table

    table = Table()
    table.add_column("name", no_wrap=True)
    for column in ("value", "unit", "target", "met", "peer"):
        table.add_column(column)
    for r in results:
        met = {True: "yes", False: "NO", None: ""}[r.met]
        table.add_row(r.name, f"{r.value:.4g}", r.unit, r.target, met, r.peer or r.note)
    Console().print(table)


def measured(name: str, shard: str, options: Options) -> Measured:
    """What a shard gives."""
    begin = time.monotonic()
    data = plain(named(name).load().run(shard, options))
    return Measured(data=data, seconds=time.monotonic() - begin, machine=machine())


def measured_there(name: str, shard: str, quick: bool, data: str | None) -> Measured:
    """What a shard gives, measured by another process from plain data."""
    return measured(name, shard, Options(quick=quick, data=Path(data) if data else None))


def _chosen(asked: Sequence[str], every: Sequence[str]) -> tuple[str, ...]:
    for shard in asked:
        if shard not in every:
            raise Sim2RealError(f"no shard {shard!r}{nearest(shard, every)}")
    return tuple(shard for shard in every if not asked or shard in asked)


def _quick(
    benchmark: Benchmark, work: Measurement[object], chosen: Sequence[str], request: Request
) -> int:
    here = _present(benchmark, work, chosen, request.options)
    if not here:
        raise Sim2RealError(f"nothing of {benchmark.name!r} can be tried here")
    work.prepare(here, request.options)
    if request.where.executor:
        found = side_by_side(benchmark.name, here, request.options, Budget(), request.where)
        parts = {shard: of_plain(work.kind, one.data) for shard, one in found}
        data = {shard: parts[shard] for shard in here}
    else:
        data = {shard: work.run(shard, request.options) for shard in here}
    show(benchmark.name, work.results(data, request.options), as_json=request.json)
    report("quick: it works; these are no figures")
    return 0


def _present(
    benchmark: Benchmark, work: Measurement[object], shards: Sequence[str], options: Options
) -> list[str]:
    """Shards that can be measured here; of the others it is said what they lack."""
    lacking = {shard: work.lacking(shard, options) for shard in shards}
    for shard, what in lacking.items():
        if what:
            report(f"{benchmark.name}: {shard} is left out: it needs {what}")
    return [shard for shard in shards if not lacking[shard]]


def _measure(
    benchmark: Benchmark,
    work: Measurement[object],
    shards: Sequence[str],
    plan: dict[str, object] | None,
    request: Request,
    *,
    keep: bool,
) -> dict[str, Shard]:
    """Measure shards, several at once where that disturbs nothing; keep each."""
    here = _present(benchmark, work, shards, request.options)
    if here:
        work.prepare(here, request.options)
    code, found = commit(), {}
    budget = Budget(request.minutes, len(here), minutes_of(benchmark, request.results)[0])
    where = replace(request.where, store="") if request.again else request.where
    ways = (
        side_by_side(benchmark.name, here, request.options, budget, where)
        if where.executor or (benchmark.at_once and len(here) > 1)
        else _in_turn(benchmark.name, here, request.options, budget)
    )
    for shard, one in ways:
        found[shard] = Shard(
            bench=benchmark.name,
            shard=shard,
            command=f"python -m benchmarks {benchmark.name} --shards {shard}",
            commit=code,
            machine=one.machine,
            date=time.strftime("%Y-%m-%d", time.gmtime()),
            seconds=round(one.seconds, 1),
            plan=plan,
            data=one.data,
        )
        if keep:
            write_shard(found[shard], request.results)
        report(f"{benchmark.name}: {shard}, {one.seconds:.0f} s; {len(found)} of {len(here)}")
    return found


class Budget:
    """Time that a run may take: a shard that would not end within it is not begun."""

    def __init__(
        self, minutes: float = math.inf, shards: int = 1, whole_minutes: float = 0.0
    ) -> None:
        self._begin, self._minutes = time.monotonic(), minutes
        self._each = whole_minutes / max(1, shards)
        self._begun = False

    def next(self, shard: str) -> bool:
        """Whether there is time for another shard; the first is always begun."""
        spent = (time.monotonic() - self._begin) / 60
        if self._begun and spent + self._each > self._minutes:
            report(f"{spent:.0f} min are over: {shard} and what follows is for another run")
            return False
        self._begun = True
        return True

    def took(self, seconds: float) -> None:
        """A shard took so long: the next may take as long."""
        self._each = max(seconds / 60, self._each if self._begun else 0.0)


def _in_turn(
    name: str, shards: Sequence[str], options: Options, budget: Budget
) -> Iterator[tuple[str, Measured]]:
    for shard in shards:
        if not budget.next(shard):
            return
        found = measured(name, shard, options)
        budget.took(found.seconds)
        yield shard, found


def side_by_side(
    name: str,
    shards: Sequence[str],
    options: Options,
    budget: Budget,
    where: ExecutorOptions = HERE,
) -> Iterator[tuple[str, Measured]]:
    """Shards as they are done: by processes of this machine, or where it is said."""
    code, executor = commit(), where.executor or "local"
    code = f"{code}, tried at {time.time_ns()}" if options.quick else code  # it may be uncommitted
    data = str(options.data) if options.data else None

    def asked() -> Iterator[Part]:
        for shard in shards:
            if not budget.next(shard):
                return
            inputs = {"name": name, "shard": shard, "quick": options.quick, "data": data}
            yield Part.of(measured_there, inputs=inputs, version=code, name=shard)

    def told(event: ShardEvent) -> None:
        if event.kind in ("retried", "failed"):
            report(f"{name}: {event}")

    with (
        open_store(where.store, executor) as store,
        open_executor(executor, workers=where.workers, folder=ROOT) as workers,
    ):
        for done in workers.run(asked(), store, told):
            found = of_plain(Measured, done.result)
            budget.took(found.seconds)
            yield done.name, found


def _unfinished(name: str, missing: Sequence[str], stale: Sequence[str]) -> str:
    parts = []
    if missing:
        more = ", ..." if len(missing) > 3 else ""
        parts.append(f"not measured yet: {', '.join(missing[:3])}{more}")
    if stale:
        parts.append(f"of older code: {len(stale)} of its shards")
    return f"{name}: {'; '.join(parts)}; the figures below are kept when all shards are"
