"""The gap between a twin and its robot, measured by replaying the real actions in the twin.

It says how far predictions are off, by channel and over the horizon; whether real and simulated
states and transitions can be told apart; and where in state space and in time the gap is largest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from sim2real.data import ChannelMap, Logs
from sim2real.errors import Sim2RealError
from sim2real.gap.channel_gap import ChannelGap
from sim2real.gap.error_hotspots import find_hotspots
from sim2real.gap.gap import Gap
from sim2real.gap.horizon_errors import channel_gaps
from sim2real.gap.reading_coverage import range_coverage
from sim2real.gap.replayed_pairs import ReplayedPairs, make_pairs
from sim2real.gap.shown_segments import along_time, overlays
from sim2real.gap.thresholds import GAP_THRESHOLDS, GapThresholds
from sim2real.gap.two_sample import distances
from sim2real.logs import ControlLog, aligned_logs
from sim2real.phases import Report, phase
from sim2real.policy import open_twin
from sim2real.randomize import drawn
from sim2real.replay import seconds_of
from sim2real.twin import Twin

_FEW_SEGMENTS = 20
"""Number of segments below which shorter segments are tested, too."""
_SHORTER = 5
"""How many times shorter those are than the horizon."""
_MIN_STEPS = 3
"""Fewest periods of a segment."""


def measure_gap(
    twin: Twin | Path | str,
    logs: Logs | Sequence[ControlLog],
    *,
    channels: ChannelMap | Path | str | None = None,
    rate_hz: float = 0.0,
    horizon_s: float = 0.5,
    remainder: bool = False,
    thresholds: GapThresholds = GAP_THRESHOLDS,
    seed: int = 0,
    threads: int = 0,
    report: Report = lambda done, of: None,
) -> Gap:
    """Measure how far a twin's best guess is from the robot that made some logs; see `Gap`.

    CSV and similar logs may need a map of their `channels`. `rate_hz` is the control rate, by
    default that of the logs; `horizon_s` is how far the twin predicts ahead from each measured
    state. With `remainder` the twin's learned remainder acts. Use logs that the twin was not
    identified from. For a twin with a posterior this includes the coverage of its draws. Logs that
    are too short for `horizon_s`, or of another robot, are a `Sim2RealError`.
    """
    if not 0 < horizon_s < math.inf:
        raise Sim2RealError(f"--horizon-s must be a positive number of seconds, not {horizon_s:g}")
    if seed < 0:
        raise Sim2RealError(f"--seed must not be negative, got {seed}")
    twin = open_twin(twin)
    logs = aligned_logs(twin, logs, channels=channels, rate_hz=rate_hz)
    _refuse_rates(logs)
    make = partial(make_pairs, twin, logs, seed=seed, remainder=remainder, threads=threads)
    draws = None
    if twin.posterior is not None:
        draws = drawn(twin, "posterior", count=thresholds.draws, seed=seed).numpy()
    pairs = make(
        horizon_s=horizon_s,
        most=thresholds.segments,
        draws=draws,
        report=phase(report, f"segments of {horizon_s:g} s"),
    )
    short_s = max(horizon_s / _SHORTER, _MIN_STEPS * pairs.real.period_s)
    short = make(
        horizon_s=short_s,
        most=thresholds.short_segments,
        apart=False,
        report=phase(report, f"segments of {short_s:.2g} s"),
    )
    tests, why = distances(pairs, seed=seed), []
    if len(pairs.recording) < _FEW_SEGMENTS:
        why.append(
            f"there are only {len(pairs.recording)} segments of {pairs.horizon_s:.2g} s: the tests"
            f" of real against simulated motion also use segments of {short_s:.2g} s"
        )
        close = make(horizon_s=short_s, most=thresholds.segments)
        tests = distances(close, seed=seed) + tests[-1:]
    covered = None
    if twin.posterior is not None and not remainder:
        try:
            covered = range_coverage(
                twin, logs, source="posterior", draws=thresholds.draws, horizon_s=horizon_s,
                thresholds=thresholds, seed=seed, threads=threads,
                report=phase(report, "coverage"),
            )  # fmt: skip
        except Sim2RealError as error:
            why.append(f"the posterior's coverage was not checked: {error}")
    errors = channel_gaps(pairs, thresholds=thresholds, seed=seed)
    return Gap(
        twin=twin.name,
        version=twin.version,
        horizon_s=pairs.horizon_s,
        recordings=tuple(log.episode for log in logs),
        seconds=seconds_of(logs),
        segments=len(pairs.recording),
        diverged=pairs.diverged,
        channels=errors,
        distances=tests,
        places=find_hotspots(short, pairs, seed=seed),
        coverage=covered,
        notes=(*_notes(logs, pairs, errors), *why),
        overlays=overlays(pairs, errors, draws),
        along_time=along_time(pairs, errors),
        level=thresholds.level,
    )


def _refuse_rates(logs: Sequence[ControlLog]) -> None:
    """Refuse logs of several control rates."""
    rates = sorted({log.contract.rate_hz for log in logs})
    if len(rates) > 1:
        raise Sim2RealError(
            f"the recordings have control rates from {rates[0]:.4g} to {rates[-1]:.4g} Hz: choose"
            " one for all of them (--rate-hz)"
        )


def _notes(
    logs: Sequence[ControlLog], pairs: ReplayedPairs, channels: Sequence[ChannelGap]
) -> Iterator[str]:
    """What limits the result, a sentence each."""
    samples = sum(log.left_out for log in logs)
    if samples:
        yield (
            f"{samples} samples that are not finite or not possible are left out; `sim2real data"
            " check` lists them"
        )
    in_spreads = [channel.in_spread for channel in channels if channel.in_spread is not None]
    if in_spreads and np.median(in_spreads) > 1:
        yield (
            f"after {pairs.horizon_s:.2g} s most predictions are worse than the mean reading: the"
            " motion is unstable, and a shorter --horizon-s says more, or the recordings are of"
            " another robot or in other units than the twin expects"
        )
    still = [channel.name for channel in channels if not channel.moves]
    if still:
        yield (
            f"readings of {', '.join(still)} hardly change by more than noise: the motions do not"
            " affect them, or the sensor is stuck"
        )
    silent = [channel.name for channel in channels if not channel.declared]
    if silent:
        yield (
            f"the twin declares little or no noise for {', '.join(silent)}, so every difference"
            " counts, and a noise level is a ten-thousandth of the range; declare the noise in"
            " [effects.sensor] of the twin"
        )
    if pairs.diverged:
        yield f"the twin diverged in {pairs.diverged} segments, which are left out"
    if pairs.real.assumed:
        yield (
            f"no sensor measures {', '.join(pairs.real.assumed)}: they start at the model's default"
        )
    seen = [spec for spec, _ in pairs.sensors]
    missing = [spec.name for spec in pairs.real.log.contract.sensors if spec not in seen]
    if missing:
        yield f"the logs have no readings of {', '.join(missing)}"
    stays = [channel.name for channel in channels if not channel.predicts]
    if stays:
        yield (
            f"after {pairs.horizon_s:.2g} s, assuming no change predicts {', '.join(stays)} better"
            " than the twin"
        )
    late = [
        f"{c.name} {1000 * c.lag.seconds:+.0f} ms ({100 * c.lag.explains:.0f} %)"
        for c in channels
        if c.lag is not None and c.lag.told
    ]
    if late:
        yield (
            "the robot is behind (+) or ahead of (-) the prediction, with the share of the squared"
            f" error that this explains: {', '.join(late)}"
        )
