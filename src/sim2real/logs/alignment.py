"""Aligns a log to even control periods that are whole time steps of the twin.

Commands are held, as hardware holds them; readings are interpolated between their samples, so
nothing is delayed. Periods without samples have no reading. Time stamps that repeat or go backwards
are refused or dropped, never smoothed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np

from sim2real.arrays import Floats
from sim2real.contract import Contract
from sim2real.data import ChannelMap, Episode, Logs, Signal, read_logs
from sim2real.errors import Sim2RealError
from sim2real.logs.cleaning import channels_of, usable
from sim2real.logs.control_log import ControlLog
from sim2real.logs.thresholds import LOG_THRESHOLDS, LogThresholds
from sim2real.twin import Twin, twin_contract

_MAX_JITTER = 0.02
"""Scatter of time stamps, as a share of a period, up to which nothing is interpolated."""
_MAX_DISTANCE = 1.5
"""Distance to the nearest sample, in periods, above which a reading is missing."""


def aligned(
    episode: Episode,
    twin: Twin,
    *,
    rate_hz: float = 0.0,
    thresholds: LogThresholds = LOG_THRESHOLDS,
) -> ControlLog:
    """The log of an episode on even control periods, each a whole number of the twin's steps.

    `rate_hz` is the control rate, by default the nearest possible to the command's. An episode of
    another robot, without commands or with bad time stamps is a `Sim2RealError`.
    """
    contract = twin_contract(twin, rate_hz or 100.0)
    clean = usable(episode, contract, twin, thresholds)
    probe = ControlLog.of(clean, contract, twin.channels)
    step_s = float(twin.compile().model.opt.timestep)
    steps = np.diff(probe.times)
    typical = 1.0 / rate_hz if rate_hz else float(np.median(steps)) if len(steps) else 0.0
    if typical <= 0:
        raise Sim2RealError(f"episode {episode.id} has too few samples")
    period = max(1, round(typical / step_s)) * step_s
    contract = twin_contract(twin, 1.0 / period)
    regular = np.abs(steps - period) < _MAX_JITTER * period
    if regular.all():
        even = clean
    else:
        even = _resampled(clean, twin, contract, period, thresholds.wrong_stamps)
    lost = [
        len(signal.times) - len(clean.signals[name].times)
        for name, signal in episode.signals.items()
    ]
    # A resampled log still belongs to the episode of that id.
    log = ControlLog.of(even, contract, twin.channels)
    return replace(log, episode=episode.id, left_out=sum(lost))


def aligned_logs(
    twin: Twin,
    logs: Logs | Sequence[ControlLog],
    *,
    channels: ChannelMap | Path | str | None = None,
    rate_hz: float = 0.0,
    thresholds: LogThresholds = LOG_THRESHOLDS,
) -> list[ControlLog]:
    """The logs of episodes, or of where they are kept, on even control periods; see `read_logs`.

    Logs that are aligned already stay as they are.
    """
    if isinstance(logs, Sequence) and any(isinstance(log, ControlLog) for log in logs):
        return cast(list[ControlLog], list(logs))
    episodes = read_logs(cast(Logs, logs), channels=channels)
    return [aligned(episode, twin, rate_hz=rate_hz, thresholds=thresholds) for episode in episodes]


def _resampled(
    episode: Episode, twin: Twin, contract: Contract, period: float, most_wrong: float
) -> Episode:
    """The episode with every numeric channel at even times."""
    kinds = channels_of(episode, contract, twin)
    # Channels the twin does not know may have clocks of any kind.
    stamps = np.concatenate([episode.signals[name].times for name in kinds])
    start, end = float(stamps.min()), float(stamps.max())
    grid = start + period * np.arange(int((end - start) / period + 1e-6) + 1.0)
    channels = {}
    for name, kind in kinds.items():
        clean = _forward(episode, name, most_wrong)
        if not len(clean.times):
            continue
        if kind != "reading" or clean.values.dtype.kind == "b":
            known = grid >= clean.times[0] - 1e-9
            values = clean.values[clean.held(grid[known] + 1e-9)]
            channels[name] = Signal(grid[known], values, clean.unit, 1.0 / period)
        else:
            channels[name] = _interpolated(clean, grid, period)
    return replace(episode, channels=channels)


def _interpolated(signal: Signal, grid: Floats, period: float) -> Signal:
    after = np.clip(np.searchsorted(signal.times, grid), 0, len(signal.times) - 1)
    before = np.maximum(after - 1, 0)
    near = np.minimum(np.abs(signal.times[after] - grid), np.abs(signal.times[before] - grid))
    inside = (grid >= signal.times[0] - 1e-9) & (grid <= signal.times[-1] + 1e-9)
    # Between the samples of a sensor slower than the grid nothing is missing; it is just not new.
    usual = (
        max(period, float(np.median(np.diff(signal.times)))) if len(signal.times) > 1 else period
    )
    keep = inside & (near <= _MAX_DISTANCE * usual)
    if usual > 1.5 * period:
        keep &= near <= 0.5 * period
    flat = signal.values.reshape(len(signal.values), -1).astype(float)
    values = np.stack(
        [np.interp(grid[keep], signal.times, flat[:, k]) for k in range(flat.shape[1])], axis=1
    )
    shape = (int(keep.sum()), *signal.shape)
    return Signal(grid[keep], values.reshape(shape), signal.unit, 1.0 / period)


def _forward(episode: Episode, name: str, most_wrong: float) -> Signal:
    """The samples whose time stamps increase; a `Sim2RealError` if too many do not."""
    signal = episode.signals[name]
    times = signal.times
    good = np.isfinite(times)
    good[good] &= np.concatenate([[True], np.diff(np.maximum.accumulate(times[good])) > 0])
    if len(times) and (~good).mean() > most_wrong:
        raise Sim2RealError(
            f"episode {episode.id}: {(~good).mean():.0%} of the time stamps of {name!r} repeat or"
            " go backwards; `sim2real data check --repair` says what is wrong"
        )
    return replace(signal, times=times[good], values=signal.values[good])
