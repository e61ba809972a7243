"""Whole recordings replayed open loop: from the first measured state, with the commands alone."""

from __future__ import annotations

from sim2real.data import Episode
from sim2real.logs.alignment import aligned
from sim2real.replay.replayer import Replay, Replayer, lead_periods
from sim2real.twin import Twin


def open_loop(twin: Twin, episode: Episode, *, remainder: bool = False) -> Replay:
    """The recording as the twin's best guess predicts it, in one segment from begin to end.

    With `remainder` its learned remainder acts. The few periods that fill the buffers of delays are
    led along what was measured.
    """
    log = aligned(episode, twin)
    period_s = 1.0 / log.contract.rate_hz
    values = twin.best_guess()[None]
    before = lead_periods(twin, values, period_s)
    length_s = (len(log.times) - before - 1) * period_s
    replayer = Replayer(
        twin, log, horizon_s=length_s, stride_s=length_s, values=values, remainder=remainder
    )
    return replayer(values)
