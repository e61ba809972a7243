"""The work that is measured: some episodes of the example policy, in worlds of their own."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.machine import ROOT
from sim2real.evaluation import evaluate
from sim2real.scale import Shard

BUNDLE = ROOT / "examples" / "bundles" / "pendulum-swingup"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Sizes of a run."""

    workers: int = 2
    shards: int = 32
    """Shards of a run."""
    episodes: int = 64
    """Episodes of a shard: a second or two."""
    pairs: int = 6
    """Runs of each executor that are compared."""
    nothings: int = 2000
    """Shards without work, to measure what one costs beside its work."""
    kills: int = 50
    driver_kills: int = 10
    kinds: tuple[str, ...] = ("local", "ray")
    """Executors that are killed, and of which it is measured what a shard costs beside its work."""
    seed: int = 0


FULL = Plan()
QUICK = Plan(
    workers=1, shards=2, episodes=2, pairs=1, nothings=20, kills=1, driver_kills=1, kinds=("local",)
)  # fmt: skip


def chunks(count: int, episodes: int, first: int = 0) -> Iterator[Shard]:
    """Shards that differ in their seed."""
    for k in range(first, first + count):
        yield Shard.of(
            tried,
            inputs={"episodes": episodes, "seed": 1_000_000 + k},
            files={"policy": BUNDLE},
            name=f"chunk {k}",
        )


def tried(policy: str, episodes: int, seed: int) -> dict[str, object]:
    """What came out, with a hash of every draw and outcome."""
    found = evaluate(policy, episodes=episodes, seed=seed, threads=1)
    trials = found.trials
    parts = (trials.values, trials.success, trials.reward, trials.diverged)
    digest = hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()
    return {"sha256": digest, **found.to_dict()}


def nothing(number: int) -> int:
    """No work at all."""
    return number
