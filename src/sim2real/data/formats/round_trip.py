"""What an exporter writes beside an episode, so that a reader restores it with its id."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sim2real.arrays import Array
from sim2real.data.episode import Episode, Signal
from sim2real.data.provenance import Provenance
from sim2real.data.video import Video
from sim2real.errors import Sim2RealError, number_at, table_at


def described(episode: Episode, channels: Mapping[str, object]) -> dict[str, object]:
    """An episode without its samples, as plain data; `channels` says where these are."""
    return {
        "id": episode.id,
        "outcome": episode.outcome,
        "provenance": episode.provenance.to_dict(),
        "channels": channels,
    }


def stored(channel: Signal | Video) -> Array:
    """The array that holds a channel: its values, or the bytes of its video file."""
    return np.frombuffer(channel.mp4, "u1") if isinstance(channel, Video) else channel.values


def restored_channel(
    about: Mapping[str, object], times: Array, values: Array, where: str
) -> Signal | Video:
    """The channel that `stored` gave; `about` holds its unit and rate, and if it is a video."""
    stated_hz, unit = number_at(about.get("stated_hz"), f"{where}: stated_hz"), about.get("unit")
    seconds = times.astype(np.float64, copy=False)
    if about.get("video"):
        return Video(seconds, values.astype("u1").tobytes(), stated_hz, str(unit))
    return Signal(seconds, values, str(unit), stated_hz)


def restored(
    about: Mapping[str, object], channels: Mapping[str, Signal | Video], where: str
) -> Episode:
    """The episode that `described` gave, checked against its id."""
    episode = Episode(
        channels,
        Provenance.from_dict(table_at(about.get("provenance"), where)),
        str(about.get("outcome", "")),
    )
    if episode.id != about.get("id"):
        raise Sim2RealError(f"{where} has changed since sim2real wrote it")
    return episode
