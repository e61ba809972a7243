"""A bundle's network, and a plain function of observations, as policies."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from sim2real.arrays import Ints, Reals
from sim2real.contract import Contract
from sim2real.policy.bundle import Bundle
from sim2real.policy.protocol import Features, PolicyAbilities
from sim2real.policy.runtime import Runtime
from sim2real.policy.task_contract import make_contract
from sim2real.tasks import Task, TaskEnv


class BundlePolicy:
    """The policy in a bundle."""

    abilities: ClassVar = PolicyAbilities(
        kind="a bundle", repeatable=True, interface=True, limits=True, provenance=True
    )

    def __init__(self, bundle: Bundle) -> None:
        self.id = bundle.id[:32]
        self.contract = bundle.contract
        self.runtime = Runtime(bundle)

    def start(self, robots: Ints, of: int) -> None:
        """It has no memory."""

    def act(self, features: Features) -> Reals:
        """(rows, actions) for the whole observation."""
        return self.runtime.policy(features.numbers)


class FunctionPolicy:
    """A function from observations (rows, numbers) to actions (rows, actions), for a task.

    >>> from sim2real.tasks import find_task
    >>> idle = FunctionPolicy(find_task("pendulum-swingup"), lambda seen: seen[:, :1] * 0)
    >>> [feature.name for feature in idle.contract.features]
    ['direction', 'speed', 'last_action']
    """

    abilities: ClassVar = PolicyAbilities(kind="a function", repeatable=True)

    def __init__(
        self, task: type[Task], function: Callable[[Tensor], Tensor], *, policy_id: str = "function"
    ) -> None:
        self.id = policy_id
        self._task, self._function = task, function

    @cached_property
    def contract(self) -> Contract:
        """That of the task, with its own twin."""
        return make_contract(TaskEnv(self._task, worlds=1, threads=1))

    def start(self, robots: Ints, of: int) -> None:
        """It has no memory."""

    def act(self, features: Features) -> Reals:
        """What the function gives for the whole observation."""
        found: Reals = self._function(torch.from_numpy(features.numbers)).numpy()
        return found
