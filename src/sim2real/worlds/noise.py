"""Endless noise for many worlds, drawn in blocks and keyed by tick.

The noise of a world at a tick depends on (seed, name, world, tick) alone, so a stream has no
state but its tick, and a resumed run continues with the same noise.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from sim2real.params import Key, normal_block, uniform_block

_TICKS_AT_ONCE = 64
"""Ticks that are drawn together."""


class NoiseStream:
    """(worlds, channels) float32 draws, one set per control period."""

    def __init__(self, key: Key, *, worlds: Tensor, channels: int, gaussian: bool = False) -> None:
        self._key = key
        self._worlds = worlds
        self._channels = channels
        self._draw: Callable[..., Tensor] = normal_block if gaussian else uniform_block
        self._first = -1
        self._block = torch.empty(0)

    def at(self, tick: int) -> Tensor:
        """The draws of one tick."""
        first = tick - tick % _TICKS_AT_ONCE
        if first != self._first:
            ticks = torch.arange(
                first, first + _TICKS_AT_ONCE, dtype=torch.int64, device=self._worlds.device
            )
            self._block = self._draw(
                self._key, worlds=self._worlds, ticks=ticks, channels=self._channels
            )
            self._first = first
        return self._block[tick - first]
