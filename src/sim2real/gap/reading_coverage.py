"""Whether ranges of parameters cover what a robot really did.

Every segment of the logs is replayed with a number of draws from the ranges, with all of the twin's
randomness (noise, rounding, jitter, loss) and from starts as uncertain as their measurement.
Together they are the readings that the twin considers possible. If the ranges are right, a real
reading is one more of them: it lies inside their middle 95 % nineteen times out of twenty.

A range that is too narrow misses the robot; one that is too wide trains for robots that do not
exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from sim2real.arrays import Bools, Floats, Ints
from sim2real.contract import SensorSpec
from sim2real.errors import Sim2RealError
from sim2real.gap.coverage import (
    BAND,
    LEVELS,
    CoveredShare,
    RangeCoverage,
    ReadingBands,
    ReadingRanks,
    SensorCoverage,
)
from sim2real.gap.thresholds import GAP_THRESHOLDS, GapThresholds
from sim2real.logs import ControlLog
from sim2real.randomize import drawn
from sim2real.replay import Replay, Replayer, clusters_of, log_of, seconds_of, spread_evenly
from sim2real.twin import Twin

_RESAMPLED = 1000
_LEAST = 1e-4
"""Narrowest band, as a share of the reading's range: no sensor is perfect."""
_SHOWN_SENSORS, _SHOWN_SEGMENTS = 8, 5
"""Most sensors and segments to look at."""


