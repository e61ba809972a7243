"""A driver to be killed: `python -m benchmarks.scale.driver` and its arguments.

It says on standard output what happens, a line of JSON each.
"""

from __future__ import annotations

import json
import sys

from benchmarks.machine import ROOT
from benchmarks.scale.chunk import chunks
from sim2real.scale import ShardEvent, ShardStore, open_executor

_RETRIES = 1000


def main(name: str, store: str, shards: str, episodes: str, workers: str) -> None:
    """Do the shards that are not done yet."""
    _say({"kind": "started"})
    with open_executor(name, workers=int(workers), retries=_RETRIES, folder=ROOT) as executor:
        for _ in executor.run(chunks(int(shards), int(episodes)), ShardStore(store), _told):
            pass


def _told(event: ShardEvent) -> None:
    _say({"kind": event.kind, "key": event.shard.key, "where": event.where})


def _say(what: dict[str, str]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
