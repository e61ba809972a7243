"""Filming worlds without a screen."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import av
import mujoco
import numpy as np
from torch import Tensor

from sim2real.errors import Sim2RealError
from sim2real.files import atomic_path
from sim2real.tasks import TaskEnv

_PACKAGES = "libegl1 libegl-mesa0 libgl1 libgl1-mesa-dri"


class Camera:
    """Renders one world of an environment to (height, width, 3) uint8 pictures."""

    def __init__(self, env: TaskEnv, *, width: int = 640, height: int = 480) -> None:
        self._env = env
        self._model, _ = env.worlds.world(0)
        self._renderer = _renderer(self._model, width=width, height=height)

    def picture(self, world: int = 0) -> np.ndarray:
        """What the task's camera sees of a world, with the world's own parameters."""
        _, data = self._env.worlds.world(world, model=self._model)
        self._renderer.update_scene(data, camera=self._env.task.camera)
        pixels: np.ndarray = self._renderer.render()
        return pixels

    def close(self) -> None:
        """Give the graphics context back."""
        self._renderer.close()


@contextmanager
def video(path: Path, *, rate_hz: float) -> Iterator[Callable[[np.ndarray], None]]:
    """A function that appends pictures to an mp4, which appears when the block ends."""
    with atomic_path(path) as temporary, av.open(str(temporary), "w", format="mp4") as container:
        stream = container.add_stream("h264", rate=Fraction(rate_hz).limit_denominator(1000))
        stream.pix_fmt = "yuv420p"
        stream.options = {"crf": "23"}

        def add(picture: np.ndarray) -> None:
            stream.width, stream.height = picture.shape[1], picture.shape[0]
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture)))

        yield add
        container.mux(stream.encode())


def film(
    env: TaskEnv,
    policy: Callable[[Tensor], Tensor],
    path: Path,
    *,
    episodes: int,
    size: tuple[int, int] = (640, 480),
    report: Callable[[int, int], None] = lambda done, of: None,
) -> list[bool]:
    """Film world 0 over whole episodes; the outcome of each."""
    camera = Camera(env, width=size[0], height=size[1])
    outcomes: list[bool] = []
    try:
        with video(path, rate_hz=env.task.rate_hz) as add:
            total = episodes * env.steps
            for period in range(total):
                add(camera.picture())
                step = env.step(policy(env.actor))
                report(period + 1, total)
                if len(step.ended) and int(step.ended[0]) == 0:
                    outcomes.append(bool(step.success[0]))
                if len(outcomes) == episodes:
                    break
    finally:
        camera.close()
    return outcomes


def _renderer(model: mujoco.MjModel, *, width: int, height: int) -> mujoco.Renderer:
    model.vis.global_.offwidth = max(model.vis.global_.offwidth, width)
    model.vis.global_.offheight = max(model.vis.global_.offheight, height)
    try:
        if sys.platform == "linux" and not os.environ.get("MUJOCO_GL") and not _screen():
            # MuJoCo chose a windowed context when it was imported; without a screen, use EGL.
            os.environ.setdefault("PYOPENGL_PLATFORM", "egl")
            from mujoco.egl import GLContext
            from mujoco.rendering.classic import gl_context

            gl_context.GLContext = GLContext
        return mujoco.Renderer(model, height=height, width=width)
    except Exception as error:  # every graphics stack fails in its own way
        raise Sim2RealError(
            f"cannot render without a graphics library ({type(error).__name__}); on Debian or"
            f" Ubuntu: apt-get install {_PACKAGES}"
        ) from error


def _screen() -> bool:
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
