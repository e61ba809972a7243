"""A policy that acts in all worlds of an environment at once."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from sim2real.arrays import Bools, Ints, Singles
from sim2real.errors import Sim2RealError
from sim2real.policy.observed import TaskObserver, observes_like_its_task
from sim2real.policy.protocol import Features, Policy, acted, only_numbers, refuse_absurd
from sim2real.tasks import EnvStep, TaskEnv


class DrivenWorlds:
    """The worlds of an environment, driven by a policy from the state that they are in.

    A policy is asked for a world when the world has used up the actions it was given last, or has
    begun an episode. What is not a number, or has another width than the contract says, is a
    `Sim2RealError`.
    """

    def __init__(self, env: TaskEnv, policy: Policy) -> None:
        self.env, self._policy = env, policy
        contract, count = policy.contract, env.worlds.count
        only_numbers(contract, f"task {env.task.name!r}")
        self._observer: TaskObserver | None = None
        if not observes_like_its_task(env, contract):
            self._observer = TaskObserver(env, contract)
            self._frames = self._frame()[:, None].repeat(1, contract.history, 1)
        self._everyone: Ints = np.arange(count)
        self._due: Bools = np.ones(count, dtype=bool)
        self._at: Ints = np.zeros(count, dtype=np.int64)
        self._chunk: Singles = np.zeros((count, 1, len(contract.actions)), np.float32)
        policy.start(self._everyone, count)

    def step(self) -> EnvStep:
        """One control period with the policy's actions."""
        return self.advance(self.actions())

    def actions(self) -> Tensor:
        """(worlds, actions) what the policy does next."""
        if self._due.any():
            self._ask(self._everyone[self._due])
        return torch.from_numpy(self._chunk[self._everyone, self._at]).to(self.env.device)

    def advance(self, actions: Tensor) -> EnvStep:
        """One control period with these `actions`, those of the policy."""
        step = self.env.step(actions)
        self._at += 1
        if self._observer is not None:
            self._remember(self._frame(), step.ended)
        ended = step.ended.cpu().numpy()
        if len(ended):
            self._policy.start(ended, len(self._everyone))
        self._due = self._at >= self._chunk.shape[1]
        self._due[ended] = True
        return step

    def _ask(self, rows: Ints) -> None:
        seen = self.env.actor if self._observer is None else self._frames.flatten(1)
        numbers = seen.cpu().numpy()
        numbers = numbers if len(rows) == len(self._everyone) else numbers[rows]
        features = Features(contract=self._policy.contract, robots=rows, numbers=numbers)
        found = acted(self._policy, features)
        refuse_absurd(self._policy, features, found)
        if found.shape[1] != self._chunk.shape[1]:
            if len(rows) < len(self._everyone):
                raise Sim2RealError(
                    f"policy {self._policy.id} gave {found.shape[1]} actions at once, and"
                    f" {self._chunk.shape[1]} before: chunks must be equally long"
                )
            self._chunk = np.zeros((len(rows), *found.shape[1:]), np.float32)
        self._chunk[rows], self._at[rows] = found, 0

    def _frame(self) -> Tensor:
        assert self._observer is not None
        return self._observer.frame(self.env.measurements)

    def _remember(self, frame: Tensor, started: Tensor) -> None:
        self._frames = torch.cat([self._frames[:, 1:], frame[:, None]], dim=1)
        self._frames[started] = frame[started][:, None]
