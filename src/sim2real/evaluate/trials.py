"""Trials: attempts at a task, each with its parameters and its outcome."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from sim2real.data import Episode
from sim2real.evaluate.record import Record
from sim2real.tasks import Task, TaskEnv
from sim2real.twin import Twin

_MOST_WORLDS = 1024


@dataclass(frozen=True)
class Trials:
    """Many attempts with their draws: row k of each array is trial k."""

    task: str
    twin: str
    """Version of the twin."""
    seed: int
    names: tuple[str, ...]
    """Parameters, in the order of the columns of `values`."""
    values: np.ndarray
    """(trials, parameters) the draw of each trial."""
    success: np.ndarray
    """(trials,) bool."""
    reward: np.ndarray
    """(trials,) sum of rewards."""
    diverged: np.ndarray
    """(trials,) bool: the simulation broke down; a failure."""


def run_trials(
    task: type[Task],
    policy: Callable[[Tensor], Tensor],
    *,
    episodes: int,
    seed: int,
    source: str,
    twin: Twin | None = None,
    threads: int = 0,
    remainder: bool = False,
    keep: Callable[[list[Episode]], object] | None = None,
    policy_id: str = "",
    report: Callable[[int, int], None] = lambda done, of: None,
) -> Trials:
    """Try a policy in `episodes` worlds, each for one episode with parameters of its own.

    Trial k depends on the seed and k alone, not on how many others there are. `keep` is given
    what happened as episodes, made by the policy `policy_id`.
    """
    parts: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []
    rounds = math.ceil(episodes / _MOST_WORLDS)
    env: TaskEnv | None = None
    for part in range(rounds):
        count = min(_MOST_WORLDS, episodes - part * _MOST_WORLDS)
        env = TaskEnv(
            task,
            worlds=count,
            seed=seed + part,
            source=source,
            twin=twin,
            threads=threads,
            remainder=remainder,
        )
        twin = env.twin
        record = Record(env) if keep is not None else None
        parts.append(_one_each(env, policy, record, partial(_report_part, report, part, rounds)))
        if keep is not None and record is not None:
            keep(record.episodes(parts[-1][0], success=parts[-1][1], policy=policy_id))
    assert env is not None
    values, success, reward, diverged = (
        torch.cat(column).numpy() for column in zip(*parts, strict=True)
    )
    return Trials(
        task=task.name,
        twin=env.twin.version,
        seed=seed,
        names=tuple(parameter.name for parameter in env.twin.parameters),
        values=values,
        success=success,
        reward=reward,
        diverged=diverged,
    )


def _report_part(
    report: Callable[[int, int], None], part: int, rounds: int, done: int, of: int
) -> None:
    report(part * of + done, rounds * of)


def _one_each(
    env: TaskEnv,
    policy: Callable[[Tensor], Tensor],
    record: Record | None,
    report: Callable[[int, int], None],
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
            report(period + 1, env.steps)
    return values, success, reward, diverged
