"""How two series move together: on one grid, at which lag, with which slope."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim2real.arrays import Floats, Ints
from sim2real.data.check.scalar_series import ScalarSeries

MAX_GRID_SAMPLES = 1 << 16
"""A longer pair is resampled at a lower rate; lags stay far finer than its step."""


@dataclass(frozen=True)
class BestLag:
    """The lag at which a response follows a cause best."""

    lag_s: float
    """Positive where the response comes after the cause [s]."""
    correlation: float
    """Pearson correlation there."""
    curve: Floats
    """Correlation at each lag of `lags_s`."""
    lags_s: Floats


def on_one_grid(cause: ScalarSeries, response: ScalarSeries) -> tuple[Floats, Floats, Floats]:
    """Regular times over the overlap, and both series there, read linearly.

    The grid has the step of the slower of the two; where they share a regular clock, nothing is
    interpolated.
    """
    start = max(cause.times[0], response.times[0])
    end = min(cause.times[-1], response.times[-1])
    step = max(cause.step_s, response.step_s)
    count = int((end - start) / step) + 1 if end > start else 0
    if count < 2:
        empty = np.zeros(0)
        return empty, empty, empty
    if count > MAX_GRID_SAMPLES:
        step, count = (end - start) / (MAX_GRID_SAMPLES - 1), MAX_GRID_SAMPLES
    grid = start + np.arange(count) * step
    return (
        grid,
        np.interp(grid, cause.times, cause.values),
        np.interp(grid, response.times, response.values),
    )


def changes(values: Floats, half: int) -> Floats:
    """Change over `2 * half` samples, centred; the ends are left out."""
    return np.asarray(values[2 * half :] - values[: -2 * half])


def travelled(rates: Floats, step_s: float, half: int) -> Floats:
    """Integral of a rate over `2 * half` samples: what `changes` of its position should be."""
    total = np.r_[0.0, np.cumsum(0.5 * (rates[1:] + rates[:-1])) * step_s]
    return changes(total, half)


def best_lag(cause: Floats, response: Floats, step_s: float, reach_s: float) -> BestLag:
    """The lag within ±reach at which the two correlate most, finer than the step."""
    reach = int(min(max(reach_s / step_s, 3), len(cause) // 3))
    curve = _correlations(cause, response, reach)
    at = int(np.argmax(curve))
    offset = 0.0
    if 0 < at < len(curve) - 1:
        left, top, right = curve[at - 1 : at + 2]
        bend = left - 2 * top + right
        offset = 0.5 * (left - right) / bend if bend < 0 else 0.0
    lags = np.arange(-reach, reach + 1) * step_s
    return BestLag(float(lags[at] + offset * step_s), float(curve[at]), curve, np.asarray(lags))


def _correlations(cause: Floats, response: Floats, reach: int) -> Floats:
    """Pearson correlation of response[k + lag] with cause[k] over their overlap, for each lag."""
    count = len(cause)
    cause, response = cause - cause.mean(), response - response.mean()
    size = 1 << int(np.ceil(np.log2(count + reach + 1)))
    product = np.fft.irfft(np.conj(np.fft.rfft(cause, size)) * np.fft.rfft(response, size), size)
    lags = np.arange(-reach, reach + 1)
    cross = product[lags]  # a negative index wraps, as a circular correlation does
    overlap = count - np.abs(lags)
    first_c, last_c = np.maximum(-lags, 0), count - np.maximum(lags, 0)
    first_r, last_r = np.maximum(lags, 0), count - np.maximum(-lags, 0)

    def moments(x: Floats, first: Ints, last: Ints) -> tuple[Floats, ...]:
        total, square = np.r_[0.0, np.cumsum(x)], np.r_[0.0, np.cumsum(x * x)]
        mean = (total[last] - total[first]) / overlap
        return mean, np.maximum((square[last] - square[first]) / overlap - mean**2, 0.0)

    mean_c, var_c = moments(cause, first_c, last_c)
    mean_r, var_r = moments(response, first_r, last_r)
    scale = np.sqrt(var_c * var_r)
    # Overlaps where one of the two rests have no correlation, only rounding.
    alive = scale > 1e-9 * float(cause.std() * response.std()) + 1e-300
    found = np.zeros(len(lags))
    found[alive] = ((cross / overlap - mean_c * mean_r)[alive]) / scale[alive]
    return np.clip(found, -1.0, 1.0)


def shifted(values: Floats, by: float) -> Floats:
    """The series read `by` samples earlier, so that it comes later by that; ends are held."""
    index = np.arange(len(values), dtype=np.float64)
    return np.asarray(np.interp(index - by, index, values))


def slope_of(x: Floats, y: Floats) -> tuple[float, float]:
    """Slope of y against x, both with errors (geometric mean of both regressions), and correlation.

    With a correlation of r the slope is known to lie within a factor of r either way.
    """
    x, y = x - x.mean(), y - y.mean()
    # Plain sums: threads of a linear algebra library cost more than they bring here.
    xx, yy, xy = float((x * x).sum()), float((y * y).sum()), float((x * y).sum())
    if xx <= 0 or yy <= 0:
        return 0.0, 0.0
    return float(np.sign(xy) * np.sqrt(yy / xx)), xy / np.sqrt(xx * yy)
