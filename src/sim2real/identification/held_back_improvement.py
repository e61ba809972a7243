"""Whether something learned is worth having: errors of held-back recordings decide.

Of many ways to learn, the best on a few recordings is best by luck too. So a way counts only if it
makes no sensor worse at any horizon, and if what it gains stands out of the scatter between
recordings. Of those that count and predict alike the simplest is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from sim2real.arrays import Floats
from sim2real.identification.thresholds import IDENTIFY_THRESHOLDS, IdentifyThresholds


@dataclass(frozen=True, kw_only=True)
class Improvement:
    """Which way is taken, if any."""

    choice: int
    """Place of the way among all; that of the best where none is kept."""
    ratio: float
    """Root mean square error with it against without, over all sensors and horizons."""
    why: str
    """Why it is not kept; '' if it is."""
    before: Floats
    """(horizons, sensors) root mean square error without it, in the sensor's unit."""
    after: Floats
    """(horizons, sensors) with it."""


def improvement(
    squares: Floats,
    horizons_s: Sequence[float],
    sensors: Sequence[str],
    thresholds: IdentifyThresholds = IDENTIFY_THRESHOLDS,
) -> Improvement:
    """Judge (1 + ways, recordings, horizons, sensors) mean squared errors, held back.

    The first are those without; ways come from the simplest on. What is nan was not measured; a
    way that diverged has errors of infinity.
    """
    pooled = _mean(squares, axis=1)
    known = pooled[0] > 0
    with np.errstate(invalid="ignore"):
        parts = np.sqrt(np.where(known, pooled[1:] / np.where(known, pooled[0], 1.0), np.nan))
        relative = squares / np.where(known, pooled[0], np.nan)
    scores = _mean(relative.reshape(*squares.shape[:2], -1), axis=2)
    # A recording that is too short for any horizon says nothing.
    scores = scores[:, np.isfinite(scores[0])]
    if scores.shape[1] < 2:
        unknown = np.sqrt(pooled[0])
        return Improvement(
            choice=0, ratio=float("nan"), why="too few recordings could be predicted",
            before=unknown, after=unknown,
        )  # fmt: skip
    ratios = np.sqrt(scores[1:].mean(axis=1) / scores[0].mean())
    worst = np.nanmax(parts.reshape(len(parts), -1), axis=1)
    harmless = np.isfinite(ratios) & (worst <= thresholds.remainder_harm)
    doubts = [
        _doubt(float(r), scores[0], mine, thresholds)
        for r, mine in zip(ratios, scores[1:], strict=True)
    ]
    good = harmless & np.array([not doubt for doubt in doubts])
    among = next(some for some in (good, harmless, ratios == ratios.min()) if some.any())
    choice = int(np.argmin(np.where(among, ratios, np.inf)))
    if good.any():
        choice = next(
            int(k) for k in np.flatnonzero(good) if _alike(scores[1 + k], scores[1 + choice])
        )
        why = ""
    elif harmless.any():
        why = doubts[choice]
    else:
        horizon, sensor = np.argwhere(parts[choice] == worst[choice])[0]
        why = (
            "no way to learn it leaves every sensor as well predicted as without: the best makes"
            f" {sensors[int(sensor)]} over {horizons_s[int(horizon)]:g} s {worst[choice]:.2f} times"
            " as far off in recordings that were held back"
        )
    return Improvement(
        choice=choice,
        ratio=float(ratios[choice]),
        why=why,
        before=np.sqrt(pooled[0]),
        after=np.sqrt(pooled[1 + choice]),
    )


def _doubt(ratio: float, before: Floats, after: Floats, thresholds: IdentifyThresholds) -> str:
    """Why scores (recordings,) do not fall enough, or not surely; '' if they do."""
    told = f"recordings that were held back are predicted {ratio:.2f} times as far off with it"
    worth, sure = thresholds.remainder_worth, thresholds.remainder_sure
    if not ratio <= worth:
        return (
            f"{told}, which is not below {worth:g}: what is left is no force that these recordings"
            " tell alike"
        )
    gain, error = _paired(before, after)
    if not gain > error * float(student.ppf(sure, len(before) - 1)):
        return f"{told}, but the {len(before)} of them differ too much to be sure of that"
    return ""


def _alike(one: Floats, best: Floats) -> bool:
    """Whether scores (recordings,) are within a standard error of the best."""
    behind, error = _paired(one, best)
    return bool(np.isfinite(one).all()) and behind <= error


def _paired(before: Floats, after: Floats) -> tuple[float, float]:
    """(mean of what scores (recordings,) fall by, its standard error)."""
    fall = before - after
    if not np.isfinite(fall).all():
        return float("-inf"), float("inf")
    return float(fall.mean()), float(fall.std(ddof=1) / np.sqrt(len(fall)))


def _mean(values: Floats, axis: int) -> Floats:
    """Mean of what is not nan; nan where nothing is."""
    there = ~np.isnan(values)
    total = np.where(there, values, 0.0).sum(axis=axis)
    count = there.sum(axis=axis)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
