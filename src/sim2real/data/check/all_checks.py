"""All checks of an episode, in an order in which one fault does not hide another."""

from __future__ import annotations

import numpy as np

from sim2real.data.check.bad_values import bad_samples, check_values
from sim2real.data.check.clipped_sensors import check_clipped
from sim2real.data.check.clock_rate import check_clock_drift, check_clock_rate, lag_drifts
from sim2real.data.check.frozen_channels import check_frozen
from sim2real.data.check.late_actions import check_late_actions
from sim2real.data.check.log_fault import SEVERITIES, LogFault
from sim2real.data.check.related_channels import command_position_pairs, position_velocity_pairs
from sim2real.data.check.scalar_series import ScalarSeries, scalar_series
from sim2real.data.check.thresholds import CHECK_THRESHOLDS, CheckThresholds
from sim2real.data.check.time_stamps import (
    check_clock,
    check_clock_readings,
    check_clocks_agree,
    shared_clocks,
)
from sim2real.data.check.wrong_units import check_units
from sim2real.data.episode import Episode


def check_episode(
    episode: Episode, *, thresholds: CheckThresholds = CHECK_THRESHOLDS
) -> list[LogFault]:
    """The faults of a recorded log, worst first; none for a clean one.

    Time stamps are checked in every channel, values in the numeric ones. What was found wrong is
    left out of later checks, so that each fault is reported once.
    """
    with np.errstate(over="ignore", under="ignore"):
        return sorted(_faults(episode, thresholds), key=lambda f: SEVERITIES.index(f.severity))


def _faults(episode: Episode, thresholds: CheckThresholds) -> list[LogFault]:
    found: list[LogFault] = []
    ticking = shared_clocks(episode)
    for clock in ticking:
        found += check_clock(clock, thresholds)
    marks = {}
    for name, signal in episode.signals.items():
        broken, absurd = bad_samples(signal, name)
        found += check_values(name, signal, broken, absurd)
        marks[name] = broken | absurd
    single = scalar_series(episode, marks)
    moving = position_velocity_pairs(single)
    following = command_position_pairs(single)
    clipped = list(check_clipped(single, moving))
    # A flat top is reported once, and says nothing about time or units.
    cut = {(f.channel, f.span.component) for f in clipped}
    found += clipped
    flat = {channel for channel, _ in cut}
    found += check_frozen(single, moving, following, flat, thresholds.frozen_samples)
    moving = [m for m in moving if not {_key(m.position), _key(m.velocity)} & cut]
    found += check_units(single, moving, following)
    if not any(f.kind == "time-rate" for f in found):
        found += check_clock_rate(moving)
    found += check_clock_readings(single, thresholds)
    lags = lag_drifts(moving, following)
    sharing = {name: len(clock.names) for clock in ticking for name in clock.names}
    drifting = list(check_clock_drift(lags, sharing))
    found += drifting
    if not drifting:
        steady = {frozenset((d.cause.channel, d.response.channel)) for d in lags if not d.rate}
        found += check_clocks_agree(ticking, steady, thresholds)
    # A clock that drifts has another rate than stated for that reason alone.
    drifted = {name for f in found if f.kind == "clock-drift" for name in f.channels}
    found = [f for f in found if f.kind != "time-rate" or not drifted & set(f.channels)]
    # An action on a drifting clock is early or late for that reason alone.
    if not drifted:
        found += check_late_actions(single, following)
    return found


def _key(series: ScalarSeries) -> tuple[str, int | None]:
    return series.channel, series.component
