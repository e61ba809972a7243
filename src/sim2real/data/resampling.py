"""Channels with different time stamps, read at common times."""

from __future__ import annotations

import numpy as np

from sim2real.arrays import Array, Floats
from sim2real.data.episode import Episode, held
from sim2real.errors import Sim2RealError

MOST_CUT = 0.05
"""Largest share of an episode that may be cut off because not all channels cover it."""


def common_times(episode: Episode, *, clock: str = "", rate_hz: float = 0.0) -> Floats:
    """Times that all channels are read at [s].

    Those of the channel `clock`; or, with a rate, regular ones over the time that all channels
    cover, which must be nearly all of the episode; or those that all channels share. Where they
    share none, a `Sim2RealError` asks for a rate or a clock.
    """
    channels = list(episode.channels.values())
    if clock:
        # Indexing the episode itself raises, with the nearest name.
        return (episode.channels.get(clock) or episode[clock]).times
    if rate_hz > 0:
        if any(not np.isfinite(channel.times).any() for channel in channels):
            raise Sim2RealError(f"episode {episode.id} has a channel without samples")
        start = max(float(np.nanmin(channel.times)) for channel in channels)
        end = min(float(np.nanmax(channel.times)) for channel in channels)
        longest = max(float(np.nanmax(c.times) - np.nanmin(c.times)) for c in channels)
        # Channels with different rates end within a step of the slowest.
        steps = [float(np.median(np.diff(c.times))) for c in channels if len(c.times) > 1]
        slowest = max(steps, default=0.0)
        if end > start and end - start < (1 - MOST_CUT) * longest - 2 * slowest:
            raise Sim2RealError(
                f"the channels of episode {episode.id} overlap for {end - start:.3g} s of"
                f" {longest:.3g} s only: choose a channel as the clock that the others are held to"
            )
        span = (end - start) * rate_hz
        count = int(np.floor(span + 1e-6)) + 1 if abs(span) < 1e9 else 0
        if count < 1:
            raise Sim2RealError(f"the channels of episode {episode.id} do not overlap in time")
        return start + np.arange(count) / rate_hz
    first = channels[0].times
    for name, channel in episode.channels.items():
        if not np.array_equal(channel.times, first):
            raise Sim2RealError(
                f"channel {name!r} has time stamps of its own: give a rate or a clock channel"
            )
    return first


def sampled(episode: Episode, at: Floats) -> dict[str, Array]:
    """Values of every numeric channel at the times `at` [s], each held until its next sample."""
    found = {}
    for name, signal in episode.signals.items():
        if not len(signal.times):
            raise Sim2RealError(f"channel {name!r} of episode {episode.id} has no samples")
        found[name] = signal.values[held(signal.times, at)]
    return found
