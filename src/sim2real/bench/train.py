"""`sim2real bench train`: success and time of the built-in tasks, and of a peer on one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sim2real.bench.config import BenchTrain
from sim2real.bench.run import Report, Result, require
from sim2real.errors import Sim2RealError
from sim2real.evaluate.intervals import wilson
from sim2real.evaluate.trials import run_trials
from sim2real.learn import Policy, Run, TrainConfig, Trainer, train
from sim2real.tasks import find_task

_GOAL = 0.95
_CHECK_EPISODES = 200
_CHECK_SEED = 500_000
_MINUTES = {"arm-push": "<= 15"}


def bench_train(config: BenchTrain, report: Report) -> Iterator[Result]:
    """Every measurement of training."""
    if config.peer and "pendulum-swingup" in config.tasks:
        require("stable_baselines3")
        yield from _over_sb3(config, report)
    for name in config.tasks:
        report(f"{name}: training")
        yield from _task(name, config, report)


def _task(name: str, config: BenchTrain, report: Report) -> list[Result]:
    begin = time.perf_counter()
    trained = train(TrainConfig(task=name, seed=config.seed, out=config.runs))
    minutes = (time.perf_counter() - begin) / 60
    if not trained.finished:
        raise KeyboardInterrupt
    policy = Policy.open(trained.run)
    trials = run_trials(
        find_task(name), policy, episodes=config.episodes, seed=1_000_000, source="prior"
    )
    rate = wilson(int(trials.success.sum()), len(trials.success))
    report(f"{name}: {rate} after {minutes:.1f} min")
    return [
        Result(
            name=f"train.success.{name}",
            value=rate.value,
            unit="share",
            target=">= 0.95",
            note=str(rate),
        ),
        Result(
            name=f"train.success_low.{name}",
            value=rate.low,
            unit="share",
            target=">= 0.92",
            note="lower end of the 95 % Wilson interval",
        ),
        Result(
            name=f"train.minutes.{name}",
            value=minutes,
            unit="min",
            target=_MINUTES.get(name, ""),
            note=f"{trained.steps:,} environment steps",
        ),
    ]


def _over_sb3(config: BenchTrain, report: Report) -> list[Result]:
    """Our time to the goal against SB3's, on single environments and on our batched ones."""
    ours, our_steps, done = _our_time(config.runs, config.seed)
    if not done:
        raise Sim2RealError(f"ours did not reach {_GOAL:.0%} in {our_steps:,} steps")
    report(f"time to {_GOAL:.0%}: ours {ours:.0f} s ({our_steps:,} steps); now SB3")
    results = []
    for name, envs, peer in (
        ("train.over_sb3.pendulum", _single_envs(), "gymnasium.make in a DummyVecEnv of 8"),
        ("train.over_sb3_batched.pendulum", _batched_envs(), "gymnasium.make_vec of 64 worlds"),
    ):
        seconds, steps, reached = _sb3_time(envs, config.seed, config.peer_limit * ours)
        state = "" if reached else ", given up: a lower bound"
        note = f"{ours:.0f} s, {our_steps:,} steps against {seconds:.0f} s, {steps:,} steps{state}"
        report(f"{name}: {note}")
        results.append(
            Result(
                name=name,
                value=seconds / ours,
                unit="ratio",
                target=">= 3.0" if name == "train.over_sb3.pendulum" else "",
                peer=f"stable_baselines3.PPO, {peer}",
                note=note,
            )
        )
    return results


def _success(policy: Callable[[Tensor], Tensor]) -> float:
    """Success of a deterministic policy over fresh randomised episodes."""
    trials = run_trials(
        find_task("pendulum-swingup"),
        policy,
        episodes=_CHECK_EPISODES,
        seed=_CHECK_SEED,
        source="prior",
    )
    return float(trials.success.mean())


def _our_time(runs: Path, seed: int) -> tuple[float, int, bool]:
    """Training seconds and steps until a check passes; the checks' own time is not counted."""
    config = TrainConfig(task="pendulum-swingup", seed=seed, out=runs, iterations=600)
    trainer = Trainer(Run.plan(config, learner_threads=torch.get_num_threads()).create())
    while trainer.iteration < trainer.run.training.iterations:
        trainer.iterate()
        recent = list(trainer.outcomes)[-200:]
        if len(recent) >= 50 and np.mean(recent) >= 0.5:  # as for the peer
            trainer.save()
            if _success(Policy(trainer.run)) >= _GOAL:
                return trainer.seconds, trainer.steps, True
    return trainer.seconds, trainer.steps, False


