"""A driver that tests kill: `python driver.py EXECUTOR STORE WORK COUNT`; it says its events."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from sim2real.errors import Sim2RealError
from sim2real.scale import Shard, ShardStore, open_executor


def main(executor, store, work, count):
    shards = [
        Shard(work=f"tests.scale.work:{work}", args=(k,), name=f"shard {k}")
        for k in range(int(count))
    ]
    with open_executor(executor, workers=2, ships=["tests"]) as workers:
        for _ in workers.run(shards, ShardStore(store), say):
            pass


def say(event):
    sys.stdout.write(f"{event.kind} {event.shard.key} {event.where}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Sim2RealError as error:
        sys.exit(f"error: {error}")
