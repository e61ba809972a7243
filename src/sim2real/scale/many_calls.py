"""The results of one function for many inputs."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from sim2real.errors import Sim2RealError
from sim2real.scale.executor import Executor, ShardEvent
from sim2real.scale.named_executor import is_remote, open_executor, opened_already
from sim2real.scale.shard import Shard
from sim2real.scale.shard_store import ShardResult, ShardStore


def each(
    function: Callable[..., object],
    inputs: Iterable[Mapping[str, object]],
    *,
    executor: Executor | str = "local",
    workers: int = 0,
    store: ShardStore | Path | str | None = None,
    version: str = "1",
    report: Callable[[ShardEvent], None] = lambda event: None,
) -> list[object]:
    """What a function gives for each of some inputs, in their order.

    The function stands in a module, and takes and gives plain data. Results are kept in `store`
    under `version`, so that what is done is not done again; without a store nothing is kept.
    """
    shards = [Shard.of(function, inputs=one, version=version) for one in inputs]
    found = all_of(shards, executor=executor, workers=workers, store=store, report=report)
    return [one.result for one in found]


def all_of(
    shards: Sequence[Shard],
    *,
    executor: Executor | str = "local",
    workers: int = 0,
    store: ShardStore | Path | str | None = None,
    report: Callable[[ShardEvent], None] = lambda event: None,
) -> list[ShardResult]:
    """The results of shards, in their order."""
    with open_store(store, executor) as place, _opened(shards, executor, workers) as at_work:
        done = {one.key: one for one in at_work.run(shards, place, report)}
    return [done[shard.key] for shard in shards]


@contextmanager
def _opened(
    shards: Sequence[Shard], executor: Executor | str, workers: int = 0
) -> Iterator[Executor]:
    """The executor; one that is named is opened with the modules of the shards, and closed."""
    if (opened := opened_already(executor)) is not None:
        yield opened
        return
    modules = {shard.work.partition(":")[0].partition(".")[0] for shard in shards} - {"sim2real"}
    with open_executor(str(executor), workers=workers, ships=sorted(modules)) as found:
        yield found


@contextmanager
def open_store(
    store: ShardStore | Path | str | None, executor: Executor | str = "local"
) -> Iterator[ShardStore]:
    """The store; without one a temporary folder, if workers of the executor can see that."""
    remote = is_remote(executor)
    if isinstance(store, ShardStore):
        yield store
    elif store:
        yield ShardStore(store)
    elif remote:
        raise Sim2RealError(
            "a cluster needs a store that all its machines see: a shared folder or s3://…"
        )
    else:
        with tempfile.TemporaryDirectory(prefix="sim2real-store-") as folder:
            yield ShardStore(folder)
