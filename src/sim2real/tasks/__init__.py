"""Tasks for a robot, and the environment that runs a task in many worlds.

A `Task` defines what the policy observes, what its actions command, and what success is. `TaskEnv`
runs it in thousands of randomised worlds at once; Gymnasium's interfaces are built on that.

>>> import torch
>>> from sim2real.tasks import TaskEnv, find_task
>>> env = TaskEnv(find_task("pendulum-swingup"), worlds=2, threads=1)
>>> step = env.step(torch.zeros(2, 1))
>>> step.actor.shape, step.terminated.tolist()
(torch.Size([2, 12]), [False, False])
"""

from typing import TYPE_CHECKING

from sim2real.lazy import attach

__all__ = [
    "STARTS_FILE",
    "Camera",
    "Draw",
    "EnvState",
    "EnvStep",
    "Measurements",
    "PrivilegedTerm",
    "Starts",
    "Task",
    "TaskEnv",
    "Term",
    "Training",
    "add_task",
    "check_actor",
    "find_task",
    "task_names",
]

if TYPE_CHECKING:
    from sim2real.tasks.camera import Camera
    from sim2real.tasks.env import EnvState, EnvStep, TaskEnv
    from sim2real.tasks.registry import add_task, find_task, task_names
    from sim2real.tasks.starts import STARTS_FILE, Starts
    from sim2real.tasks.task import (
        Draw,
        Measurements,
        PrivilegedTerm,
        Task,
        Term,
        Training,
        check_actor,
    )
else:
    __getattr__, __dir__ = attach(__name__, __file__)
