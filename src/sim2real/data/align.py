"""Channels with clocks of their own, read at common times."""

from __future__ import annotations

import numpy as np

from sim2real.data.episode import Episode
from sim2real.errors import Sim2RealError


def held(times: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Index of the last sample at or before each time (zero-order hold), the first one before.

    `times` must not be empty; where they step back, the sample that came last counts.
    """
    ahead = np.maximum.accumulate(times)
    return np.maximum(np.searchsorted(ahead, at, side="right") - 1, 0)


def common_times(episode: Episode, *, clock: str = "", rate_hz: float = 0.0) -> np.ndarray:
    """Times that all channels are read at [s].

    Those of the channel `clock`; or, with a rate, regular ones over the time all channels cover;
    or, where all channels share their time stamps, these. Otherwise the choice is the caller's:
    a `Sim2RealError` asks for it.
    """
    channels = list(episode.channels.values())
    if clock:
        if clock not in episode.channels:
            return episode[clock].times  # raises, with the nearest name
        return episode.channels[clock].times
    if rate_hz > 0:
        if any(not len(channel.times) for channel in channels):
            raise Sim2RealError(f"episode {episode.id} has a channel without samples")
        start = max(float(channel.times[0]) for channel in channels)
        end = min(float(channel.times[-1]) for channel in channels)
        count = int(np.floor((end - start) * rate_hz + 1e-6)) + 1
        if not np.isfinite(count) or not 0 < count < 10**9:
            raise Sim2RealError(f"the channels of episode {episode.id} do not overlap in time")
        return start + np.arange(count) / rate_hz
    first = channels[0].times
    for name, channel in episode.channels.items():
        if not np.array_equal(channel.times, first):
            raise Sim2RealError(
                f"channel {name!r} has time stamps of its own: give a rate or a clock channel"
            )
    return first


def sampled(episode: Episode, at: np.ndarray) -> dict[str, np.ndarray]:
    """Values of every numeric channel at the given times, each held until its next sample."""
    found = {}
    for name, signal in episode.signals.items():
        if not len(signal.times):
            raise Sim2RealError(f"channel {name!r} of episode {episode.id} has no samples")
        found[name] = signal.values[held(signal.times, at)]
    return found
