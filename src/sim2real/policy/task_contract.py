"""The contract of a task and its twin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim2real.contract import (
    ActionSpec,
    Contract,
    GoalSpec,
    TermSpec,
)
from sim2real.twin import command_spec, sensor_spec

if TYPE_CHECKING:
    from sim2real.tasks import TaskEnv


def make_contract(env: TaskEnv) -> Contract:
    """What a robot must agree to, to be driven by a policy of this task."""
    task, twin, model = env.task, env.twin, env.worlds.model
    effects = twin.compile().effects
    widths = [term.read(env.measurements).shape[1] for term in task.actor]
    return Contract(
        task=task.name,
        robot=twin.name,
        twin_version=twin.version,
        rate_hz=task.rate_hz,
        history=task.history,
        episode_s=task.episode_s,
        sensors=tuple(sensor_spec(twin, model, effects, k) for k in range(model.nsensor)),
        goals=tuple(GoalSpec(name=name, width=width) for name, width in task.goals.items()),
        observations=tuple(
            TermSpec(
                name=term.name,
                unit=term.unit,
                width=width,
                scale=term.scale,
                sources=term.sources,
            )
            for term, width in zip(task.actor, widths, strict=True)
        ),
        actions=tuple(ActionSpec(name=name) for name in task.actions),
        commands=tuple(command_spec(model, effects, k) for k in range(model.nu)),
    )
