"""`train`: success and time of the built-in tasks, and of a peer on one."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from benchmarks.benchmark import Options, Result, report, side_by_side, unless_installed
from sim2real.errors import Sim2RealError
from sim2real.evaluation.simulated_trials import run_trials
from sim2real.intervals import wilson
from sim2real.learn import Run, TrainConfig, TrainedPolicy, Trainer, train
from sim2real.policy import FunctionPolicy, Policy
from sim2real.tasks import find_task

if TYPE_CHECKING:
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import VecEnv

Infos = dict[str, object]
_CHECK_SEED = 500_000
_MINUTES = {"arm-push": "<= 15"}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Sizes of the measurement."""

    episodes: int = 500
    """Randomised episodes each policy is evaluated over."""
    seed: int = 0
    """Seed of the training runs."""
    peer_limit: float = 6.0
    """The peer is given up after this many times our own time."""
    goal: float = 0.95
    """Success whose time is compared with the peer's."""
    check_episodes: int = 200
    """Fresh episodes that say whether it is reached."""
    iterations: int | None = None
    """Updates of a training; the task's own number by default."""


_FULL, _QUICK = Plan(), Plan(episodes=20, goal=0.0, check_episodes=20, iterations=2)
_TASKS = ("pendulum-swingup", "arm-reach", "arm-push")
_PEER = "over-sb3"


def _shards(options: Options) -> tuple[str, ...]:
    return (_PEER, _TASKS[0]) if options.quick else (_PEER, *_TASKS)


def _lacking(shard: str, options: Options) -> str:
    return unless_installed("stable_baselines3") if shard == _PEER else ""


def _run(shard: str, options: Options) -> list[Result]:
    plan = _QUICK if options.quick else _FULL
    with TemporaryDirectory(prefix="bench-train-") as runs:
        return _over_sb3(Path(runs), plan) if shard == _PEER else _task(shard, Path(runs), plan)


def _task(name: str, runs: Path, plan: Plan) -> list[Result]:
    report(f"{name}: training")
    begin = time.perf_counter()
    config = TrainConfig(task=name, seed=plan.seed, out=runs, iterations=plan.iterations)
    trained = train(config)
    minutes = (time.perf_counter() - begin) / 60
    if not trained.finished:
        raise KeyboardInterrupt
    policy = TrainedPolicy.open(trained.run)
    trials = run_trials(
        find_task(name), policy, episodes=plan.episodes, seed=1_000_000, source="prior"
    )
    rate = wilson(int(trials.success.sum()), len(trials.success))
    report(f"{name}: {rate} after {minutes:.1f} min")
    return [
        Result(
            name=f"train.success.{name}",
            value=rate.value,
            unit="share",
            interval=(rate.low, rate.high),
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


def _over_sb3(runs: Path, plan: Plan) -> list[Result]:
    """Our time to the goal against SB3's, on single environments and on our batched ones."""
    ours, our_steps, done = _our_time(runs, plan)
    if not done:
        raise Sim2RealError(f"ours did not reach {plan.goal:.0%} in {our_steps:,} steps")
    report(f"time to {plan.goal:.0%}: ours {ours:.0f} s ({our_steps:,} steps); now SB3")
    results = []
    for name, envs, peer in (
        ("train.over_sb3.pendulum", _single_envs(), "gymnasium.make in a DummyVecEnv of 8"),
        ("train.over_sb3_batched.pendulum", _batched_envs(), "gymnasium.make_vec of 64 worlds"),
    ):
        seconds, steps, reached = _sb3_time(envs, plan, plan.peer_limit * ours)
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


def _success(policy: Policy, plan: Plan) -> float:
    """Success of a deterministic policy over fresh randomised episodes."""
    trials = run_trials(
        find_task("pendulum-swingup"),
        policy,
        episodes=plan.check_episodes,
        seed=_CHECK_SEED,
        source="prior",
    )
    return float(trials.success.mean())


def _our_time(runs: Path, plan: Plan) -> tuple[float, int, bool]:
    """Training seconds and steps until a check passes; the checks' own time is not counted."""
    config = TrainConfig(task="pendulum-swingup", seed=plan.seed, out=runs, iterations=600)
    trainer = Trainer(Run.plan(config, learner_threads=torch.get_num_threads()).create())
    while trainer.iteration < trainer.run.training.iterations:
        trainer.iterate()
        recent = list(trainer.outcomes)[-200:]
        if len(recent) >= 50 and np.mean(recent) >= min(0.5, plan.goal):  # as for the peer
            trainer.save()
            if _success(TrainedPolicy(trainer.run), plan) >= plan.goal:
                return trainer.seconds, trainer.steps, True
    return trainer.seconds, trainer.steps, False


def _single_envs() -> VecEnv:
    """Eight single environments, as SB3's users make them."""
    import gymnasium
    from stable_baselines3.common.vec_env import DummyVecEnv

    name = "sim2real.tasks.gym:sim2real/pendulum-swingup-v0"
    return DummyVecEnv([lambda: gymnasium.make(name)] * 8)


def _batched_envs() -> VecEnv:
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

        def reset(self) -> np.ndarray:
            seen: np.ndarray = worlds.reset()[0]
            return seen

        def step_async(self, actions: np.ndarray) -> None:
            self._actions = actions

        def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[Infos]]:
            seen, reward, terminated, truncated, info = worlds.step(self._actions)
            infos: list[Infos] = [{} for _ in range(self.num_envs)]
            for k in np.flatnonzero(terminated | truncated):
                infos[k] = {
                    "is_success": bool(info["success"][k]),
                    "terminal_observation": info["final_obs"][k],
                    "TimeLimit.truncated": bool(truncated[k]),
                }
            return seen, reward.astype(np.float32), terminated | truncated, infos

        def close(self) -> None:
            worlds.close()

        def get_attr(self, attr_name: str, indices: object = None) -> list[object]:
            return [None] * self.num_envs

        def set_attr(self, attr_name: str, value: object, indices: object = None) -> None:
            raise AttributeError(attr_name)

        def env_method(self, method_name: str, *args: object, **kwargs: object) -> list[object]:
            raise AttributeError(method_name)

        def env_is_wrapped(self, wrapper_class: object, indices: object = None) -> list[bool]:
            return [False] * self.num_envs

    return Batched()


def _sb3_time(envs: VecEnv, plan: Plan, limit_s: float) -> tuple[float, int, bool]:
    """Seconds and steps of Stable-Baselines3's PPO until a check passes, or to the limit.

    The settings are those its zoo uses for such tasks: about 4096 steps an update.
    """
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback

    envs.seed(plan.seed)
    model = PPO(
        "MlpPolicy",
        envs,
        seed=plan.seed,
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
            if len(self.recent) < 50 or np.mean(self.recent) < min(0.5, plan.goal):
                return
            begin = time.perf_counter()
            self.reached = _success(_sb3_policy(model), plan) >= plan.goal
            self.spent += time.perf_counter() - begin

        def seconds(self) -> float:
            """Training time so far."""
            return time.perf_counter() - self.begin - self.spent

    check = Check()
    model.learn(total_timesteps=100_000_000, callback=check)
    return check.seconds(), int(model.num_timesteps), check.reached


def _sb3_policy(model: PPO) -> FunctionPolicy:
    def act(observations: Tensor) -> Tensor:
        actions, _ = model.predict(observations.numpy(), deterministic=True)
        return torch.from_numpy(np.asarray(actions))

    return FunctionPolicy(find_task("pendulum-swingup"), act)


MEASUREMENT = side_by_side(_shards, _run, plan=_FULL, lacking=_lacking)
