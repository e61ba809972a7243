"""A policy's observation and command, computed by the code of its task."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from sim2real.arrays import Reals, Singles
from sim2real.contract import Contract, TermSpec
from sim2real.policy.protocol import Features, Policy, acted, only_numbers
from sim2real.tasks import Measurements, TaskEnv


def observes_like_its_task(env: TaskEnv, contract: Contract) -> bool:
    """Whether a policy's observation is the one that the task's environment makes."""
    mine = [(term.name, term.scale, term.sources) for term in contract.observations]
    tasks = [(term.name, term.scale, tuple(term.sources)) for term in env.task.actor]
    return contract.history == env.task.history and mine == tasks


class TaskObserver:
    """One period's observation as a contract has it.

    A term that the task has is the task's. Any other is its sources (sensors, goals, 'action',
    'command'), side by side.
    """

    def __init__(self, env: TaskEnv, contract: Contract) -> None:
        self._task = env.task
        known = {term.name: term.read for term in env.task.actor}
        self._terms = [
            (known.get(term.name) or self._sources(term), term.scale)
            for term in contract.observations
        ]

    def frame(self, measurements: Measurements) -> Tensor:
        """(rows, frame) the scaled terms, side by side."""
        measurements.renew()
        return torch.cat([read(measurements) * scale for read, scale in self._terms], dim=1)

    def _sources(self, term: TermSpec) -> Callable[[Measurements], Tensor]:
        goals = self._task.goals

        def read(m: Measurements) -> Tensor:
            parts = []
            for source in term.sources:
                if source in ("action", "command"):
                    parts.append(m.action if source == "action" else m.command)
                else:
                    parts.append(m.goal(source) if source in goals else m.sensor(source))
            return torch.cat(parts, dim=1)

        return read


class TaskRuntime:
    """A policy on a robot, with the interface that its task's code computes."""

    def __init__(self, env: TaskEnv, policy: Policy) -> None:
        """`env` is any environment of the policy's task."""
        only_numbers(policy.contract, "this robot")
        self.contract = policy.contract
        self._env, self._policy = env, policy
        self._observer = TaskObserver(env, policy.contract)

    def start(self) -> None:
        """Begin an attempt."""
        self._policy.start(np.arange(1), 1)

    def observe(self, readings: Reals, goals: Reals, action: Reals, command: Reals) -> Singles:
        """One period's observation (rows, frame)."""
        return _numbers(self._observer.frame(self._given(readings, goals, action, command)))

    def policy(self, observations: Reals) -> Singles:
        """The next action (rows, actions) for the observations of all periods (rows, input)."""
        return self.chunk(observations)[:, 0]

    def chunk(self, observations: Reals) -> Singles:
        """The next actions (rows, chunk, actions)."""
        seen = np.asarray(observations, np.float32)
        rows = np.arange(len(seen))
        return acted(self._policy, Features(contract=self.contract, robots=rows, numbers=seen))

    def act(self, action: Reals, readings: Reals, goals: Reals, command: Reals) -> Singles:
        """Commands (rows, commands) for actions; `command` is the last one that was sent."""
        given = self._given(readings, goals, action, command)
        return _numbers(self._env.task.command(given.action.clamp(-1.0, 1.0), given))

    def rest(self, readings: Reals) -> Singles:
        """Commands (rows, commands) that keep the robot where it is."""
        rows, contract = len(readings), self.contract
        goals = np.zeros((rows, contract.goals_width))
        action = np.zeros((rows, len(contract.actions)))
        command = np.zeros((rows, len(contract.commands)))
        return _numbers(self._env.task.rest(self._given(readings, goals, action, command)))

    @cached_property
    def _goals(self) -> dict[str, int]:
        return dict(self._env.task.goals)

    def _given(self, readings: Reals, goals: Reals, action: Reals, command: Reals) -> Measurements:
        named = {"readings": readings, "action": action, "command": command}
        given = {
            name: torch.from_numpy(np.asarray(value, np.float32)) for name, value in named.items()
        }
        rest = torch.from_numpy(np.asarray(goals, np.float32))
        parts = torch.split(rest, list(self._goals.values()), dim=1) if self._goals else ()
        given |= dict(zip(self._goals, parts, strict=True))
        return Measurements(self._env.worlds, tuple(self._goals), given)


def _numbers(found: Tensor) -> Singles:
    numbers: Singles = found.detach().cpu().numpy().astype(np.float32)
    return numbers
