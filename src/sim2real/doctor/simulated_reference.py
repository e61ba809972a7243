"""What is normal: the policy in worlds of its own twin, drawn wider than usual.

The doctor derives its limits from here, so that none is set by hand for a task.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from sim2real.arrays import Floats
from sim2real.doctor.graph_interface import GraphInterface
from sim2real.policy import DrivenWorlds
from sim2real.randomize import Sampler, make_sampler
from sim2real.tasks import TaskEnv
from sim2real.twin import Twin

_SEED = 7_000_000
_EXCITED_PERIODS = 120
"""Most periods with jumping commands."""
_JUMP_PROBABILITY = 0.12
"""Probability that a command jumps in a period."""


@dataclass(frozen=True, kw_only=True)
class ReferenceEpisodes:
    """Several episodes side by side, nan after the end of each."""

    readings: Floats
    """(episodes, periods, numbers)"""
    command: Floats
    """(episodes, periods, commands)"""
    action: Floats
    """(episodes, periods, actions)"""


class _Wider(Sampler):
    """A sampler's draws, farther from their middle; delays that nobody has identified are anywhere
    in their bounds.

    Delays of a bus are rarely known, and a delay alone is no interface fault.
    """

    def __init__(self, inner: Sampler, twin: Twin, *, worlds: int, wider: float) -> None:
        """Draws are `wider` times as far from the twin's best guess."""
        self._inner, self._wider = inner, wider
        self.streams = inner.streams
        known = twin.posterior.names if twin.posterior is not None else ()
        self._middle = torch.from_numpy(twin.best_guess())
        bounds = torch.tensor([p.bounds for p in twin.parameters], dtype=torch.float64)
        self._low, self._high = bounds.reshape(-1, 2).unbind(1)
        delays = torch.tensor(
            [p.name.endswith("/delay") and p.name not in known for p in twin.parameters]
        )
        self._late = delays & (self._high - self._low).isfinite()
        rng = torch.Generator().manual_seed(_SEED)
        self._shares = torch.rand(worlds, len(twin.parameters), generator=rng)

    def values(self, p: Tensor, worlds: Tensor, episodes: Tensor) -> Tensor:
        drawn = self._inner.values(p, worlds, episodes)
        wider = self._middle + self._wider * (drawn - self._middle)
        anywhere = self._low + self._shares[worlds] * (self._high - self._low)
        wider = torch.where(self._late, anywhere, wider)
        # Never below a fifth of the usual value: every robot has mass and friction.
        least = torch.where(self._middle > 0, 0.2 * self._middle, self._low)
        return torch.minimum(torch.maximum(wider, torch.maximum(self._low, least)), self._high)


class _Halves(Sampler):
    """One sampler for the worlds with even numbers, and another for the others."""

    def __init__(self, even: Sampler, odd: Sampler) -> None:
        self._even, self._odd = even, odd
        self.streams = even.streams

    def values(self, p: Tensor, worlds: Tensor, episodes: Tensor) -> Tensor:
        even = (worlds % 2 == 0)[:, None]
        one, other = (half.values(p, worlds, episodes) for half in (self._even, self._odd))
        return torch.where(even, one, other)


def _sampler(twin: Twin, *, worlds: int, wider: float) -> Sampler:
    """Draws for the reference: half of them from what the twin knows, if it was identified.

    A robot that is slow in all of its drives is like no world of the prior, and exactly like its
    identified twin: that it is late is no fault then.
    """
    unknown = replace(twin, posterior=None)
    prior = make_sampler(unknown, "prior", worlds=worlds, seed=_SEED)
    found = _Wider(prior, unknown, worlds=worlds, wider=wider)
    if twin.posterior is None:
        return found
    posterior = make_sampler(twin, "posterior", worlds=worlds, seed=_SEED)
    return _Halves(found, _Wider(posterior, twin, worlds=worlds, wider=wider))


def simulated(
    interface: GraphInterface, *, worlds: int, wider: float
) -> tuple[ReferenceEpisodes, ReferenceEpisodes]:
    """Episodes of the policy in worlds of its twin, and of jumping commands.

    Parameters are drawn `wider` times as wide as the twin's prior, and in half of the worlds as its
    posterior, if it was identified. The second kind shows how the
    robot responds to other commands than a healthy policy's. A policy of a task that is not
    installed here is a `Sim2RealError`.
    """
    opened = interface.policy
    twin = opened.twin
    env = TaskEnv(opened.task, worlds=worlds, seed=_SEED, source="prior", twin=twin)
    env.sampler = _sampler(twin, worlds=worlds, wider=wider)
    env.reset()
    running = torch.ones(worlds, dtype=torch.bool)
    rows: list[list[Floats]] = []
    driven = DrivenWorlds(env, opened.policy)
    for _ in range(env.steps):
        action = driven.actions().clamp(-1.0, 1.0)
        values = (env.worlds.measured, env.task.command(action, env.measurements), action)
        kept = [torch.where(running[:, None], v.double(), float("nan")) for v in values]
        rows.append([value.numpy() for value in kept])
        step = driven.advance(action)
        running[step.ended] = False
    readings, command, sent = (np.stack(column, axis=1) for column in zip(*rows, strict=True))
    return ReferenceEpisodes(readings=readings, command=command, action=sent), _excited(env)


def _excited(env: TaskEnv) -> ReferenceEpisodes:
    """Commands that jump to a new place a few times a second, anywhere in their range."""
    env.reset()
    worlds, rng = env.worlds, np.random.default_rng(_SEED)
    low, high = worlds.model.actuator_ctrlrange.T
    wide = np.where(high > low, high - low, 2.0)
    centre = np.where(high > low, 0.5 * (low + high), 0.0)
    size = (worlds.count, worlds.model.nu)
    command = worlds.memory["command"].double().numpy().copy()
    readings, commands = [], []
    for _ in range(min(env.steps, _EXCITED_PERIODS)):
        readings.append(worlds.measured.double().numpy().copy())
        jumps = rng.random(size) < _JUMP_PROBABILITY
        target = centre + wide * rng.uniform(-0.4, 0.4, size)
        near = command + wide * rng.normal(0.0, 0.05, size)
        command = np.where(jumps, np.where(rng.random(size) < 0.5, target, near), command)
        commands.append(command)
        worlds.step(torch.from_numpy(command).float())
    sent = np.stack(commands, axis=1)
    return ReferenceEpisodes(
        readings=np.stack(readings, axis=1), command=sent, action=np.full_like(sent, np.nan)
    )
