"""A task in its worlds: the environment that training, evaluation and films step through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

import torch
from torch import Tensor

from sim2real.errors import Sim2RealError
from sim2real.params import DrawTable
from sim2real.randomize import Events, Sampler, make_sampler
from sim2real.tasks.starts import Starter, Starts
from sim2real.tasks.task import Draw, Measurements, Task, check_actor
from sim2real.twin import Twin
from sim2real.worlds import Engine, WorldsState, open_worlds


@dataclass(frozen=True, kw_only=True)
class EnvStep:
    """The result of one control period, (worlds, ...) each."""

    actor: Tensor
    """Observations after the period; those of the new episode if one ended."""
    critic: Tensor
    reward: Tensor
    terminated: Tensor
    """Ended early: the world diverged, the task failed, or the action was not a number."""
    diverged: Tensor
    """Terminated because the simulation diverged."""
    truncated: Tensor
    """Ended by the time limit."""
    success: Tensor
    """Whether an episode that ended was a success."""
    ended: Tensor
    """Indices of the worlds that ended."""
    final: Tensor | None
    """Last observations of ended episodes, with rows for all worlds; None if not asked for."""


class EnvState(TypedDict):
    """What a resumed run needs of its environment to continue bit for bit."""

    worlds: WorldsState
    sampler: dict[str, Tensor]
    actor: Tensor
    critic: Tensor


class TaskEnv:
    """Many worlds that repeat one task, with new parameters in each episode.

    An action is clipped to [-1, 1]; a world whose episode ends starts the next one in the same
    call. Everything random is keyed by `seed`. With `starts`, some episodes begin in recorded
    states of a robot.
    """

    def __init__(
        self,
        task: type[Task],
        *,
        worlds: int,
        seed: int = 0,
        source: str = "prior",
        twin: Twin | None = None,
        threads: int = 0,
        engine: Engine | str = "cpu",
        keep_final: bool = False,
        remainder: bool = False,
        starts: Starts | None = None,
    ) -> None:
        self.seed = seed
        self.twin = twin or Twin.load(task.twin)
        self.worlds = open_worlds(
            self.twin,
            worlds,
            engine=engine,
            rate_hz=task.rate_hz,
            seed=seed,
            threads=threads,
            remainder=remainder,
        )
        self.device = self.worlds.device
        self.steps = round(task.episode_s * task.rate_hz)
        """Control periods in an episode."""
        self._hold = round(task.hold_s * task.rate_hz)
        self._keep_final = keep_final
        self.sampler: Sampler = make_sampler(
            self.twin, source, worlds=worlds, seed=seed, device=self.device
        )
        self._remember(task)
        self._starter = Starter(starts, self.worlds) if starts is not None else None
        streams = [*self.sampler.streams, *(f"task/{name}" for name in task.draws)]
        if self._starter is not None:
            streams.append(Starter.stream)
        self._draws = DrawTable(streams, seed=seed, device=self.device)
        try:
            self.task = task(self.worlds)
        except KeyError as error:
            raise Sim2RealError(
                f"twin {self.twin.name!r} does not fit task {task.name!r}: {error.args[0]}"
            ) from None
        self._events = Events(self.worlds, seed=seed)
        self.measurements = Measurements(self.worlds, tuple(task.goals))
        check_actor(self.task, self.measurements)
        frame = self._frame()
        self.worlds.memory["frames"] = frame[:, None, :].repeat(1, task.history, 1)
        self._everyone = torch.arange(worlds, device=self.device)
        self.actor, self.critic = self.reset()
        self.actor_width, self.critic_width = self.actor.shape[1], self.critic.shape[1]

    def _remember(self, task: type[Task]) -> None:
        """Create the tensors that persist from period to period."""
        count, memory = self.worlds.count, self.worlds.memory
        memory["action"] = torch.zeros(count, len(task.actions), device=self.device)
        memory["command"] = torch.zeros(count, self.worlds.model.nu, device=self.device)
        for name, first in (("episode", -1), ("age", 0), ("held", 0)):
            memory[name] = torch.full((count,), first, dtype=torch.int64, device=self.device)
        for goal, width in task.goals.items():
            memory[goal] = torch.zeros(count, width, device=self.device)

    @property
    def episode(self) -> Tensor:
        """(worlds,) number of the episode each world is in."""
        return self.worlds.memory["episode"]

    @property
    def age(self) -> Tensor:
        """(worlds,) control periods since each world's episode began."""
        return self.worlds.memory["age"]

    def reset(self) -> tuple[Tensor, Tensor]:
        """Start a new episode in every world; (actor, critic) observations."""
        self._reset(self._everyone)
        self.actor, self.critic = self.observe(self._everyone)
        return self.actor, self.critic

    def step(self, action: Tensor) -> EnvStep:
        """Run one control period with actions (worlds, actions)."""
        memory, worlds = self.worlds.memory, self.worlds
        not_finite = ~torch.isfinite(action).all(dim=1)
        action = torch.nan_to_num(action).clamp_(-1.0, 1.0)
        memory["action"].copy_(action)
        self._events.apply()
        memory["command"].copy_(self.task.command(action, self.measurements))
        diverged = worlds.step(memory["command"])
        reward = torch.nan_to_num(self.task.reward(action).float(), posinf=0.0, neginf=0.0)
        reward = reward.masked_fill(diverged, 0.0)
        terminated = diverged | not_finite
        failed = self.task.failed()
        if failed is not None:
            terminated = terminated | failed
        memory["age"] += 1
        held = memory["held"]
        held += 1
        held *= self.task.reached()
        truncated = (memory["age"] >= self.steps) & ~terminated
        success = truncated & (held >= self._hold)
        ended = worlds.ids(truncated | terminated)
        final = None
        if len(ended):
            if self._keep_final:
                past = memory["frames"].clone()
                final, _ = self.observe(ended[:0])
                memory["frames"].copy_(past)
            self.sampler.observe(ended, success[ended])
            self._reset(ended)
        self.actor, self.critic = self.observe(ended)
        return EnvStep(
            actor=self.actor,
            critic=self.critic,
            reward=reward,
            terminated=terminated,
            diverged=diverged,
            truncated=truncated,
            success=success,
            ended=ended,
            final=final,
        )

    def state_dict(self) -> EnvState:
        """Everything that a resumed run needs to continue bit for bit."""
        return {
            "worlds": self.worlds.state_dict(),
            "sampler": self.sampler.state_dict(),
            "actor": self.actor.clone(),
            "critic": self.critic.clone(),
        }

    def load_state_dict(self, state: EnvState) -> None:
        """Continue from `state_dict`."""
        self.worlds.load_state_dict(state["worlds"])
        self.sampler.load_state_dict(state["sampler"])
        self.actor, self.critic = (
            state[name].to(self.device, copy=True) for name in ("actor", "critic")
        )

    def _reset(self, ids: Tensor) -> None:
        memory = self.worlds.memory
        memory["episode"][ids] += 1
        episodes = memory["episode"][ids]
        p = self._draws.draw(ids, episodes)
        mine = len(self.sampler.streams)
        self.worlds.set_parameters(self.sampler.values(p[:, :mine], ids, episodes), ids)
        self.worlds.reset(ids)
        for name in ("action", "command", "age", "held"):
            memory[name][ids] = 0
        self._events.begin(ids)
        self.task.reset(ids, Draw(self.task.draws, p[:, mine:]))
        if self._starter is not None:
            self._starter.write(ids, p[:, -1])
        self.worlds.begin(ids)

    def observe(self, started: Tensor) -> tuple[Tensor, Tensor]:
        """(actor, critic) observations; the past of worlds just `started` is their first frame."""
        frame, frames = self._frame(), self.worlds.memory["frames"]
        if self.task.history > 1:
            frames[:, :-1] = frames[:, 1:].clone()
        frames[:, -1] = frame
        if self.task.history > 1 and len(started):
            frames[started] = frame[started][:, None, :]
        actor = frames.flatten(1).clone()
        parts = [actor]
        for term in self.task.critic:
            value = term.read(self.worlds).float()
            parts.append(value if term.scale == 1.0 else value * term.scale)
        return actor, torch.nan_to_num(torch.cat(parts, dim=1))

    def _frame(self) -> Tensor:
        parts = []
        self.measurements.renew()
        for term in self.task.actor:
            value = term.read(self.measurements)
            parts.append(value if term.scale == 1.0 else value * term.scale)
        return torch.cat(parts, dim=1)
