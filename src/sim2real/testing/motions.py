"""Recordings whose truth is known: a twin moved by multisines at values that were chosen."""

from __future__ import annotations

import math

import mujoco
import numpy as np

from sim2real.errors import Sim2RealError
from sim2real.logs import ControlLog
from sim2real.replay import simulated_logs
from sim2real.twin import Twin, twin_contract

_LINES = 8
"""Sines in the command of a joint."""
_LOWEST_HZ, _HIGHEST_HZ = 0.2, 3.0
_RISE_S = 0.5
"""Time over which a motion begins [s]."""
_SHARE = 0.3
"""Size of the command's motion, as a share of half its range."""
_CLEAR_M = 0.02
"""Least distance of anything that could touch [m]."""
_SMALLER, _TRIES = 0.8, 12
"""Factor by which a motion that is not clear is made smaller, and how often."""


def multisine(rng: np.random.Generator, limits: np.ndarray, times: np.ndarray) -> np.ndarray:
    """(periods, commands) sums of sines around the middle of ranges (commands, 2), 0 at first.

    Every line has the same speed, and no two joints share a frequency.
    """
    low, high = limits.T
    found = np.empty((len(times), len(limits)))
    lines = np.linspace(_LOWEST_HZ, _HIGHEST_HZ, _LINES * len(limits))
    for joint, (bottom, top) in enumerate(zip(low, high, strict=True)):
        hertz = lines[joint :: len(limits)]
        angle = 2 * math.pi * (hertz * times[:, None] + rng.uniform(0, 1, _LINES))
        wave = (np.sin(angle) / hertz).sum(axis=1)
        middle = min(max(0.0, bottom), top) if bottom < 0 < top else (bottom + top) / 2
        reach = _SHARE * min(top - middle, middle - bottom)
        found[:, joint] = middle + reach * wave / np.abs(wave).max() * np.minimum(
            1.0, times / _RISE_S
        )
    return found


def clear_multisine(rng: np.random.Generator, twin: Twin, times: np.ndarray) -> np.ndarray:
    """(periods, commands) a multisine that touches nothing, made smaller until that is so.

    As `sim2real record` would have it: a collision makes a recording jump with its parameters.
    """
    model = twin.compile().model
    model.geom_margin[:], model.geom_gap[:] = _CLEAR_M, _CLEAR_M  # seen from afar, and not felt
    command = multisine(rng, model.actuator_ctrlrange, times)
    middle = command[0].copy()
    for _ in range(_TRIES):
        if not _touches(model, command, float(times[1] - times[0])):
            return command
        command = middle + _SMALLER * (command - middle)
    raise Sim2RealError(f"no multisine moves twin {twin.name!r} without touching something")


def _touches(model: mujoco.MjModel, command: np.ndarray, period_s: float) -> bool:
    """Whether something comes near that was not near at first, or touches."""
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    neighbours = {tuple(contact.geom) for contact in data.contact}
    for row in command:
        data.ctrl[:] = row
        mujoco.mj_step(model, data, round(period_s / model.opt.timestep))
        if any(c.dist < 0 or tuple(c.geom) not in neighbours for c in data.contact):
            return True
    return False


def recordings(
    twin: Twin, values: np.ndarray, *, seconds: float, rate_hz: float, seed: int = 0
) -> list[ControlLog]:
    """A log of each row of `values` (n, parameters), with everything random in the twin on.

    Every world moves by a clear multisine of its own, from rest in the model's initial state.
    """
    times = np.arange(round(seconds * rate_hz) + 1) / rate_hz
    rng = np.random.default_rng(seed)
    commands = np.stack([clear_multisine(rng, twin, times) for _ in values], axis=1)
    contract = twin_contract(twin, rate_hz)
    return simulated_logs(twin, contract, values, commands, before=False, seed=seed)
