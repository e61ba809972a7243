"""The same shards by processes and by workers of Ray; what a shard costs beside its work."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.benchmark import report
from benchmarks.machine import ROOT
from benchmarks.scale.chunk import Plan, chunks, nothing
from sim2real.scale import Executor, Shard, ShardStore, open_executor

_WARM = 1_000_000
"""Where the seeds of shards begin that are not timed."""


@dataclass(frozen=True, kw_only=True)
class Timed:
    """One executor over the same shards."""

    start_s: float
    """Until its workers had loaded all they need."""
    work_s: float
    """All shards."""
    shard_s: float
    """Mean time of a shard, as workers measured it."""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a shard costs beside its work."""

    driver_s: float
    """Time of the driver's processor."""
    apart_s: float
    """Time between results, with two workers."""
    file_bytes: float
    """Size of a result."""
    put_s: float
    """Time to keep a result on disk."""
    read_s: float
    """Time to read it back."""


@dataclass(frozen=True, kw_only=True)
class Compared:
    """What was measured."""

    local: tuple[Timed, ...]
    ray: tuple[Timed, ...]
    costs: dict[str, Cost]
    chunk_bytes: float
    same: bool
    """Whether both gave the same results."""


def compare(plan: Plan) -> Compared:
    """Run the same shards in turn by one and the other, the first one changing places."""
    times: dict[str, list[Timed]] = {"local": [], "ray": []}
    digests: set[tuple[str, ...]] = set()
    sizes: list[float] = []
    for pair in range(plan.pairs):
        for name in ("local", "ray") if pair % 2 == 0 else ("ray", "local"):
            with _stored() as folder:
                times[name].append(_timed(name, plan, folder, digests))
                sizes.append(_size_of(folder))
            report(f"pair {pair + 1} of {plan.pairs}: {name} {times[name][-1].work_s:.1f} s")
    return Compared(
        local=tuple(times["local"]),
        ray=tuple(times["ray"]),
        costs={name: _cost(name, plan) for name in plan.kinds},
        chunk_bytes=sum(sizes) / len(sizes),
        same=len(digests) == 1,
    )


def _timed(name: str, plan: Plan, folder: Path, digests: set[tuple[str, ...]]) -> Timed:
    begin = time.perf_counter()
    with _opened(name, plan) as executor:
        warm = chunks(2 * plan.workers, plan.episodes, first=_WARM)
        list(executor.run(warm, ShardStore(folder / "warm")))
        started = time.perf_counter()
        shards = chunks(plan.shards, plan.episodes)
        done = list(executor.run(shards, ShardStore(folder / "store")))
        ended = time.perf_counter()
    digests.add(tuple(sorted(one.digest for one in done)))
    return Timed(
        start_s=started - begin,
        work_s=ended - started,
        shard_s=sum(one.seconds for one in done) / len(done),
    )


def _cost(name: str, plan: Plan) -> Cost:
    """Cost of shards that do nothing."""
    count = plan.nothings
    shards = [Shard.of(nothing, args=(k,)) for k in range(count + 2 * plan.workers)]
    with _stored() as folder, _opened(name, plan) as executor:
        store = ShardStore(folder / "store")
        list(executor.run(shards[count:], store))
        begin, spent = time.perf_counter(), time.process_time()
        done = list(executor.run(shards[:count], store))
        apart, driver = time.perf_counter() - begin, time.process_time() - spent
        begin = time.perf_counter()
        for one in done:
            store.get(one.key)
        read = time.perf_counter() - begin
        other = ShardStore(folder / "other")
        begin = time.perf_counter()
        for shard, one in zip(shards, done, strict=False):
            other.put(shard, one.result, seconds=one.seconds, where=one.where)
        put = time.perf_counter() - begin
        size = _size_of(folder)
    return Cost(
        driver_s=driver / count,
        apart_s=apart / count,
        file_bytes=size,
        put_s=put / count,
        read_s=read / count,
    )


@contextmanager
def _opened(name: str, plan: Plan) -> Iterator[Executor]:
    with open_executor(name, workers=plan.workers, folder=ROOT) as executor:
        yield executor


@contextmanager
def _stored() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="bench-scale-") as made:
        yield Path(made)


def _size_of(folder: Path) -> float:
    sizes = [file.stat().st_size for file in (folder / "store" / "results").rglob("*.json")]
    return sum(sizes) / len(sizes)