def range_coverage(
    twin: Twin,
    logs: Sequence[ControlLog],
    *,
    source: str = "",
    draws: int = 64,
    horizon_s: float = 0.5,
    thresholds: GapThresholds = GAP_THRESHOLDS,
    seed: int = 0,
    threads: int = 0,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> RangeCoverage:
    """Which share of the readings the ranges cover, sensor by sensor.

    `source` is as for `make_sampler`, by default the posterior or, without one, the priors. At most
    `thresholds.segments` segments are replayed, spread evenly over the logs.
    """
    if draws < 20:
        raise Sim2RealError(f"a 95 % band needs at least 20 draws, not {draws}")
    source = source or ("prior" if twin.posterior is None else "posterior")
    values = drawn(twin, source, count=draws, seed=seed).numpy()
    whole = ControlLog.join(logs)
    seconds = seconds_of(logs)
    replayer = Replayer(
        twin,
        whole,
        horizon_s=horizon_s,
        stride_s=max(horizon_s, seconds / thresholds.segments),
        values=values,
        randomness="all",
        threads=threads,
    )
    rng = np.random.default_rng(seed)
    starts = rng.normal(size=(draws, len(replayer.starts), replayer.coordinates))
    replay = replayer(values, moved=starts, report=report)
    good = np.all(np.isfinite(replay.predicted), axis=(1, 2, 3))
    if good.sum() < 20:
        raise Sim2RealError(f"{draws - good.sum()} of {draws} draws from {source} diverge")
    recording = log_of(logs, replay.starts)
    clusters = clusters_of(recording)
    slack = _LEAST * (1e-3 + np.nanmax(whole.readings, axis=0) - np.nanmin(whole.readings, axis=0))
    sensors, farthest = [], []
    for spec, columns in whole.columns():
        found = _of_sensor(spec, columns, replay, good, slack[columns], clusters, rng)
        if found is not None:
            sensors.append(replace(found[0], thresholds=thresholds))
            farthest.append(found[1])
    return RangeCoverage(
        source=source,
        horizon_s=horizon_s,
        recordings=len(np.unique(recording)),
        windows=len(replay.starts),
        draws=draws,
        diverged=int(draws - good.sum()),
        sensors=tuple(sensors),
        explained=explained_share(np.max(farthest, axis=0), clusters, rng),
        bands=tuple(islice(_bands(replay, [sensor.name for sensor in sensors]), _SHOWN_SENSORS)),
    )


def _of_sensor(
    spec: SensorSpec,
    columns: slice,
    replay: Replay,
    good: Bools,
    slack: Floats,
    clusters: Ints,
    rng: np.random.Generator,
) -> tuple[SensorCoverage, Floats] | None:
    """A sensor's coverage by the `good` draws, and how far each segment goes; None without any
    reading of it."""
    real, known = replay.measured[..., columns], replay.valid[..., columns]
    if not known.any():
        return None
    made = replay.predicted[good][..., columns]
    edges = (0.5 - BAND / 2, 0.5, 0.5 + BAND / 2)
    low, middle, high = np.quantile(made, edges, axis=0, method="weibull")
    within = (real >= low - slack) & (real <= high + slack) & known
    far = farthest_off(made, real, slack)
    error, variance = (real - middle)[known], made.var(axis=0, ddof=1)[known]
    covered = SensorCoverage(
        name=spec.name,
        unit=spec.unit,
        inside=covered_share(within.sum(axis=(1, 2)), known.sum(axis=(1, 2)), clusters, rng),
        explained=explained_share(far, clusters, rng),
        spread=float(np.sqrt(variance.mean())),
        error=float(np.sqrt(np.mean(error**2))),
        ranks=_ranks(ranks_of(made, real)[known]),
    )
    return covered, far


def ranks_of(made: Floats, real: Floats) -> Floats:
    """Ranks in 0..1 of readings among draws (draws, …) of them; ties in the middle."""
    return np.asarray((made < real).mean(axis=0) + 0.5 * (made == real).mean(axis=0))


def _ranks(ranks: Floats) -> ReadingRanks:
    away = np.abs(ranks - 0.5)
    density = np.histogram(ranks, bins=10, range=(0, 1), density=True)[0]
    return ReadingRanks(
        half=float((away <= 0.25).mean()),
        inside=tuple(float((away <= level / 2).mean()) for level in LEVELS),
        density=tuple(density.tolist()),
    )


def _bands(replay: Replay, sensors: Sequence[str]) -> Iterator[ReadingBands]:
    """A few segments of each sensor that gives one number."""
    segments = spread_evenly(len(replay.starts), _SHOWN_SEGMENTS)
    edges = (0.5 - BAND / 2, 0.5, 0.5 + BAND / 2)
    for spec in replay.log.contract.sensors:
        if spec.width == 1 and spec.name in sensors:
            column = replay.column(spec.name).start
            made = replay.predicted[..., column][:, segments]
            low, middle, high = np.nanquantile(made, edges, axis=0)
            yield ReadingBands(
                sensor=spec.name,
                unit=spec.unit,
                period_s=replay.period_s,
                real=replay.measured[segments, :, column] - middle,
                low=low - middle,
                high=high - middle,
            )


def farthest_off(made: Floats, real: Floats, slack: Floats) -> Floats:
    """(1 + draws, segments) largest distance from the mean, in spreads; the real one is the first.

    Mean and spread include the real segment, so that it is exchangeable with the others if the
    ranges are right, whatever their shape.
    """
    pool = np.concatenate([real[None], made])
    off = np.abs(pool - pool.mean(axis=0)) / np.maximum(pool.std(axis=0), slack)
    return np.asarray(np.where(np.isfinite(real), off, 0.0).max(axis=(2, 3)))


def explained_share(far: Floats, clusters: Ints, rng: np.random.Generator) -> CoveredShare:
    """The share of windows that lie among 95 % of the draws; `far` is of `farthest_off`."""
    beyond = 1 + (far[1:] >= far[0]).sum(axis=0)
    within = beyond > (1 - BAND) * len(far)
    return covered_share(within.astype(int), np.ones(len(within), dtype=int), clusters, rng)


def covered_share(
    within: Ints, count: Ints, clusters: Ints, rng: np.random.Generator
) -> CoveredShare:
    """The share of `within` in `count` (segments,), resampled by cluster."""
    inside = np.bincount(clusters, weights=within)
    total = np.bincount(clusters, weights=count)
    rows = rng.integers(len(total), size=(_RESAMPLED, len(total)))
    of = np.maximum(total[rows].sum(axis=1), 1)
    low, high = np.quantile(inside[rows].sum(axis=1) / of, [0.025, 0.975])
    return CoveredShare(value=float(inside.sum() / total.sum()), low=float(low), high=float(high))
