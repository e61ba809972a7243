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
from sim2real.evaluation.evaluation import MAX_WORLDS, SimulatedTrials
from sim2real.policy import DrivenWorlds, Policy
from sim2real.randomize import Sampler, drawn
from sim2real.tasks import Task, TaskEnv
from sim2real.twin import Twin
from sim2real.worlds import Engine


def run_trials(
    task: type[Task],
    policy: Policy,
    *,
    episodes: int,
    seed: int,
    source: str,
    rows: Floats | None = None,
    twin: Twin | None = None,
    threads: int = 0,
    engine: Engine | str = "cpu",
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
    per_seed = trials_a_seed(each)
    twin = twin or Twin.load(task.twin)
    parts: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []
    rounds = math.ceil(episodes / per_seed)
    make = partial(
        TaskEnv, task, source=source, threads=threads, engine=engine, remainder=remainder
    )
    env: TaskEnv | None = None
    for part in range(rounds):
        count = min(per_seed, episodes - part * per_seed)
        env = make(worlds=count, seed=seed + part, twin=twin)
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
    columns = [torch.cat(column).cpu().numpy() for column in zip(*parts, strict=True)]
    values, success, reward, diverged = columns
    return SimulatedTrials(
        task=task.name,
        twin=twin.version,
        seed=seed,
        names=tuple(parameter.name for parameter in twin.parameters),
        values=values,
        success=success,
        reward=reward,
        diverged=diverged,
        per_seed=per_seed,
        each=each,
    )


def trials_a_seed(each: int) -> int:
    """How many trials have one seed: they run side by side, and those after them have the next."""
    if not 1 <= each <= MAX_WORLDS:
        raise Sim2RealError(f"--each must be from 1 to {MAX_WORLDS}, not {each}")
    return MAX_WORLDS // each * each


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
    policy: Policy,
    record: EpisodeRecorder | None,
    report: Callable[[int, int], None],
    *,
    part: int,
    rounds: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """One episode in every world."""
    count = env.worlds.count
    values = env.worlds.values.clone()
    reward = torch.zeros(count, device=env.device)
    success = torch.zeros(count, dtype=torch.bool, device=env.device)
    diverged, running = success.clone(), ~success
    driven = DrivenWorlds(env, policy)
    for period in range(env.steps):
        action = driven.actions()
        if record is not None:
            record.add(action, running)
        step = driven.advance(action)
        reward += torch.where(running, step.reward, 0.0)
        success |= running & step.success
        diverged |= running & step.diverged
        running &= ~(step.terminated | step.truncated)
        if period % 10 == 0 or period == env.steps - 1:
            report(part * env.steps + period + 1, rounds * env.steps)
    return values, success, reward, diverged
