"""What randomisation, sensors, observations and rewards cost."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import cycle
from typing import TypeVar

import numpy as np
import torch
from mujoco.batch import Batch

from benchmarks.benchmark import Options, Result, report, side_by_side, unless_installed
from benchmarks.sim.ant import Ant, ant_twin
from sim2real.tasks import Task, TaskEnv, find_task
from sim2real.twin import Twin

Action = TypeVar("Action")
_MEMORY = """
import re, torch
from sim2real.tasks import TaskEnv, find_task
env = TaskEnv(find_task("pendulum-swingup"), worlds=4096)
for _ in range(50):
    env.step(torch.zeros(4096, 1))
# Not getrusage: its peak is inherited from the process that started this one.
print(int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 2**20)
"""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Sizes of the measurement."""

    worlds: int = 1024
    """Worlds of the speed measurements."""
    seconds: float = 8.0
    """Time for each measured part [s]."""


_FULL, _QUICK = Plan(), Plan(worlds=64, seconds=0.2)
_OVER_RAW = {"pendulum": "pendulum-swingup", "arm_push": "arm-push"}


def _shards(options: Options) -> tuple[str, ...]:
    return (*_OVER_RAW, "ant", "memory", "help")


def _lacking(shard: str, options: Options) -> str:
    return unless_installed("envpool") if shard == "ant" else ""


def _run(shard: str, options: Options) -> list[Result]:
    plan = _QUICK if options.quick else _FULL
    if shard in _OVER_RAW:
        return [_over_raw(shard, plan)]
    if shard == "ant":
        return _ant(plan)
    return [_memory() if shard == "memory" else _help()]


def _over_raw(label: str, plan: Plan) -> Result:
    name = _OVER_RAW[label]
    report(f"{name}: environment against bare Batch.step")
    ratio, env_rate, raw_rate = _env_over_raw(find_task(name), plan)
    return Result(
        name=f"sim.env_over_raw.{label}",
        value=ratio,
        unit="ratio",
        target=">= 0.80",
        peer="mujoco.batch.Batch.step on the same model, commands and substeps",
        note=f"{env_rate:,.0f} against {raw_rate:,.0f} steps/s, {plan.worlds} worlds",
    )


def _memory() -> Result:
    report("memory of 4096 pendulum worlds")
    peak = subprocess.run(
        [sys.executable, "-c", _MEMORY], check=True, capture_output=True, text=True
    )
    return Result(
        name="sim.memory_gib.pendulum_4096",
        value=float(peak.stdout),
        unit="GiB",
        target="<= 1.0",
        note="peak of the whole process",
    )


def _help() -> Result:
    return Result(
        name="sim.help_s", value=_help_seconds(), unit="s", target="<= 0.5", note="median of five"
    )


def _env_over_raw(task: type[Task], plan: Plan) -> tuple[float, float, float]:
    """(ratio, environment rate, raw rate), measured in turns so that both see the same machine.

    The raw side gets the same starts and commands, on the nominal model with the same history
    buffers, and nothing else.
    """
    env = TaskEnv(task, worlds=plan.worlds)
    count = env.worlds.count
    # Episodes end at all times, as they do in training, not all at once.
    env.age.copy_(torch.randint(0, env.steps, (count,), generator=torch.manual_seed(0)))
    raw = Batch(env.twin.compile().model, count, 0)
    raw.state[:] = env.worlds.state_dict()["state"].numpy()
    ctrl = raw.bind("ctrl")
    substeps = round(env.worlds.period_s / env.worlds.model.opt.timestep)
    generator = torch.manual_seed(1)
    ours: list[float] = []
    bare: list[float] = []
    round_steps = 20
    warm = False
    while sum(ours) + sum(bare) < 2 * plan.seconds or len(ours) < 3:
        commands = []
        actions = torch.rand(round_steps, count, len(task.actions), generator=generator) * 2 - 1
        begin = time.perf_counter()
        with torch.inference_mode():  # as in training
            for action in actions:
                env.step(action)
                commands.append(env.worlds.state("ctrl").clone())
        middle = time.perf_counter()
        start = time.perf_counter()
        for command in commands:
            ctrl[:] = command.numpy()
            raw.step(nstep=substeps)
        end = time.perf_counter()
        if warm:  # the first round warms up
            ours.append(middle - begin)
            bare.append(end - start)
        warm = True
        raw.state[:] = env.worlds.state_dict()["state"].numpy()
    # Medians: on a shared machine, a round that was disturbed says nothing.
    ratio = float(np.median(np.array(bare) / np.array(ours)))
    steps = round_steps * count
    return ratio, steps / float(np.median(ours)), steps / float(np.median(bare))


