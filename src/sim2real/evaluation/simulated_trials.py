"""Simulated trials of a policy, each with its parameters and its outcome."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from sim2real.arrays import Floats
from sim2real.data import Episode
from sim2real.errors import Sim2RealError
from sim2real.evaluation.episode_recorder import EpisodeRecorder
from sim2real.evaluation.evaluation import MOST_WORLDS, SimulatedTrials
from sim2real.randomize import Sampler, drawn
from sim2real.tasks import Task, TaskEnv
from sim2real.twin import Twin


def run_trials(
    task: type[Task],
    policy: Callable[[Tensor], Tensor],
    *,
    episodes: int,
    seed: int,
    source: str,
    rows: Floats | None = None,
    twin: Twin | None = None,
    threads: int = 0,
    remainder: bool = False,
    keep: Callable[[list[Episode]], object] | None = None,
    policy_id: str = "",
    each: int = 1,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> SimulatedTrials:
    """Try a policy in `episodes` worlds for one episode each; `each` consecutive ones share a draw.

    Trial k depends only on the seed, `each` and k, not on how many others there are. `rows` (draws,
    parameters) replace draws of `source`. `keep` gets the trials as episodes of policy `policy_id`.
    """
    if not 1 <= each <= MOST_WORLDS:
        raise Sim2RealError(f"a draw is tried 1 to {MOST_WORLDS} times, not {each}")
    if rows is not None and len(rows) * each < episodes:
        raise ValueError(f"{len(rows)} rows, {each} trials each, are too few for {episodes}")
    parts: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []
    per_seed = MOST_WORLDS // each * each
    rounds = math.ceil(episodes / per_seed)
    make = partial(TaskEnv, task, source=source, threads=threads, remainder=remainder)
    env: TaskEnv | None = None
    for part in range(rounds):
        count = min(per_seed, episodes - part * per_seed)
        env = make(worlds=count, seed=seed + part, twin=twin)
        twin = env.twin
        if rows is not None or each > 1:
            first = part * per_seed // each
            draws = range(first, first + math.ceil(count / each))
            given = (
                drawn(twin, source, count=len(draws), seed=seed + part)
                if rows is None
                else torch.from_numpy(rows[draws.start : draws.stop])
            )
            env.sampler = _Shared(env.sampler, given.to(env.device), each)
            env.reset()
        record = EpisodeRecorder(env) if keep is not None else None
        parts.append(_one_each(env, policy, record, report, part=part, rounds=rounds))
        if keep is not None and record is not None:
            keep(record.episodes(parts[-1][0], success=parts[-1][1], policy=policy_id))
    assert env is not None
    columns = [torch.cat(column).numpy() for column in zip(*parts, strict=True)]
    values, success, reward, diverged = columns
    return SimulatedTrials(
        task=task.name,
        twin=env.twin.version,
        seed=seed,
        names=tuple(parameter.name for parameter in env.twin.parameters),
        values=values,
        success=success,
        reward=reward,
        diverged=diverged,
        per_seed=per_seed,
        each=each,
    )


class _Shared(Sampler):
    """Gives `each` neighbouring worlds the same row: one robot that is tried several times."""

    def __init__(self, sampler: Sampler, rows: Tensor, each: int) -> None:
        self.streams = sampler.streams
        self._rows, self._each = rows, each

    def values(self, p: Tensor, worlds: Tensor, episodes: Tensor) -> Tensor:
        """(n, parameters) values, the same in every episode."""
        return self._rows[worlds // self._each]


def _one_each(
    env: TaskEnv,
    policy: Callable[[Tensor], Tensor],
    record: EpisodeRecorder | None,
    report: Callable[[int, int], None],
    *,
    part: int,
    rounds: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """One episode in every world."""
    count = env.worlds.count
    values = env.worlds.values.clone()
    reward = torch.zeros(count)
    success = torch.zeros(count, dtype=torch.bool)
    diverged = torch.zeros(count, dtype=torch.bool)
    running = torch.ones(count, dtype=torch.bool)
    for period in range(env.steps):
        action = policy(env.actor)
        if record is not None:
            record.add(action, running)
        step = env.step(action)
        reward += torch.where(running, step.reward, 0.0)
        success |= running & step.success
        diverged |= running & step.diverged
        running &= ~(step.terminated | step.truncated)
        if period % 10 == 0 or period == env.steps - 1:
            report(part * env.steps + period + 1, rounds * env.steps)
    return values, success, reward, diverged
