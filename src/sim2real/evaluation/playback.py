"""Watching a policy: as a video, or in MuJoCo's viewer."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from sim2real.errors import Sim2RealError
from sim2real.evaluation.evaluation_configs import PlayConfig
from sim2real.learn import Policy
from sim2real.tasks import TaskEnv, find_task
from sim2real.twin import Twin


def play(
    config: PlayConfig, *, report: Callable[[int, int], None] = lambda done, of: None
) -> tuple[Path | None, list[bool]]:
    """Play a run as configured: the video's path (none with the viewer) and the outcomes."""
    if config.episodes < 1:
        raise Sim2RealError(f"--episodes must be at least 1, got {config.episodes}")
    if min(config.size) < 16 or any(side % 2 for side in config.size):
        raise Sim2RealError(f"--size {config.size} must be even numbers of at least 16 pixels")
    policy = Policy.open(config.run)
    run = policy.run
    source = config.params or ("prior" if run.source == "adr" else run.source)
    twin = Twin.load(run.twin) if run.twin else None
    env = TaskEnv(
        find_task(run.task),
        worlds=1,
        seed=config.seed,
        source=source,
        twin=twin,
        threads=1,
        remainder=config.remainder or run.remainder,
    )
    if config.viewer:
        return None, _watch(env, policy, config.episodes)
    from sim2real.evaluation.policy_film import film

    path = config.out or config.run / "play.mp4"
    return path, film(env, policy, path, episodes=config.episodes, size=config.size, report=report)


def _watch(env: TaskEnv, policy: Policy, episodes: int) -> list[bool]:
    if sys.platform == "linux" and not os.environ.get("DISPLAY"):
        raise Sim2RealError("the viewer needs a screen; leave --viewer out to get a video")
    import mujoco
    import mujoco.viewer

    model, data = env.worlds.world(0)
    outcomes: list[bool] = []
    with mujoco.viewer.launch_passive(model, data) as viewer:
        while viewer.is_running() and len(outcomes) < episodes:
            begin = time.perf_counter()
            step = env.step(policy(env.actor))
            if len(step.ended):
                outcomes.append(bool(step.success[0]))
            _, shown = env.worlds.world(0, model=model)
            data.qpos[:], data.qvel[:] = shown.qpos, shown.qvel
            data.mocap_pos[:], data.mocap_quat[:] = shown.mocap_pos, shown.mocap_quat
            mujoco.mj_forward(model, data)
            viewer.sync()
            time.sleep(max(0.0, env.worlds.period_s - (time.perf_counter() - begin)))
    return outcomes