def _ant(plan: Plan) -> list[Result]:
    with ant_twin() as twin:
        rate = _ant_rate(twin, plan)
        bare = _bare_ant_rate(twin, plan)
    report(f"ant: ours {rate:,.0f} steps/s; now EnvPool and Gymnasium")
    pool = max(_envpool_rate(count, plan) for count in (64, 256, 1024))
    processes = max(_gymnasium_rate(count, plan) for count in (2, 4, 8))
    with ant_twin() as twin:  # once more after the peers: the machine's speed wanders
        rate = (rate + _ant_rate(twin, plan)) / 2
    return [
        Result(
            name="sim.over_gymnasium.ant",
            value=rate / processes,
            unit="ratio",
            target=">= 5.0",
            peer="gymnasium.vector.AsyncVectorEnv, Ant-v5, best of 2, 4, 8 processes",
            note=f"{rate:,.0f} against {processes:,.0f} steps/s",
        ),
        Result(
            name="sim.bare_over_gymnasium.ant",
            value=bare / processes,
            unit="ratio",
            peer="the same peer",
            note=f"what bare Batch.step alone reaches: {bare:,.0f} steps/s",
        ),
        Result(
            name="sim.over_envpool.ant",
            value=rate / pool,
            unit="ratio",
            target=">= 1.0",
            peer="envpool Ant-v5, best of 64, 256, 1024 environments",
            note=f"{rate:,.0f} against {pool:,.0f} steps/s",
        ),
    ]


def _ant_rate(twin: Twin, plan: Plan) -> float:
    env = TaskEnv(Ant, worlds=plan.worlds, twin=twin)
    generator = torch.manual_seed(0)
    actions = torch.rand(16, plan.worlds, 8, generator=generator) * 2 - 1
    advance = _stepper(env.step, actions, plan.worlds)
    return _rate(advance, plan.seconds)


def _bare_ant_rate(twin: Twin, plan: Plan) -> float:
    """Batch.step alone, with random commands: no randomisation, sensors, resets or rewards."""
    batch = Batch(twin.compile().model, plan.worlds, 0)
    batch.reset()
    ctrl = batch.bind("ctrl")
    actions = np.random.default_rng(0).uniform(-1, 1, (16, *ctrl.shape))
    step = 0

    def advance() -> int:
        nonlocal step
        ctrl[:] = actions[step % 16]
        batch.step(nstep=5)
        step += 1
        return plan.worlds

    return _rate(advance, plan.seconds / 2)


def _envpool_rate(count: int, plan: Plan) -> float:
    import envpool

    env = envpool.make(
        "Ant-v5", env_type="gymnasium", num_envs=count, num_threads=len(os.sched_getaffinity(0))
    )
    env.reset()
    actions = np.random.default_rng(0).uniform(-1, 1, (16, count, 8))
    advance = _stepper(env.step, actions, count)
    rate = _rate(advance, plan.seconds / 2)
    env.close()
    return rate


def _gymnasium_rate(count: int, plan: Plan) -> float:
    import gymnasium

    env = gymnasium.make_vec("Ant-v5", num_envs=count, vectorization_mode="async")
    env.reset(seed=0)
    actions = np.random.default_rng(0).uniform(-1, 1, (16, count, 8)).astype(np.float32)
    advance = _stepper(env.step, actions, count)
    rate = _rate(advance, plan.seconds / 2)
    env.close()
    return rate


def _stepper(
    step: Callable[[Action], object], actions: Iterable[Action], count: int
) -> Callable[[], int]:
    """A function that steps `count` environments with the next of the actions, over and over."""
    upcoming = cycle(actions)

    def advance() -> int:
        step(next(upcoming))
        return count

    return advance


def _rate(advance: Callable[[], int], seconds: float) -> float:
    """Environment steps a second of a function that does some, after a warm-up."""
    for _ in range(3):
        advance()
    begin = time.perf_counter()
    done = 0
    while time.perf_counter() - begin < seconds:
        done += advance()
    return done / (time.perf_counter() - begin)


def _help_seconds() -> float:
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "sim2real.cli", "--help"], check=True, capture_output=True
        )
        times.append(time.perf_counter() - begin)
    return sorted(times)[2]


MEASUREMENT = side_by_side(_shards, _run, plan=_FULL, lacking=_lacking)
