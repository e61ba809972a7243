"""Channels with different time stamps, read at common times."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sim2real.arrays import Floats
from sim2real.data.episode import Episode, Signal, held
from sim2real.data.formats.film import frames_at
from sim2real.data.video import Video
from sim2real.errors import Sim2RealError

MAX_UNCOVERED_SHARE = 0.05
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
        if end > start and end - start < (1 - MAX_UNCOVERED_SHARE) * longest - 2 * slowest:
            raise Sim2RealError(
                f"the channels of episode {episode.id} overlap for only {end - start:.3g} s"
                f" of {longest:.3g} s: choose one channel as the clock"
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
                f"channel {name!r} has its own time stamps: give a rate or a clock channel"
            )
    return first


def held_channels(episode: Episode, at: Floats, *, stated_hz: float) -> dict[str, Signal | Video]:
    """The channels at the times `at` [s], each sample held until the next.

    A channel that has these times stays as it is; the others state the rate `stated_hz` [Hz].
    """
    found = dict(episode.channels)
    for name, channel in episode.channels.items():
        if np.array_equal(channel.times, at):
            continue
        if not len(channel.times):
            raise Sim2RealError(f"channel {name!r} of episode {episode.id} has no samples")
        rows = held(channel.times, at)
        if isinstance(channel, Video):
            found[name] = Video.encode(at, frames_at(channel, rows), stated_hz=stated_hz)
        else:
            found[name] = Signal(at, channel.values[rows], channel.unit, stated_hz)
    return found


def derived(episode: Episode, process: str, channels: Mapping[str, Signal | Video]) -> Episode:
    """The episode made by `process`; itself if that left all channels as they were."""
    if all(channels[name] is channel for name, channel in episode.channels.items()):
        return episode
    return episode.derive(process, channels=channels)
