"""Work that is many and independent: on the cores of this machine, or on a Ray cluster.

A `Shard` is a call of a function with plain data. An `Executor` does many of them side by side, and
a `ShardStore` keeps what each gives under a hash of what was asked for. Workers write there
themselves, so whoever is killed, worker or driver, loses only what had not been done.

>>> import tempfile
>>> from sim2real.scale import Shard, ShardStore, open_executor
>>> shards = [Shard(work="math:comb", args=(5, k)) for k in range(3)]
>>> with tempfile.TemporaryDirectory() as folder, open_executor("local", workers=1) as executor:
...     done = list(executor.run(shards, ShardStore(folder)))
...     again = list(executor.run(shards, ShardStore(folder)))
>>> [one.result for one in done], {one.kept for one in again}
([1, 5, 10], {True})
"""

from typing import TYPE_CHECKING

from sim2real.lazy import attach

__all__ = [
    "Executor",
    "ExecutorOptions",
    "FailedShardsError",
    "Shard",
    "ShardEvent",
    "ShardFailure",
    "ShardResult",
    "ShardStore",
    "all_of",
    "each",
    "open_executor",
    "open_store",
]

if TYPE_CHECKING:
    from sim2real.scale.executor import Executor, FailedShardsError, ShardEvent, ShardFailure
    from sim2real.scale.executor_options import ExecutorOptions
    from sim2real.scale.many_calls import all_of, each, open_store
    from sim2real.scale.named_executor import open_executor
    from sim2real.scale.shard import Shard
    from sim2real.scale.shard_store import ShardResult, ShardStore
else:
    __getattr__, __dir__ = attach(__name__, __file__)
