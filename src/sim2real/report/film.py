"""Films of what a robot did, drawn from its readings in its twin."""

from __future__ import annotations

import base64
import math
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from sim2real.evaluate.video import video
from sim2real.gap.log import Log
from sim2real.gap.states import MeasuredStates
from sim2real.policy.make import twin_contract
from sim2real.tasks import TaskEnv
from sim2real.tasks.camera import Camera

if TYPE_CHECKING:
    from sim2real.data import Episode
    from sim2real.tasks import Task
    from sim2real.twin import Twin

_RATE_HZ = 25.0
_SIZE = (480, 360)


def film_of(episode: Episode, twin: Twin, task: type[Task], words: str) -> str:
    """A film inside a page, with its caption: the robot as its sensors saw it."""
    log = Log.of(episode, twin_contract(twin, task.rate_hz), twin.channels)
    every = max(1, math.ceil(task.rate_hz / _RATE_HZ))
    env = TaskEnv(task, worlds=1, seed=0, source="nominal", twin=twin, threads=1)
    for name in task.goals:
        signal = episode.signals.get(f"goal/{name}")
        if signal is not None and len(signal.values):
            env.worlds.memory[name][0] = torch.from_numpy(np.atleast_1d(signal.values[0]))
    states = MeasuredStates(env.worlds.model, log)
    camera = Camera(env, width=_SIZE[0], height=_SIZE[1])
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "film.mp4"
            with video(path, rate_hz=task.rate_hz / every) as add:
                for row in range(0, len(log.times), every):
                    states.write(env.worlds, log.times[row : row + 1])
                    add(camera.picture())
            data = base64.b64encode(path.read_bytes()).decode()
    finally:
        camera.close()
    return (
        f"<figure><video controls loop muted playsinline width='{_SIZE[0]}' height='{_SIZE[1]}'"
        f" src='data:video/mp4;base64,{data}'></video><figcaption>{words}</figcaption></figure>"
    )
