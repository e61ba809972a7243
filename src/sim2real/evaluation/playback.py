"""Watching a policy, as a video or in MuJoCo's viewer."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from sim2real.arrays import Pixels
from sim2real.data import Video
from sim2real.errors import Sim2RealError
from sim2real.evaluation.evaluation_configs import PlayConfig
from sim2real.evaluation.opened import open_policy
from sim2real.files import atomic_path
from sim2real.policy import DrivenWorlds
from sim2real.tasks import Camera, TaskEnv


def play(
    config: PlayConfig, *, report: Callable[[int, int], None] = lambda done, of: None
) -> tuple[Path | None, list[bool]]:
    """Play a policy as configured: the video's path (None with the viewer) and the outcomes."""
    if config.episodes < 1:
        raise Sim2RealError(f"--episodes must be at least 1, got {config.episodes}")
    if min(config.size) < 16 or any(side % 2 for side in config.size):
        raise Sim2RealError(f"--size {config.size} must be even numbers of at least 16 pixels")
    opened = open_policy(config.run, params=config.params, remainder=config.remainder)
    env = TaskEnv(
        opened.task,
        worlds=1,
        seed=config.seed,
        source=opened.source,
        twin=opened.twin,
        threads=1,
        remainder=opened.remainder,
    )
    driven = DrivenWorlds(env, opened.policy)
    if config.viewer:
        return None, _watch(env, driven, config.episodes)
    path = config.out or opened.records / "play.mp4"
    camera = Camera(env, width=config.size[0], height=config.size[1])
    outcomes: list[bool] = []
    try:
        with atomic_path(path) as temporary:
            pictures = _pictures(env, driven, camera, config.episodes, outcomes, report)
            temporary.write_bytes(Video.mp4_of(pictures, rate_hz=env.task.rate_hz))
    finally:
        camera.close()
    return path, outcomes


def _pictures(
    env: TaskEnv,
    driven: DrivenWorlds,
    camera: Camera,
    episodes: int,
    outcomes: list[bool],
    report: Callable[[int, int], None],
) -> Iterator[Pixels]:
    """World 0 in a number of episodes, period by period; adds the outcome of each to `outcomes`."""
    total = episodes * env.steps
    for period in range(total):
        yield camera.picture()
        step = driven.step()
        report(period + 1, total)
        if len(step.ended) and int(step.ended[0]) == 0:
            outcomes.append(bool(step.success[0]))
        if len(outcomes) == episodes:
            return


def _watch(env: TaskEnv, driven: DrivenWorlds, episodes: int) -> list[bool]:
    if sys.platform == "linux" and not os.environ.get("DISPLAY"):
        raise Sim2RealError("the viewer needs a screen; leave --viewer out to get a video")
    import mujoco
    import mujoco.viewer

    model, data = env.worlds.world(0)
    outcomes: list[bool] = []
    with mujoco.viewer.launch_passive(model, data) as viewer:
        while viewer.is_running() and len(outcomes) < episodes:
            begin = time.perf_counter()
            step = driven.step()
            if len(step.ended):
                outcomes.append(bool(step.success[0]))
            _, shown = env.worlds.world(0, model=model)
            data.qpos[:], data.qvel[:] = shown.qpos, shown.qvel
            data.mocap_pos[:], data.mocap_quat[:] = shown.mocap_pos, shown.mocap_quat
            mujoco.mj_forward(model, data)
            viewer.sync()
            time.sleep(max(0.0, env.worlds.period_s - (time.perf_counter() - begin)))
    return outcomes