def _single_envs() -> Any:
    """Eight single environments, as SB3's users make them."""
    import gymnasium
    from stable_baselines3.common.vec_env import DummyVecEnv

    name = "sim2real.tasks.gym:sim2real/pendulum-swingup-v0"
    return DummyVecEnv([lambda: gymnasium.make(name)] * 8)


def _batched_envs() -> Any:
    """Our batched worlds behind SB3's own interface, so that only the learners differ."""
    import gymnasium
    from stable_baselines3.common.vec_env import VecEnv

    worlds = gymnasium.make_vec(
        "sim2real.tasks.gym:sim2real/pendulum-swingup-v0", num_envs=64
    ).unwrapped

    class Batched(VecEnv):  # type: ignore[misc]
        """`VectorEnv` in SB3's words."""

        def __init__(self) -> None:
            super().__init__(
                worlds.num_envs, worlds.single_observation_space, worlds.single_action_space
            )

        def reset(self) -> Any:
            return worlds.reset()[0]

        def step_async(self, actions: Any) -> None:
            self._actions = actions

        def step_wait(self) -> Any:
            seen, reward, terminated, truncated, info = worlds.step(self._actions)
            infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
            for k in np.flatnonzero(terminated | truncated):
                infos[k] = {
                    "is_success": bool(info["success"][k]),
                    "terminal_observation": info["final_obs"][k],
                    "TimeLimit.truncated": bool(truncated[k]),
                }
            return seen, reward.astype(np.float32), terminated | truncated, infos

        def close(self) -> None:
            worlds.close()

        def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
            return [None] * self.num_envs

        def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
            raise AttributeError(attr_name)

        def env_method(self, method_name: str, *args: Any, **kwargs: Any) -> list[Any]:
            raise AttributeError(method_name)

        def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
            return [False] * self.num_envs

    return Batched()


def _sb3_time(envs: Any, seed: int, limit_s: float) -> tuple[float, int, bool]:
    """Seconds and steps of Stable-Baselines3's PPO until a check passes, or to the limit.

    The settings are those its zoo uses for such tasks: about 4096 steps an update.
    """
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback

    envs.seed(seed)
    model = PPO(
        "MlpPolicy",
        envs,
        seed=seed,
        n_steps=4096 // envs.num_envs,
        batch_size=256,
        n_epochs=10,
        gamma=0.98,
        gae_lambda=0.95,
        learning_rate=1e-3,
        ent_coef=0.0,
        policy_kwargs={"net_arch": [64, 64]},
        device="cpu",
    )

    class Check(BaseCallback):  # type: ignore[misc]
        """Stops when a check passes or the time is over; its own time is not counted."""

        def __init__(self) -> None:
            super().__init__()
            self.begin = time.perf_counter()
            self.spent = 0.0
            self.reached = False
            self.recent: list[bool] = []

        def _on_step(self) -> bool:
            for info in self.locals["infos"]:
                if "is_success" in info:
                    self.recent = [*self.recent[-199:], bool(info["is_success"])]
            return self.seconds() < limit_s and not self.reached

        def _on_rollout_end(self) -> None:
            if len(self.recent) < 50 or np.mean(self.recent) < 0.5:
                return
            begin = time.perf_counter()
            self.reached = _success(_sb3_policy(model)) >= _GOAL
            self.spent += time.perf_counter() - begin

        def seconds(self) -> float:
            """Training time so far."""
            return time.perf_counter() - self.begin - self.spent

    check = Check()
    model.learn(total_timesteps=100_000_000, callback=check)
    return check.seconds(), int(model.num_timesteps), check.reached


def _sb3_policy(model: Any) -> Callable[[Tensor], Tensor]:
    def act(observations: Tensor) -> Tensor:
        actions, _ = model.predict(observations.numpy(), deterministic=True)
        return torch.from_numpy(np.asarray(actions))

    return act
