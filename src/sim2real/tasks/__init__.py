"""What a robot should do: tasks, and the environment that runs one in many worlds."""

from sim2real.tasks.env import Step, TaskEnv
from sim2real.tasks.registry import add_task, find_task, task_names
from sim2real.tasks.task import (
    Draw,
    Measurements,
    PrivilegedTerm,
    Task,
    Term,
    Training,
    check_actor,
)

__all__ = [
    "Draw",
    "Measurements",
    "PrivilegedTerm",
    "Step",
    "Task",
    "TaskEnv",
    "Term",
    "Training",
    "add_task",
    "check_actor",
    "find_task",
    "task_names",
]
