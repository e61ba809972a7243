"""How far predictions over short segments are from what was measured."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sim2real.data import Episode
from sim2real.logs.alignment import aligned
from sim2real.logs.control_log import ControlLog
from sim2real.replay.replayer import Replayer
from sim2real.twin import Twin


def segment_rms(
    twin: Twin,
    episodes: list[Episode],
    values: np.ndarray,
    *,
    horizon_s: float,
    skip: int = 0,
    remainder: bool = False,
) -> dict[str, float]:
    """Root mean square error of each sensor over segments end to end, in the sensor's unit.

    `values` (parameters,) are the twin's; `skip` leading rows of each recording are left out.
    With `remainder` the twin's learned remainder acts. Predictions that diverged make it infinite.
    """
    logs = [_after(aligned(episode, twin), skip) for episode in episodes]
    replayer = Replayer(
        twin, ControlLog.join(logs), horizon_s=horizon_s, values=values[None], remainder=remainder
    )
    replay = replayer(values[None])
    found = {}
    for spec in logs[0].contract.sensors:
        valid = replay.valid[..., replay.column(spec.name)]
        squares = replay.errors[0][..., replay.column(spec.name)][valid] ** 2
        mean = float(squares.mean()) if len(squares) else float("nan")
        found[spec.name] = float("inf") if np.isnan(squares).any() else float(np.sqrt(mean))
    return found


def _after(log: ControlLog, rows: int) -> ControlLog:
    return replace(
        log,
        times=log.times[rows:],
        readings=log.readings[rows:],
        fresh=log.fresh[rows:],
        command=log.command[rows:],
        wanted=None,
        action=None,
        observation=None,
        goals=None,
    )
