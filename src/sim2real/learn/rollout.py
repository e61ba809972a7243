"""What a trained policy observes and does in its worlds, for checking graphs and for limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from sim2real.arrays import Floats, Singles
from sim2real.contract import Contract
from sim2real.learn import TrainedPolicy
from sim2real.tasks import TaskEnv


@dataclass(frozen=True, kw_only=True)
class Rollout:
    """What a policy observed and did in its worlds, a row per world and period."""

    observations: Singles
    actions: Singles
    interface: dict[str, Singles]
    """Inputs of the interface graphs, by name."""
    frames: Singles
    commands: Singles
    rates: Singles
    """Change of the command per second."""
    velocities: Singles
    """Measured speed of each commanded joint; the true speed if nothing measures it."""
    accelerations: Singles
    tool: Floats
    """(rows, 3) position of the task's tool [m]; (rows, 0) if it has none."""


def roll_out(
    env: TaskEnv,
    policy: TrainedPolicy,
    count: int,
    *,
    contract: Contract,
    report: Callable[[int, int], None],
) -> Rollout:
    """Let the policy act in its worlds until it has made `count` observations, and keep them."""
    memory, worlds = env.worlds.memory, env.worlds
    site = [worlds.model.site(env.task.tool).id] if env.task.tool else []
    rows: dict[str, list[torch.Tensor]] = {}

    def keep(**values: torch.Tensor) -> None:
        for name, value in values.items():
            rows.setdefault(name, []).append(value.clone())

    whole = 0
    while whole < count:
        observation = env.actor
        action = policy(observation)
        before = _speeds(env, contract)
        keep(
            observations=observation,
            actions=action,
            readings=worlds.measured,
            goals=torch.cat([memory[name] for name in env.task.goals], dim=1)
            if env.task.goals
            else torch.zeros(worlds.count, 0),
            action=memory["action"],
            command=memory["command"],
            frames=memory["frames"][:, -1],
        )
        last = memory["command"].clone()
        step = env.step(action)
        going = torch.ones(worlds.count, dtype=torch.bool)
        going[step.ended] = False
        whole += int(going.sum())
        # After the end of an episode the memory belongs to the next one.
        command = torch.where(going[:, None], memory["command"], float("nan"))
        keep(
            commands=command,
            rates=(command - last).abs() * env.task.rate_hz,
            velocities=_speeds(env, contract),
            accelerations=(_speeds(env, contract) - before) * env.task.rate_hz,
            tool=worlds.derived("site_xpos")[:, site].flatten(1),
        )
        report(min(whole, count), count)
    found = {name: torch.cat(parts).cpu().numpy() for name, parts in rows.items()}
    kept = np.isfinite(found["commands"]).all(axis=1)
    found = {name: values[kept] for name, values in found.items()}
    inputs = {name: found.pop(name) for name in ("readings", "goals", "action", "command")}
    return Rollout(interface=inputs, **found)


def _speeds(env: TaskEnv, contract: Contract) -> torch.Tensor:
    """(worlds, commands) speeds of the commanded joints, as the robot's sensors read them."""
    worlds, columns = env.worlds, contract.columns("jointvel")
    speeds = []
    for joint in (command.joint for command in contract.commands):
        if joint in columns:
            speeds.append(worlds.measured[:, columns[joint]])
        else:
            row = int(worlds.model.joint(joint).dofadr[0])
            speeds.append(worlds.state("qvel")[:, row].float())
    return torch.stack(speeds, dim=1)
