"""Films of a robot, rendered in its twin from its readings."""

from __future__ import annotations

import base64
import io
import math
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np
import torch
from PIL import Image

from sim2real.arrays import Pixels
from sim2real.data import Video
from sim2real.errors import Sim2RealError
from sim2real.logs import ControlLog
from sim2real.replay import MeasuredStates
from sim2real.tasks import Camera, TaskEnv
from sim2real.twin import twin_contract

if TYPE_CHECKING:
    from sim2real.data import Episode
    from sim2real.tasks import Task
    from sim2real.twin import Twin

_RATE_HZ = 25.0
_SIZE = (480, 360)
_STILL_S = 1.0
"""Length of the end that a still shows before the film is played, and on paper [s]."""


def film_of(episode: Episode, twin: Twin, task: type[Task], words: str) -> str:
    """A film inside a page, with its caption: the robot as its sensors measured it."""
    log = ControlLog.of(episode, twin_contract(twin, task.rate_hz), twin.channels)
    if not len(log.times):
        raise Sim2RealError("nothing was recorded")
    every = max(1, math.ceil(task.rate_hz / _RATE_HZ))
    env = TaskEnv(task, worlds=1, seed=0, source="nominal", twin=twin, threads=1)
    for name in task.goals:
        signal = episode.signals.get(f"goal/{name}")
        if signal is not None and len(signal.values):
            env.worlds.memory[name][0] = torch.from_numpy(np.atleast_1d(signal.values[0]))
    states = MeasuredStates(env.worlds.model, log)
    filming = closing(Camera(env, width=_SIZE[0], height=_SIZE[1]))
    last: deque[Pixels] = deque(maxlen=round(_STILL_S * task.rate_hz / every))

    def pictures(camera: Camera) -> Iterator[Pixels]:
        for row in range(0, len(log.times), every):
            states.write(env.worlds, log.times[row : row + 1])
            last.append(camera.picture())
            yield last[-1]

    with filming as camera:
        film = Video.mp4_of(pictures(camera), rate_hz=task.rate_hz / every)
    still = _blurred(last)
    poster = f"data:image/jpeg;base64,{base64.b64encode(still).decode()}"
    source = f"data:video/mp4;base64,{base64.b64encode(film).decode()}"
    return (
        f"<figure><video controls loop muted playsinline width='{_SIZE[0]}' height='{_SIZE[1]}'"
        f" poster='{poster}' src='{source}'></video>"
        f"<img class='still' alt='its last second' src='{poster}'>"
        f"<figcaption>{words}</figcaption></figure>"
    )


def _blurred(pictures: Iterable[Pixels]) -> bytes:
    """The mean of some pictures as a JPEG, in which motion is blurred."""
    out = io.BytesIO()
    mean = np.mean(np.stack(list(pictures)), axis=0).round().astype(np.uint8)
    Image.fromarray(mean).save(out, format="jpeg", quality=85)
    return out.getvalue()
