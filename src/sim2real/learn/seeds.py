"""Several training runs that differ in their seed alone, side by side."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sim2real.errors import Sim2RealError, options_as
from sim2real.files import read_json
from sim2real.learn.learn_configs import TrainConfig
from sim2real.learn.policy import TrainedPolicy
from sim2real.learn.trainer import RESULT_FILE, TrainResult, train
from sim2real.scale import Executor, Shard, ShardEvent, ShardResult, ShardStore, all_of, open_store
from sim2real.tasks import find_task
from sim2real.twin import Twin

_OWN = ("task", "seed", "twin", "out", "resume", "json")
_FILES = ("begin", "starts")
_RUN = "run"


def train_seeds(
    task: str,
    seeds: Iterable[int],
    *,
    executor: Executor | str = "local",
    workers: int = 0,
    store: ShardStore | Path | str | None = None,
    out: Path | str = Path("runs/seeds"),
    report: Callable[[ShardEvent], None] = lambda event: None,
    **options: Any,  # fields of TrainConfig
) -> tuple[TrainResult, ...]:
    """Train a policy for a task with each of some seeds: the runs, in the order of the seeds.

    A run is a folder `out/TASK/seed-N`. `options` are those of `train`; each run has one thread, so
    that it is the same wherever it is trained. With a `store`, what is trained is not trained
    again, and on disk a run whose process was killed goes on from its last checkpoint.
    """
    unknown = [name for name in options if name in set(_OWN) - {"twin"}]
    if unknown:
        raise Sim2RealError(f"{unknown[0]!r} is not for several runs at once")
    config = options_as(TrainConfig, **options)
    with open_store(store, executor) as keep, TemporaryDirectory(prefix="sim2real-") as made:
        twin = Twin.load(config.twin or find_task(task).twin).save(Path(made) / "twin")
        shards = [_shard(task, seed, config, twin.folder) for seed in dict.fromkeys(seeds)]
        done = all_of(shards, executor=executor, workers=workers, store=keep, report=report)
        return tuple(_result(keep, one, Path(out) / task) for one in done)


def train_one(folder: Path, *, task: str, seed: int, **options: Any) -> dict[str, object]:
    """Train in a folder, or go on with what is there: how it ended, without times."""
    unfinished = sorted(folder.glob(f"{task}/*/checkpoint-*.pt"))
    if unfinished:
        result = train(TrainConfig(resume=unfinished[-1].parent))
    else:
        for left in folder.iterdir():
            shutil.rmtree(left)
        twin = Twin.load(options.pop("twin"))  # as a value: the run keeps a copy of its own
        result = train(task, twin=twin, seed=seed, threads=1, out=folder, **options)
    if not result.finished:
        raise KeyboardInterrupt
    run = result.run.replace(folder / _RUN)
    found = {name: value for name, value in result.to_dict().items() if name != "seconds"}
    return {**found, "run": _RUN, "seed": seed, "policy": TrainedPolicy.open(run).digest}


def _shard(task: str, seed: int, config: TrainConfig, twin: Path) -> Shard:
    inputs = {
        part.name: getattr(config, part.name)
        for part in fields(config)
        if part.name not in (*_OWN, *_FILES, "threads")
    }
    files = {name: path for name in _FILES if (path := getattr(config, name)) is not None}
    if Path(config.source).is_file():
        files["source"] = Path(inputs.pop("source"))
    return Shard.of(
        train_one,
        inputs={"task": task, "seed": seed, **inputs},
        files={**files, "twin": twin},
        name=f"{task} seed {seed}",
    )


def _result(store: ShardStore, done: ShardResult, out: Path) -> TrainResult:
    """The run as it is kept, in a folder of its own: a copy, unless there is one already."""
    place = out / f"seed-{done.result['seed']}"
    run = place / done.result["run"]
    if not place.exists():
        store.fetch(done, place)
    elif (
        not (run / RESULT_FILE).is_file() or TrainedPolicy.open(run).digest != done.result["policy"]
    ):
        raise Sim2RealError(f"{place} holds another run; choose another folder")
    told = {name: value for name, value in done.result.items() if name not in ("policy", "seed")}
    seconds = read_json(run / RESULT_FILE)["seconds"]
    return TrainResult.from_dict({**told, "run": str(run), "seconds": seconds})
