"""A task's environment as rsl_rl expects one."""

from __future__ import annotations

import torch
from rsl_rl.env import VecEnv
from tensordict import TensorDict
from torch import Tensor

from sim2real.tasks import EnvStep, TaskEnv


class RslRlEnv(VecEnv):  # type: ignore[misc]
    """`TaskEnv` behind rsl_rl's `VecEnv`, with observation groups `actor` and `critic`."""

    def __init__(self, env: TaskEnv) -> None:
        self.env = env
        self.num_envs = env.worlds.count
        self.num_actions = len(env.task.actions)
        self.max_episode_length = env.steps
        self.device = env.device
        self.cfg = {"task": env.task.name, "twin": env.twin.version}
        self.last: EnvStep | None = None
        """Result of the last step, with what rsl_rl does not need."""

    @property
    def episode_length_buf(self) -> Tensor:
        """(worlds,) control periods since each episode began."""
        return self.env.age

    @episode_length_buf.setter
    def episode_length_buf(self, value: Tensor) -> None:
        self.env.age.copy_(value)

    def get_observations(self) -> TensorDict:
        """The present observations."""
        groups = {"actor": self.env.actor, "critic": self.env.critic}
        return TensorDict(groups, batch_size=[self.num_envs], device=self.device)

    def step(self, actions: Tensor) -> tuple[TensorDict, Tensor, Tensor, dict[str, Tensor]]:
        """One control period of every world."""
        step = self.last = self.env.step(actions)
        done = step.terminated | step.truncated
        extras = {"time_outs": step.truncated.float()}
        return self.get_observations(), step.reward, done.to(torch.long), extras
