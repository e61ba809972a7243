"""Huber's loss, and a scale estimate that is robust to outliers."""

from __future__ import annotations

import numpy as np

from sim2real.arrays import Floats

ROBUST = 3.0
"""Whitened residual beyond which the loss is linear."""
_CLIPPED_MEAN_SQUARE = 0.9950
"""Mean of the squares of standard normal numbers, clipped at `ROBUST` squared."""


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
    """Standard deviation of numbers with outliers (Huber's proposal 2).

    The scale at which squares, clipped at `ROBUST` times it, have the mean that they have for
    normal numbers. A median would not do: the largest errors of an imperfect twin are often the
    most informative, not outliers.
    """
    size = np.abs(residual[np.isfinite(residual)])
    if not size.size:
        return 1.0
    found = float(np.median(size)) / 0.6745
    for _ in range(50):
        if found <= 0:
            return float(np.sqrt(np.mean(size**2)))
        cut = np.minimum(size / found, ROBUST)
        factor = float(np.sqrt(np.mean(cut**2) / _CLIPPED_MEAN_SQUARE))
        found *= factor
        if abs(factor - 1) < 1e-3:
            break
    return found
