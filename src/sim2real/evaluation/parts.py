"""An evaluation in parts that know nothing of each other, done by an executor."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from sim2real.errors import Sim2RealError
from sim2real.evaluation.evaluation import SimulatedTrials, save_worlds
from sim2real.evaluation.opened import OpenedPolicy, open_policy
from sim2real.evaluation.simulated_trials import run_trials, trials_a_seed
from sim2real.evaluation.trial_files import read_worlds
from sim2real.scale import Shard, ShardEvent, ShardResult, ShardStore, all_of, open_store
from sim2real.twin import Twin

_FILE = "trials.npz"
_COLUMNS = ("values", "success", "reward", "diverged")


@dataclass(frozen=True, kw_only=True)
class Elsewhere:
    """Where parts of an evaluation are done and kept."""

    executor: str
    workers: int
    store: str

    def trials(
        self,
        opened: OpenedPolicy,
        *,
        twin: Twin,
        episodes: int,
        seed: int,
        each: int,
        report: Callable[[int, int], None],
    ) -> SimulatedTrials:
        """The trials that `run_trials` makes, bit for bit: parts begin where its seeds do."""
        bundle = _bundle(opened)
        with (
            open_store(self.store, self.executor) as keep,
            TemporaryDirectory(prefix="sim2real-evaluate-") as made,
        ):
            files = {"policy": bundle, "twin": twin.save(Path(made) / "twin").folder}
            shards = parts_of(opened, files, episodes=episodes, seed=seed, each=each)

            def told(event: ShardEvent) -> None:
                report(event.ended, len(shards))

            done = all_of(
                shards, executor=self.executor, workers=self.workers, store=keep, report=told
            )
            parts = [_read(keep, one, Path(made) / one.key) for one in done]
        return _joined(parts, seed)


def parts_of(
    opened: OpenedPolicy, files: Mapping[str, Path], *, episodes: int, seed: int, each: int
) -> list[Shard]:
    """A shard for each seed that `run_trials` would use."""
    per_seed = trials_a_seed(each)
    drawn = Path(opened.source)
    given: dict[str, object] = {"each": each, "remainder": opened.remainder}
    if drawn.is_file():
        files = {**files, "params": drawn}
    else:
        given["params"] = opened.source
    return [
        Shard.of(
            evaluate_part,
            inputs={
                **given,
                "episodes": min(per_seed, episodes - part * per_seed),
                "seed": seed + part,
            },
            files=files,
            name=f"part {part + 1}",
        )
        for part in range(math.ceil(episodes / per_seed))
    ]


def evaluate_part(
    policy: str, twin: str, folder: Path, *,
    params: str, episodes: int, seed: int, each: int, remainder: bool,
) -> dict[str, object]:  # fmt: skip
    """Trials of one seed, in a file in a folder; how many succeeded, and a hash of all."""
    opened = open_policy(policy, params=str(params), remainder=remainder)
    trials = run_trials(
        opened.task,
        opened.policy,
        episodes=episodes,
        seed=seed,
        source=opened.source,
        twin=Twin.load(twin),
        threads=1,
        remainder=opened.remainder,
        each=each,
    )
    save_worlds(folder / _FILE, trials, policy=opened.id)
    digest = hashlib.sha256(b"".join(getattr(trials, name).tobytes() for name in _COLUMNS))
    return {"successes": int(trials.success.sum()), "of": episodes, "sha256": digest.hexdigest()}


def _bundle(opened: OpenedPolicy) -> Path:
    """Folder of the bundle, which is all that a policy needs on another machine."""
    if opened.own_runtime is not None and opened.place is not None:
        return opened.place
    raise Sim2RealError("parts are done with a bundle: make one of the run with `sim2real export`")


def _read(store: ShardStore, done: ShardResult, into: Path) -> SimulatedTrials:
    trials, _ = read_worlds(store.fetch(done, into) / _FILE)
    return trials


def _joined(parts: Sequence[SimulatedTrials], seed: int) -> SimulatedTrials:
    return replace(
        parts[0],
        seed=seed,
        per_seed=trials_a_seed(parts[0].each),
        values=np.concatenate([part.values for part in parts]),
        success=np.concatenate([part.success for part in parts]),
        reward=np.concatenate([part.reward for part in parts]),
        diverged=np.concatenate([part.diverged for part in parts]),
    )
