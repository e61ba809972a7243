"""Pictures of worlds, without a screen."""

from __future__ import annotations

import os
import sys

import mujoco

from sim2real.arrays import Pixels
from sim2real.errors import Sim2RealError, nearest
from sim2real.tasks.env import TaskEnv

_PACKAGES = "libegl1 libegl-mesa0 libgl1 libgl1-mesa-dri"


class Camera:
    """Renders one world of an environment to (height, width, 3) uint8 pictures."""

    def __init__(self, env: TaskEnv, *, width: int = 640, height: int = 480) -> None:
        self._env = env
        self._model, _ = env.worlds.world(0)
        cameras = [self._model.camera(k).name for k in range(self._model.ncam)]
        if env.task.camera not in cameras:
            raise Sim2RealError(
                f"twin {env.twin.name!r} has no camera {env.task.camera!r} to film task"
                f" {env.task.name!r}{nearest(env.task.camera, cameras)}"
            )
        self._renderer = _renderer(self._model, width=width, height=height)

    def picture(self, world: int = 0) -> Pixels:
        """What the task's camera sees of a world, with the world's own parameters."""
        _, data = self._env.worlds.world(world, model=self._model)
        self._renderer.update_scene(data, camera=self._env.task.camera)
        pixels: Pixels = self._renderer.render()
        return pixels

    def close(self) -> None:
        """Release the graphics context."""
        self._renderer.close()


def _renderer(model: mujoco.MjModel, *, width: int, height: int) -> mujoco.Renderer:
    model.vis.global_.offwidth = max(model.vis.global_.offwidth, width)
    model.vis.global_.offheight = max(model.vis.global_.offheight, height)
    try:
        chosen = any(map(os.environ.get, ("MUJOCO_GL", "DISPLAY", "WAYLAND_DISPLAY")))
        if sys.platform == "linux" and not chosen:
            # MuJoCo chose a windowed context when it was imported; without a screen, use EGL.
            os.environ.setdefault("PYOPENGL_PLATFORM", "egl")
            from mujoco.egl import GLContext
            from mujoco.rendering.classic import gl_context

            gl_context.GLContext = GLContext
        return mujoco.Renderer(model, height=height, width=width)
    except Exception as error:  # each graphics library raises its own exceptions
        raise Sim2RealError(
            f"rendering needs a graphics library ({type(error).__name__}); on Debian or"
            f" Ubuntu: apt-get install {_PACKAGES}"
        ) from error
