"""Tasks by name: built-in tasks, and those of other packages and scripts.

A package adds a task with an entry point in the group `sim2real.tasks`, whose name is the task's
name and whose value is its `Task` class; a script adds one with `add_task`, for as long as it runs.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from sim2real.errors import Sim2RealError, nearest

if TYPE_CHECKING:
    from sim2real.tasks.task import Task

GROUP = "sim2real.tasks"
_BUILT_IN = {
    "pendulum-swingup": "sim2real.tasks.pendulum:PendulumSwingup",
    "arm-reach": "sim2real.tasks.arm.reach:ArmReach",
    "arm-push": "sim2real.tasks.arm.push:ArmPush",
}
ADDED: dict[str, type[Task]] = {}
"""Tasks of scripts, by name."""


def task_names() -> list[str]:
    """Names of all tasks."""
    return sorted({*_BUILT_IN, *ADDED, *(point.name for point in entry_points(group=GROUP))})


def add_task(task: type[Task]) -> None:
    """Let a task be found by its name in this process; it replaces one of the same name."""
    if task.name in _BUILT_IN:
        raise Sim2RealError(f"a task named {task.name!r} is built in: give yours another name")
    ADDED[task.name] = task


def find_task(name: str) -> type[Task]:
    """The task of that name; the error for an unknown name suggests the nearest."""
    if name in _BUILT_IN:
        module, _, attribute = _BUILT_IN[name].partition(":")
        found: type[Task] = getattr(import_module(module), attribute)
        return found
    if name in ADDED:
        return ADDED[name]
    for point in entry_points(group=GROUP):
        if point.name == name:
            loaded: type[Task] = point.load()
            return loaded
    raise Sim2RealError(f"unknown task {name!r}{nearest(name, task_names())}")
