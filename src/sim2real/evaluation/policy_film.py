"""Films a policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from sim2real.files import atomic_path
from sim2real.tasks import Camera, TaskEnv


@contextmanager
def video(path: Path, *, rate_hz: float) -> Iterator[Callable[[NDArray[np.uint8]], None]]:
    """A function that appends pictures to an mp4; the file appears when the block ends."""
    with atomic_path(path) as temporary, av.open(str(temporary), "w", format="mp4") as container:
        stream = container.add_stream("h264", rate=Fraction(rate_hz).limit_denominator(1000))
        stream.pix_fmt = "yuv420p"
        stream.options = {"crf": "23"}

        def add(picture: NDArray[np.uint8]) -> None:
            if not stream.is_open:
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
    """Film world 0 for a number of episodes; the outcome of each."""
    filming = closing(Camera(env, width=size[0], height=size[1]))
    outcomes: list[bool] = []
    with filming as camera, video(path, rate_hz=env.task.rate_hz) as add:
        total = episodes * env.steps
        for period in range(total):
            add(camera.picture())
            step = env.step(policy(env.actor))
            report(period + 1, total)
            if len(step.ended) and int(step.ended[0]) == 0:
                outcomes.append(bool(step.success[0]))
            if len(outcomes) == episodes:
                break
    return outcomes
