"""Recordings whose truth is known: a twin moved by multisines at parameters that were planted."""

from __future__ import annotations

import math

import numpy as np
import torch

from sim2real.gap.log import Log
from sim2real.policy.make import twin_contract
from sim2real.twin import Twin
from sim2real.worlds import CpuWorlds

_LINES = 8
"""Sines in the command of a joint."""
_LOWEST_HZ, _HIGHEST_HZ = 0.2, 3.0
_RISE_S = 0.5
"""Time over which a motion begins [s]."""
_SHARE = 0.3
"""Size of the command's motion, as a share of half its range."""


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


def recordings(
    twin: Twin, values: np.ndarray, *, seconds: float, rate_hz: float, seed: int = 0
) -> list[Log]:
    """A log of each row of `values` (n, parameters), with everything random in the twin on.

    Every world moves by a multisine of its own, from rest in the model's initial state.
    """
    worlds = CpuWorlds(twin, count=len(values), period_s=1.0 / rate_hz, seed=seed)
    everyone = torch.arange(len(values))
    worlds.set_parameters(torch.from_numpy(values), everyone)
    worlds.reset(everyone)
    worlds.begin(everyone)
    times = np.arange(round(seconds * rate_hz) + 1) / rate_hz
    limits = worlds.model.actuator_ctrlrange
    rng = np.random.default_rng(seed)
    command = np.stack([multisine(rng, limits, times) for _ in values], axis=1)
    readings = np.empty((len(times), len(values), worlds.model.nsensordata))
    for row, sent in enumerate(command):
        readings[row] = worlds.measured.double().numpy()
        worlds.step(torch.from_numpy(sent).float())
    contract = twin_contract(twin, rate_hz)
    return [
        Log(
            contract=contract,
            episode=f"truth-{seed}-{k}",
            times=times,
            readings=readings[:, k],
            fresh=np.ones((len(times), len(contract.sensors)), dtype=bool),
            command=command[:, k],
        )
        for k in range(len(values))
    ]
