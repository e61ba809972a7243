"""Curves drawn with braille dots, for a terminal."""

from __future__ import annotations

import numpy as np

from sim2real.arrays import Floats

_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
"""Bit of each dot of a braille sign, (rows, columns)."""


def curve(times: Floats, values: Floats, *, width: int = 60, height: int = 3) -> list[str]:
    """Lines of braille that show values over time; what is not finite leaves a hole."""
    good = np.isfinite(times) & np.isfinite(values)
    grid = np.zeros((4 * height, 2 * width), dtype=bool)
    if good.any():
        x, y = times[good], values[good]
        columns = _scaled(x, 2 * width)
        rows = 4 * height - 1 - _scaled(y, 4 * height)
        for column in np.unique(columns):
            inside = rows[columns == column]
            grid[inside.min() : inside.max() + 1, column] = True
    cells = grid.reshape(height, 4, width, 2).transpose(0, 2, 1, 3)
    signs = 0x2800 + (cells * _DOTS).sum(axis=(2, 3))
    return ["".join(chr(sign) for sign in line) for line in signs]


def _scaled(values: Floats, size: int) -> Floats:
    low, high = float(values.min()), float(values.max())
    if not high > low:
        return np.full(len(values), size // 2)
    # Halves first: the span of huge values of both signs would overflow.
    share: Floats = (values / 2 - low / 2) / (high / 2 - low / 2)
    return np.asarray(np.minimum(share * size, size - 1), dtype=int)
