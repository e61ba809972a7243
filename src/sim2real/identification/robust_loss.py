"""Residuals that do not decide alone: Huber's loss, and a scale that outliers hardly move."""

from __future__ import annotations

import numpy as np

from sim2real.arrays import Floats

ROBUST = 3.0
"""Whitened residuals beyond this count less and less."""
_NORMAL = 0.9950
"""Mean of the squares, cut at `ROBUST` squared, of normal numbers."""


def tempered(residual: Floats) -> Floats:
    """Residuals whose squares are a Huber loss: linear beyond `ROBUST`."""
    size = np.abs(residual)
    linear = np.sqrt(np.maximum(2 * ROBUST * size - ROBUST**2, 0.0))
    return np.where(size > ROBUST, np.sign(residual) * linear, residual)


def weight(residual: Floats) -> Floats:
    """Derivative of `tempered`."""
    size = np.maximum(np.abs(residual), ROBUST)
    return ROBUST / np.sqrt(2 * ROBUST * size - ROBUST**2)


def scale(residual: Floats) -> float:
    """Standard deviation of numbers with outliers (Huber's second proposal).

    The number of which squares, cut at `ROBUST` times it, have the mean they have for normal
    numbers. Errors of a twin that is not quite right have no two kinds, good ones and outliers: the
    middle of them would call those outliers that tell most.
    """
    size = np.abs(residual[np.isfinite(residual)])
    if not size.size:
        return 1.0
    found = float(np.median(size)) / 0.6745
    for _ in range(50):
        if found <= 0:
            return float(np.sqrt(np.mean(size**2)))
        cut = np.minimum(size / found, ROBUST)
        factor = float(np.sqrt(np.mean(cut**2) / _NORMAL))
        found *= factor
        if abs(factor - 1) < 1e-3:
            break
    return found
