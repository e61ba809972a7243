"""Whole recordings replayed open loop: from the first measured state, with the commands alone."""

from __future__ import annotations

import numpy as np

from sim2real.data import Episode
from sim2real.gap.replay import Replay, Replayer
from sim2real.gap.sensitivity import best_guess
from sim2real.identify.align import aligned
from sim2real.twin import Twin


def open_loop(twin: Twin, episode: Episode, *, remainder: bool = False) -> Replay:
    """The recording as the twin's best guess predicts it, in one segment from begin to end.

    With `remainder` its learned remainder acts. The few periods that fill the buffers of delays are
    led along what was measured.
    """
    log = aligned(episode, twin)
    period_s = float(np.median(np.diff(log.times)))
    values = best_guess(twin)[None]
    delays = [
        value for value, p in zip(values[0], twin.parameters, strict=True) if "delay" in p.name
    ]
    before = int(np.ceil(max(delays, default=0.0) / period_s)) + 2
    length_s = (len(log.times) - before - 1) * period_s
    replayer = Replayer(
        twin, log, horizon_s=length_s, stride_s=length_s, values=values, remainder=remainder
    )
    return replayer(values)
