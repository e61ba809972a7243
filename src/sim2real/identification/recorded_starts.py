"""States that a robot was recorded in, for training to start from."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np
import torch

from sim2real.logs import ControlLog
from sim2real.replay import GAP, MeasuredStates, places_of, spread_evenly
from sim2real.tasks import Starts
from sim2real.twin import Twin
from sim2real.worlds import open_worlds

_MAX_STATES = 2000
"""Most states; they are spread evenly over time."""


def tells_state(twin: Twin) -> bool:
    """Whether the sensors determine the whole state: each joint has one number, and a sensor."""
    model = twin.compile().model
    of_joint = model.sensor_type == int(mujoco.mjtSensor.mjSENS_JOINTPOS)
    measured = set(model.sensor_objid[of_joint].tolist())
    return model.nq == model.nv and measured == set(range(model.njnt))


def seen_states(twin: Twin, logs: Sequence[ControlLog]) -> Starts | None:
    """States of the robot in its recordings, as its twin interprets the readings.

    None if its sensors, or these recordings, never determine a whole state.
    """
    if not tells_state(twin):
        return None
    log = ControlLog.join(logs)
    period_s = 1.0 / log.contract.rate_hz
    model = twin.compile().model
    states = MeasuredStates(model, log)
    sent = np.isfinite(log.command).all(axis=1)
    rows = np.flatnonzero(states.known(log.times, GAP * period_s) & sent)
    if states.assumed or not len(rows):
        return None
    rows = rows[spread_evenly(len(rows), _MAX_STATES)]
    worlds = open_worlds(twin, count=len(rows), period_s=period_s, seed=0)
    everyone = torch.arange(len(rows))
    worlds.set_parameters(torch.from_numpy(twin.best_guess()).expand(len(rows), -1), everyone)
    worlds.reset(everyone)
    states.write(worlds, log.times[rows])
    command = np.zeros((len(rows), model.nu))
    command[:, places_of(model, log.contract)[1]] = log.command[rows]
    return Starts(
        qpos=worlds.state("qpos").numpy().copy(),
        qvel=worlds.state("qvel").numpy().copy(),
        command=command,
        episodes=tuple(sorted({log.episode for log in logs if log.episode})),
    )
