"""Do kept figures hold for the code of today? One shard, measured again, speaks for the rest."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.benchmark import Benchmark, Measurement, Options, Result, report
from benchmarks.catalogue import BENCHMARKS, named
from benchmarks.kept import (
    Checked,
    Shard,
    Whole,
    confirmed,
    kept_shards,
    made_whole,
    outdated,
    parsed,
    plan_of,
    wholes_of,
    write_shard,
    write_whole,
)
from benchmarks.machine import RESULTS, changed, commit, uncommitted
from benchmarks.run import measured
from sim2real.plain import of_plain

_TIMES = ("s", "min", "ms")
"""Units that say as much of the machine as of the code: they are compared by their target only."""


def check(names: Sequence[str], options: Options, *, results: Path = RESULTS) -> int:
    """Check some benchmarks, all by default; 1 where something has to be measured again."""
    chosen = [named(name) for name in names] or list(BENCHMARKS)
    wrong = [benchmark.name for benchmark in chosen if not _holds(benchmark, options, results)]
    if wrong:
        report(f"to be measured again: {', '.join(wrong)}")
    return 1 if wrong else 0


def _holds(benchmark: Benchmark, options: Options, folder: Path) -> bool:
    name = benchmark.name
    work = benchmark.load()
    plan = plan_of(work)
    kept = kept_shards(name, work.shards(options), plan, folder)
    wholes = wholes_of(name, folder)
    if not kept:
        return _holds_whole(benchmark, wholes)
    stale = {shard: outdated(benchmark, one) for shard, one in kept.items()}
    stale = {shard: modules for shard, modules in stale.items() if modules}
    if not stale:
        missing = [shard for shard in work.shards(options) if shard not in kept]
        said = f"not measured yet: {', '.join(missing)}" if missing else "unchanged since measured"
        report(f"{name}: {said}")
        return not missing
    because = ", ".join(sorted({module for modules in stale.values() for module in modules}))
    canary = _canary(work, kept, stale, options)
    if canary is None:
        report(f"{name}: {because} changed, and no shard of it can be measured here")
        return False
    report(f"{name}: {because} changed: {canary} again, {kept[canary].seconds or 0:.0f} s")
    work.prepare([canary], options)
    begin = time.strftime("%Y-%m-%d", time.gmtime())
    found = measured(name, canary, options)
    before = work.results(parsed(work, {canary: kept[canary]}), options)
    after = work.results({canary: of_plain(work.kind, found.data)}, options)
    off = differences(benchmark, before, after)
    for said in off:
        report(f"{name}: {said}")
    report(f"{name}: {'the rest has to be measured again' if off else 'holds'}")
    if not uncommitted():
        again = Shard(
            bench=name, shard=canary, command=f"python -m benchmarks check {name}",
            commit=commit(), machine=found.machine, date=begin, seconds=round(found.seconds, 1),
            plan=plan, data=found.data,
        )  # fmt: skip
        _keep(benchmark, work, kept, again, options, folder, holds=not off)
    return not off


def _holds_whole(benchmark: Benchmark, wholes: Sequence[Whole]) -> bool:
    """Figures without shards are compared with nothing: they hold while the code is the same."""
    if not wholes:
        report(f"{benchmark.name}: not measured yet")
        return False
    modules = (*benchmark.modules, benchmark.code)
    found = [changed(modules, whole.commit.removesuffix("-dirty")) for whole in wholes]
    if all(modules == () for modules in found):
        report(f"{benchmark.name}: unchanged since it was measured")
        return True
    because = ", ".join(dict.fromkeys(m for modules in found for m in modules or ("its commit",)))
    report(f"{benchmark.name}: {because} changed, and no shard is kept to compare with")
    return False


def _canary(
    work: Measurement[object],
    kept: Mapping[str, Shard],
    stale: Mapping[str, tuple[str, ...]],
    options: Options,
) -> str | None:
    """The shard that takes least, of those that can be measured here."""
    here = [shard for shard in stale if not work.lacking(shard, options)]
    return min(here, key=lambda shard: kept[shard].seconds or float("inf"), default=None)


def differences(
    benchmark: Benchmark, before: Sequence[Result], after: Sequence[Result]
) -> list[str]:
    """Figures that left the tolerance, or a target that they met, each in a line."""
    found = []
    again = {result.name: result for result in after}
    for old in before:
        new = again.get(old.name)
        if new is None:
            found.append(f"{old.name} is not measured any more")
        elif old.met and new.met is False:
            found.append(f"{old.name} was {old.value:.4g}, is {new.value:.4g}: {new.target}")
        elif old.unit not in _TIMES and not benchmark.tolerance.holds(
            old.name, old.value, new.value
        ):
            found.append(f"{old.name} was {old.value:.4g}, is {new.value:.4g}")
    return found


def _keep(
    benchmark: Benchmark,
    work: Measurement[object],
    kept: dict[str, Shard],
    again: Shard,
    options: Options,
    folder: Path,
    *,
    holds: bool,
) -> None:
    """Write down that a canary speaks for all shards, or keep it as the first of a new run."""
    if not holds:
        write_shard(again, folder)
        return
    checked = Checked(commit=again.commit, date=again.date, canary=again.shard)
    kept = {shard: confirmed(one, checked) for shard, one in kept.items()}
    for one in kept.values():
        write_shard(one, folder)
    if len(kept) == len(work.shards(options)):
        results = work.results(parsed(work, kept), options)
        write_whole(made_whole(benchmark, kept, results), folder)
