"""The shapes of motions: how joints deviate from rest, before their size is known.

A shape is a table (periods, joints) that begins and ends at zero, at rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from sim2real.arrays import Floats

_MAX_FREQUENCY = 0.2
"""Highest frequency of a motion, as a share of the control rate."""
_MIN_FREQUENCY_HZ = 0.1
_PHASE_SETS = 32
"""Sets of phases that a multisine is chosen from."""
_PEAK_SPEED, _PEAK_ACCELERATION = 1.875, 10.0 / math.sqrt(3.0)
"""Peaks of a minimum-jerk move of length 1 in time 1."""


class Limit(NamedTuple):
    """Limits of the moving joints around their centre: arrays (joints,)."""

    size: Floats
    rate: Floats
    acceleration: Floats

    def of(self, joint: int) -> Limit:
        """The limits of one joint."""
        return Limit(*(part[joint : joint + 1] for part in self))


def fitted(shape: Floats, rate_hz: float, limit: Limit) -> Floats:
    """A shape (periods, joints) that rests at both ends, made as large as the limits allow."""
    rows = np.concatenate([np.zeros((2, shape.shape[1])), shape, np.zeros((2, shape.shape[1]))])
    seen = (
        (np.abs(shape).max(axis=0), limit.size),
        (largest(np.diff(rows, axis=0)) * rate_hz, limit.rate),
        (largest(np.diff(rows, 2, axis=0)) * rate_hz**2, limit.acceleration),
    )
    scale = np.full(shape.shape[1], np.inf)
    for found, allowed in seen:
        room = np.where(found > 0, allowed / np.where(found > 0, found, 1.0), np.inf)
        scale = np.minimum(scale, room)
    return shape * np.where(np.isfinite(scale), scale, 0.0)


def _multisine(rng: np.random.Generator, count: int, rate_hz: float, limit: Limit) -> Floats:
    """Sums of sines, of which no two joints share a frequency, with phases for a large amplitude.

    Between its ramps it is periodic, and the joints' motions are orthogonal there.
    """
    joints = len(limit.size)
    ramp = _ramp(count, rate_hz)
    period = count - 2 * ramp
    lowest = max(1, math.ceil(_MIN_FREQUENCY_HZ * period / rate_hz))
    highest = max(lowest + joints - 1, int(_MAX_FREQUENCY * period))
    times = (np.arange(count) - ramp) / period
    window = _window(count, ramp)
    found = np.zeros((count, joints))
    for joint in range(joints):
        lines = np.arange(lowest + joint, highest + 1, joints)
        weight = 1.0 / lines  # the same speed at every frequency
        only = limit.of(joint)
        best = -1.0
        for attempt in range(_PHASE_SETS):
            order = np.arange(len(lines))
            # Schroeder's phases spread the peaks; with few lines, random phases may do better.
            phases = -np.pi * order * (order + 1) / len(lines) + rng.uniform(0, 2 * np.pi)
            if attempt % 2:
                phases = rng.uniform(0, 2 * np.pi, len(lines))
            angle = 2 * np.pi * lines[:, None] * times + phases[:, None]
            one = window * (weight[:, None] * np.sin(angle)).sum(axis=0)
            power = float(np.square(fitted(one[:, None], rate_hz, only)).sum())
            if power > best:
                best, found[:, joint] = power, one
    return found


def _chirp(rng: np.random.Generator, count: int, rate_hz: float, limit: Limit) -> Floats:
    """One joint after the other, from slow to fast; smaller as it gets faster."""

    def sweep(rows: int, joint: int) -> Floats:
        length = rows / rate_hz
        high = _MAX_FREQUENCY * rate_hz
        low = min(max(_MIN_FREQUENCY_HZ, 1.5 / length), 0.5 * high)
        growth = math.log(high / low)
        times = np.arange(rows) / rate_hz
        speed = 2 * np.pi * low * np.exp(growth * times / length)
        phase = (speed - speed[0]) * length / growth
        size, rate, acceleration = (part[joint] for part in limit)
        amplitude = (size**-2 + (speed / rate) ** 2 + (speed**2 / acceleration) ** 2) ** -0.5
        sign = rng.choice([-1.0, 1.0])
        ramp = min(_ramp(rows, rate_hz), max(1, round(0.5 * rate_hz)))
        swept: Floats = sign * _window(rows, ramp) * amplitude * np.sin(phase)
        return swept

    return _in_turn(count, len(limit.size), sweep)


def _steps(rng: np.random.Generator, count: int, rate_hz: float, limit: Limit) -> Floats:
    """One joint after the other, back and forth in steps as fast as allowed, with rests between."""

    def stairs(rows: int, joint: int) -> Floats:
        each = limit.of(joint)
        size = float(each.size[0])
        levels = max(2, int(rows / rate_hz / 0.8))
        slot = rows // levels
        heights = size * rng.choice([0.5, 1.0], levels) * np.where(np.arange(levels) % 2, -1, 1)
        heights *= rng.choice([-1.0, 1.0])
        heights[-1] = 0.0
        found, last = np.zeros(rows), 0.0
        for k, height in enumerate(heights):
            wanted = travel_s(np.array([height - last]), each.rate, each.acceleration) * rate_hz
            quick = min(max(1, math.ceil(wanted)), max(1, int(0.7 * slot)))
            found[k * slot :] = height
            found[k * slot : k * slot + quick] = last + (height - last) * smooth(quick)
            last = height
        return found

    return _in_turn(count, len(limit.size), stairs)


def _targets(rng: np.random.Generator, count: int, rate_hz: float, limit: Limit) -> Floats:
    """Random targets of all joints together, each reached smoothly and at the same moment."""
    found = np.zeros((count, len(limit.size)))
    row, last = 0, np.zeros(len(limit.size))
    while row < count - 1:
        target = rng.uniform(-limit.size, limit.size)
        quickest = travel_s(target - last, limit.rate, limit.acceleration)
        rows = math.ceil(max(quickest * rng.uniform(1.0, 2.0), 0.3) * rate_hz)
        home = math.ceil(travel_s(target, limit.rate, limit.acceleration) * rate_hz) + 1
        if row + rows + home >= count:
            target, rows = np.zeros_like(last), count - 1 - row
        found[row : row + rows] = last + (target - last) * smooth(rows)[:, None]
        found[row + rows :] = target
        row, last = row + rows, target
    return found


def _hold(rng: np.random.Generator, count: int, rate_hz: float, limit: Limit) -> Floats:
    """Nothing moves: for noise, friction and drift."""
    return np.zeros((count, len(limit.size)))


SHAPES: dict[str, Callable[[np.random.Generator, int, float, Limit], Floats]] = {
    "hold": _hold,
    "steps": _steps,
    "chirp": _chirp,
    "multisine": _multisine,
    "targets": _targets,
}
"""Every motion by name, from the gentlest on."""


def _in_turn(count: int, joints: int, shape: Callable[[int, int], Floats]) -> Floats:
    found = np.zeros((count, joints))
    edges = np.linspace(0, count, joints + 1).astype(int)
    for joint, (begin, end) in enumerate(pairwise(edges)):
        if end - begin > 3:
            found[begin + 1 : end - 1, joint] = shape(end - begin - 2, joint)
    return found


def travel_s(distance: Floats, rate: Floats, acceleration: Floats) -> float:
    """Shortest time of a minimum-jerk move of all joints together [s]."""
    way = np.abs(distance)
    return float(
        max(
            (_PEAK_SPEED * way / rate).max(), np.sqrt(_PEAK_ACCELERATION * way / acceleration).max()
        )
    )


def smooth(rows: int) -> Floats:
    """Minimum-jerk progress from 0 on, at `rows` moments before it arrives at 1."""
    u = np.arange(rows) / rows
    found: Floats = u**3 * (10 - 15 * u + 6 * u**2)
    return found


def _ramp(count: int, rate_hz: float) -> int:
    return max(1, min(round(rate_hz), count // 8))


def _window(count: int, ramp: int) -> Floats:
    rise = smooth(ramp)
    return np.concatenate([rise, np.ones(count - 2 * ramp), rise[::-1]])


def largest(values: Floats) -> Floats:
    found: Floats = np.abs(values).max(axis=0, initial=0.0)
    return found
