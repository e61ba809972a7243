"""Tasks as Gymnasium environments: `sim2real/<task>-v0` for `make` and `make_vec`.

By Gymnasium's convention, importing this module registers them; so does the id
`sim2real.tasks.gym:sim2real/<task>-v0`, which imports it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AutoresetMode

from sim2real.arrays import Array, Bools, Floats, Pixels, Reals, Singles
from sim2real.errors import Sim2RealError
from sim2real.tasks.env import TaskEnv
from sim2real.tasks.registry import find_task, task_names
from sim2real.twin import Twin

if TYPE_CHECKING:
    from sim2real.tasks.camera import Camera

NAMESPACE = "sim2real"


def register() -> None:
    """Register with Gymnasium every task that is not registered yet."""
    for name in task_names():
        if f"{NAMESPACE}/{name}-v0" in gymnasium.registry:
            continue
        gymnasium.register(
            id=f"{NAMESPACE}/{name}-v0",
            entry_point="sim2real.tasks.gym:SingleEnv",
            vector_entry_point="sim2real.tasks.gym:VectorEnv",
            kwargs={"task": name},
        )


class VectorEnv(gymnasium.vector.VectorEnv):  # type: ignore[misc]
    """Many worlds of a task; episodes end and begin in the same step."""

    metadata: dict[str, object] = {  # noqa: RUF012
        "autoreset_mode": AutoresetMode.SAME_STEP,
        "render_modes": ["rgb_array"],
    }

    def __init__(
        self,
        task: str,
        num_envs: int = 1,
        *,
        source: str = "prior",
        twin: str | None = None,
        seed: int = 0,
        threads: int = 0,
        render_mode: str | None = None,
    ) -> None:
        self.render_mode = render_mode
        self.num_envs = num_envs
        self._source, self._threads = source, threads
        self._twin = Twin.load(twin) if twin is not None else None
        self._task = find_task(task)
        self._camera: Camera | None = None
        self.env = self._make(seed)
        self.single_observation_space = gymnasium.spaces.Box(
            -np.inf, np.inf, (self.env.actor_width,), np.float32
        )
        self.single_action_space = gymnasium.spaces.Box(
            -1.0, 1.0, (len(self._task.actions),), np.float32
        )
        batch = gymnasium.vector.utils.batch_space
        self.observation_space = batch(self.single_observation_space, num_envs)
        self.action_space = batch(self.single_action_space, num_envs)
        rate = round(self._task.rate_hz)
        self.metadata = {**type(self).metadata, "render_fps": rate}

    def reset(
        self, *, seed: int | None = None, options: dict[str, object] | None = None
    ) -> tuple[Singles, dict[str, object]]:
        """Start new episodes everywhere; with a seed, in a new environment made from it."""
        if seed is not None:
            self.close_extras()
            self.env = self._make(int(seed))
        else:
            self.env.reset()
        return self.env.actor.numpy().copy(), {}

    def step(self, actions: Reals) -> tuple[Singles, Floats, Bools, Bools, dict[str, Array]]:
        """One control period of every world."""
        step = self.env.step(torch.as_tensor(np.asarray(actions, dtype=np.float32)))
        done = (step.terminated | step.truncated).numpy()
        info: dict[str, Array] = {"success": step.success.numpy(), "_success": done}
        if step.final is not None:
            final = np.empty(self.num_envs, dtype=object)
            for world in step.ended.tolist():
                final[world] = step.final[world].numpy()
            info["final_obs"], info["_final_obs"] = final, done
        return (
            step.actor.numpy().copy(),
            step.reward.double().numpy(),
            step.terminated.numpy(),
            step.truncated.numpy(),
            info,
        )

    def render(self) -> tuple[Pixels, ...] | None:
        """A picture of each world, with `render_mode="rgb_array"`."""
        if self.render_mode != "rgb_array":
            return None
        from sim2real.tasks.camera import Camera

        if self._camera is None:
            self._camera = Camera(self.env)
        return tuple(self._camera.picture(world) for world in range(self.num_envs))

    def close_extras(self, **kwargs: object) -> None:
        """Release the graphics context."""
        if self._camera is not None:
            self._camera.close()
            self._camera = None

    def _make(self, seed: int) -> TaskEnv:
        return TaskEnv(
            self._task,
            worlds=self.num_envs,
            seed=seed,
            source=self._source,
            twin=self._twin,
            threads=self._threads,
            keep_final=True,
        )


class SingleEnv(gymnasium.Env[Singles, Reals]):  # type: ignore[misc]
    """One world of a task as an ordinary environment."""

    metadata: dict[str, object] = {"render_modes": ["rgb_array"], "render_fps": 50}  # noqa: RUF012

    def __init__(
        self,
        task: str,
        *,
        source: str = "prior",
        twin: str | None = None,
        render_mode: str | None = None,
    ) -> None:
        if render_mode not in (None, "rgb_array"):
            raise Sim2RealError(f"render_mode must be 'rgb_array' or None, not {render_mode!r}")
        self.render_mode = render_mode
        self._worlds = VectorEnv(
            task, 1, source=source, twin=twin, threads=1, render_mode=render_mode
        )
        self.observation_space = self._worlds.single_observation_space
        self.action_space = self._worlds.single_action_space
        self.metadata = {**type(self).metadata, "render_fps": self._worlds.metadata["render_fps"]}
        self._ended = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, object] | None = None
    ) -> tuple[Singles, dict[str, object]]:
        """Start a new episode; with a seed, the one of that seed."""
        super().reset(seed=seed)
        if seed is None and self._ended:
            # The worlds began the next episode when the last one ended.
            observation = self._worlds.env.actor.numpy().copy()
        else:
            observation, _ = self._worlds.reset(seed=seed)
        self._ended = False
        return observation[0], {}

    def step(self, action: Reals) -> tuple[Singles, float, bool, bool, dict[str, object]]:
        """One control period."""
        observation, reward, terminated, truncated, info = self._worlds.step(action[None])
        self._ended = bool(terminated[0] or truncated[0])
        seen = info["final_obs"][0] if self._ended else observation[0]
        extra: dict[str, object] = {"is_success": bool(info["success"][0])} if self._ended else {}
        return seen, float(reward[0]), bool(terminated[0]), bool(truncated[0]), extra

    def render(self) -> Pixels | None:
        """A picture of the world, with `render_mode="rgb_array"`."""
        pictures = self._worlds.render()
        return pictures[0] if pictures else None

    def close(self) -> None:
        """Release the graphics context."""
        self._worlds.close_extras()


register()
