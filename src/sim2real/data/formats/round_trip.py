"""What an exporter writes beside an episode, so that a reader restores it with its id."""

from __future__ import annotations

from collections.abc import Callable, Mapping

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


def restored(
    about: object, samples: Callable[[Mapping[str, object]], tuple[Array, Array]], where: str
) -> Episode:
    """The episode that `described` gave, checked against its id.

    `samples` gives times and the array that `stored` gave, by the description of a channel.
    """
    told = table_at(about, where)
    channels: dict[str, Signal | Video] = {}
    for name, entry in table_at(told.get("channels"), f"{where}: channels").items():
        channel = table_at(entry, f"{where}: {name!r}")
        stated_hz = number_at(channel.get("stated_hz"), f"{where}: {name!r}: stated_hz")
        times, values = samples(channel)
        seconds, unit = times.astype(np.float64, copy=False), str(channel.get("unit"))
        if channel.get("video"):
            channels[name] = Video(seconds, values.astype("u1").tobytes(), stated_hz, unit)
        else:
            channels[name] = Signal(seconds, values, unit, stated_hz)
    return made_again(told, channels, where)


def made_again(
    about: Mapping[str, object], channels: Mapping[str, Signal | Video], where: str
) -> Episode:
    """The episode of a description and its channels, checked against its id."""
    episode = Episode(
        channels,
        Provenance.from_dict(table_at(about.get("provenance"), where)),
        str(about.get("outcome", "")),
    )
    if episode.id != about.get("id"):
        raise Sim2RealError(f"{where} has changed since sim2real wrote it")
    return episode
