"""Segments that show how far a twin is off: the worst, a typical and the best of each channel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sim2real.arrays import Floats, Ints
from sim2real.gap.channel_gap import ChannelGap

if TYPE_CHECKING:
    from sim2real.gap.replayed_pairs import ReplayedPairs

_CHANNELS = 6
"""Most channels to look at."""
_BAND = (0.025, 0.975)


@dataclass(frozen=True, kw_only=True)
class Overlay:
    """The number of a channel with the largest error, in its worst, a typical and its best
    segment."""

    channel: str
    number: str
    """Name of the number."""
    unit: str
    times_s: Floats
    """(periods,) time after the measured start [s]."""
    measured: Floats
    """(3, periods); nan where there is no reading."""
    predicted: Floats
    """(3, periods)."""
    low: Floats | None
    high: Floats | None
    """(3, periods) middle 95 % of the posterior's draws, if the twin has one."""


@dataclass(frozen=True, kw_only=True)
class SegmentErrors:
    """The error of a channel in every segment."""

    channel: str
    unit: str
    horizon_s: float
    """Length of a segment [s]."""
    recording: Ints
    """(segments,) number of its recording."""
    since_s: Floats
    """(segments,) time from the start of its recording [s]."""
    twin: Floats
    """(segments,) root mean square error [unit]."""
    floor: Floats
    """(segments,) the same of the twin's own segment [unit]."""


def overlays(
    pairs: ReplayedPairs, channels: Sequence[ChannelGap], draws: Floats | None
) -> tuple[Overlay, ...]:
    """Segments of the worst channels; `draws` (n, parameters) are those of the posterior."""
    worst = sorted(channels, key=lambda channel: -channel.ratio)[:_CHANNELS]
    return tuple(_overlay(pairs, channel.name, draws) for channel in worst)


def _overlay(pairs: ReplayedPairs, channel: str, draws: Floats | None) -> Overlay:
    real = pairs.real
    spec = next(s for s in real.log.contract.sensors if s.name == channel)
    errors = real.errors[0][..., real.column(channel)]
    component = int(np.nansum(errors**2, axis=(0, 1)).argmax())
    column = real.column(channel).start + component
    order = np.argsort(_each(errors))
    chosen = np.array([order[-1], order[len(order) // 2], order[0]])
    low, high = None, None
    if draws is not None:
        drawn = pairs.replayer.part(chosen)(draws).predicted[..., column]
        low, high = np.nanquantile(drawn, _BAND, axis=0)
    return Overlay(
        channel=channel,
        number=spec.numbers[component],
        unit=spec.unit,
        times_s=np.arange(1, pairs.steps + 1) * np.float64(real.period_s),
        measured=real.measured[chosen, :, column],
        predicted=real.predicted[0, chosen, :, column],
        low=low,
        high=high,
    )


def along_time(pairs: ReplayedPairs, channels: Sequence[ChannelGap]) -> SegmentErrors:
    """The error of the worst channel in every segment."""
    worst = max(channels, key=lambda channel: channel.ratio)
    part = pairs.real.column(worst.name)
    twin, floor = (_each(one.errors[0][..., part]) for one in (pairs.real, pairs.simulated))
    return SegmentErrors(
        channel=worst.name,
        unit=worst.unit,
        horizon_s=pairs.horizon_s,
        recording=pairs.recording,
        since_s=pairs.since_s,
        twin=twin,
        floor=floor,
    )


def _each(errors: Floats) -> Floats:
    """(segments,) root mean square of errors (segments, periods, numbers)."""
    count = np.maximum(np.isfinite(errors).sum(axis=(1, 2)), 1)
    return np.asarray(np.sqrt(np.nansum(errors**2, axis=(1, 2)) / count))
