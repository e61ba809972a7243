"""How a servo's firmware moves to a goal with limited acceleration: a trapezoidal profile."""

from __future__ import annotations

import torch
from torch import Tensor

_TINY = 1e-9
"""Least acceleration and speed, so that nothing is divided by zero."""


def towards(
    place: Tensor, speed: Tensor, goal: Tensor, *, acceleration: Tensor, top: Tensor, after_s: float
) -> tuple[Tensor, Tensor]:
    """Place and speed `after_s` later of what moves from `place` at `speed` to rest at `goal`.

    It goes there as fast as it may: it speeds up with `acceleration`, holds the speed `top` once
    there, and brakes with `acceleration`. Both limits may be infinite.
    """
    acceleration = acceleration.clamp(min=_TINY)
    # Where it would come to rest if it braked now; the goal is before or beyond that.
    rest = place + 0.5 * speed * speed.abs() / acceleration
    sign = torch.where(goal >= rest, 1.0, -1.0)
    begin, way = sign * speed, sign * (goal - place)
    peak = (acceleration * way + 0.5 * begin**2).clamp(min=0.0).sqrt()
    held = torch.minimum(peak, top)
    # Times of speeding up, of the held speed, and of braking.
    rise = (held - begin).clamp(min=0.0) / acceleration
    hold = (peak**2 - held**2) / (acceleration * held.clamp(min=_TINY))
    fall = held / acceleration
    left = (rise + hold + fall - after_s).clamp(min=0.0)
    risen = rise.clamp(max=after_s)
    gone = begin * risen + 0.5 * acceleration * risen**2 + held * (after_s - risen)
    braking = left < fall
    gone = torch.where(braking, way - 0.5 * acceleration * left**2, gone)
    pace = torch.where(braking, acceleration * left, begin + acceleration * risen)
    reach = top * after_s
    at_once = torch.isinf(acceleration)
    return (
        torch.where(at_once, goal.clamp(place - reach, place + reach), place + sign * gone),
        torch.where(at_once, 0.0, sign * pace),
    )
