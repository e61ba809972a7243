"""Errors of each channel over the horizon, with three references.

The floor is the error that the twin's own randomness causes; a twin cannot be better. The error of
predicting that nothing changes is the other end: above it, a twin is no use for prediction. The
third is the declared noise.
"""

from __future__ import annotations

import math

import numpy as np

from sim2real.arrays import Floats, Ints
from sim2real.gap.channel_gap import ChannelGap, ChannelLag
from sim2real.gap.replayed_pairs import ReplayedPairs
from sim2real.gap.thresholds import GAP_THRESHOLDS, GapThresholds
from sim2real.replay import clusters_of
from sim2real.twin import SensorEffects

_RESAMPLES = 1000
_BAND = (0.025, 0.975)
_MAX_LAG = 0.25
"""Longest lag to try, as a share of a segment."""
_LAGS_PER_PERIOD = 4


def channel_gaps(
    pairs: ReplayedPairs, *, thresholds: GapThresholds = GAP_THRESHOLDS, seed: int = 0
) -> tuple[ChannelGap, ...]:
    """The gap of every sensor that the logs have readings of."""
    rng = np.random.default_rng(seed)
    clusters = clusters_of(pairs.recording)
    weights = _resampled(clusters, rng)
    found = []
    declared = pairs.replayer.twin.compile().effects.sensors
    for spec, part in pairs.sensors:
        real, fake = (replay.errors[0][..., part] for replay in (pairs.real, pairs.simulated))
        measured = pairs.real.measured[..., part]
        stays = measured - pairs.at_start(pairs.real)[:, None, part]
        steps = np.flatnonzero(np.isfinite(real).any(axis=(0, 2)))
        many = _rms(real[:, steps], weights)
        floors = _rms(fake[:, steps], weights)
        low, high = np.quantile(many[1:], _BAND, axis=0)
        whole, floor = (np.sqrt((curve**2).mean(axis=1)) for curve in (many, floors))
        still = _rms(stays[:, steps], weights[:1])[0]
        ratios = whole / np.maximum(floor, 1e-12)
        mine = declared.get(spec.name, SensorEffects())
        noise = float(np.sqrt(np.mean(pairs.real.noise[part] ** 2)))
        spread = _spread(measured)
        found.append(
            ChannelGap(
                name=spec.name,
                unit=spec.unit,
                times_s=tuple(((1.0 + steps) * pairs.real.period_s).tolist()),
                rms=tuple(many[0].tolist()),
                low=tuple(low.tolist()),
                high=tuple(high.tolist()),
                floor=tuple(floors[0].tolist()),
                stays=tuple(still.tolist()),
                noise=noise,
                declared=math.hypot(mine.noise, mine.quantum / math.sqrt(12)) > 0.99 * noise,
                spread=spread,
                moves=spread > thresholds.motion * noise,
                ratio=float(ratios[0]),
                ratio_low=float(np.quantile(ratios[1:], _BAND[0])),
                ratio_high=float(np.quantile(ratios[1:], _BAND[1])),
                lag=_lag(pairs.real.predicted[0][..., part], measured, weights, pairs, thresholds)
                if many[0, -1] < still[-1]
                else None,
            )
        )
    return tuple(found)


def _resampled(clusters: Ints, rng: np.random.Generator) -> Floats:
    """(1 + resamples, segments) weights of segments; those of the first row are one."""
    count = int(clusters.max()) + 1
    drawn = rng.multinomial(count, np.full(count, 1 / count), size=_RESAMPLES)
    return np.concatenate([np.ones((1, len(clusters))), drawn[:, clusters]])


def _rms(errors: Floats, weights: Floats) -> Floats:
    """(weights, periods) root mean square of errors (segments, periods, numbers)."""
    known = np.isfinite(errors)
    squares = np.where(known, errors, 0.0) ** 2
    total = weights @ squares.sum(axis=2)
    count = weights @ known.sum(axis=2).astype(float)
    return np.asarray(np.sqrt(total / np.maximum(count, 1e-9)))


def _spread(measured: Floats) -> float:
    """Standard deviation of readings (segments, periods, numbers), each around its own mean."""
    numbers = [column[np.isfinite(column)] for column in measured.reshape(-1, measured.shape[2]).T]
    return float(np.sqrt(np.mean([number.var() for number in numbers if len(number)])))


def _lag(
    predicted: Floats,
    measured: Floats,
    weights: Floats,
    pairs: ReplayedPairs,
    thresholds: GapThresholds,
) -> ChannelLag | None:
    """The shift in time of predictions (segments, periods, numbers) that leaves least error."""
    steps = predicted.shape[1]
    reach = int(_MAX_LAG * steps)
    if reach < 2:
        return None
    inner = np.arange(reach, steps - reach)
    shifts = np.arange(-reach * _LAGS_PER_PERIOD, reach * _LAGS_PER_PERIOD + 1) / _LAGS_PER_PERIOD
    left = []
    for shift in shifts:
        at = inner - shift
        first = np.minimum(np.floor(at).astype(int), steps - 2)
        part = (at - first)[None, :, None]
        moved = (1 - part) * predicted[:, first] + part * predicted[:, first + 1]
        error = measured[:, inner] - moved
        left.append(np.nansum(error**2, axis=(1, 2)))
    totals = weights @ np.stack(left, axis=1)  # (weights, shifts)
    best = shifts[totals.argmin(axis=1)] * pairs.real.period_s
    none = float(totals[0, len(shifts) // 2])
    low, high = np.quantile(best[1:], _BAND)
    explains = 1.0 - float(totals[0].min()) / none if none > 0 else 0.0
    told = explains > thresholds.lag_least and bool(low > 0 or high < 0)
    return ChannelLag(
        seconds=float(best[0]),
        low=float(low),
        high=float(high),
        explains=explains,
        told=told,
        dominates=told and explains > thresholds.lag_most,
    )
