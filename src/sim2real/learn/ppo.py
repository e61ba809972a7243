"""rsl_rl's PPO, put together for a task."""

from __future__ import annotations

from typing import Any

from rsl_rl.algorithms import PPO
from rsl_rl.models import MLPModel
from rsl_rl.storage import RolloutStorage
from tensordict import TensorDict

from sim2real.learn.vecenv import RslRlEnv
from sim2real.tasks import Training

_GROUPS = {"actor": ["actor"], "critic": ["critic"]}


def make_actor(observations: TensorDict, actions: int, training: Training) -> MLPModel:
    """A policy network with its normaliser inside."""
    noise = {
        "class_name": "GaussianDistribution",
        "init_std": training.noise,
        "std_type": "log",
    }
    return _network("actor", observations, actions, training, distribution_cfg=noise)


def _network(
    group: str, observations: TensorDict, outputs: int, training: Training, **options: Any
) -> MLPModel:
    return MLPModel(
        observations,
        _GROUPS,
        group,
        outputs,
        hidden_dims=list(training.hidden),
        activation="elu",
        obs_normalization=True,
        **options,
    )


def make_ppo(env: RslRlEnv, training: Training) -> PPO:
    """PPO with fresh networks for the environment."""
    observations = env.get_observations()
    actor = make_actor(observations, env.num_actions, training)
    critic = _network("critic", observations, 1, training)
    storage = RolloutStorage(
        "rl", env.num_envs, training.steps, observations, [env.num_actions], str(env.device)
    )
    return PPO(
        actor,
        critic,
        storage,
        device=str(env.device),
        num_learning_epochs=training.epochs,
        num_mini_batches=training.batches,
        gamma=training.gamma,
        lam=training.lam,
        learning_rate=training.learning_rate,
        desired_kl=training.desired_kl,
        entropy_coef=training.entropy,
    )
