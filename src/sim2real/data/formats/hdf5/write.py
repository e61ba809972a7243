"""Episodes written as robomimic's HDF5, which its training code and many others read.

Robomimic's layout has one rate. An episode whose channels do not share their time stamps is
brought to common ones first, and what is written is that new episode, which names its parent. What
the layout has no place for (units, provenance, time stamps, encoded videos) stands in a group of
its own, so that `read_hdf5` gives each episode back with its id.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from sim2real.data.episode import Episode, Signal
from sim2real.data.formats.film import video_of
from sim2real.data.formats.hdf5.read import OWN
from sim2real.data.resampling import common_times, held, sampled
from sim2real.data.video import Video
from sim2real.errors import Sim2RealError
from sim2real.files import atomic_path

_GYM = 2  # Robomimic's number for an environment made by its name.
_PLACES = {"action": "actions", "actions": "actions", "rewards": "rewards", "dones": "dones",
           "states": "states"}  # fmt: skip


def write_hdf5(
    path: Path, episodes: Iterable[Episode], *, rate_hz: float = 0.0, clock: str = ""
) -> None:
    """Write episodes as demonstrations: actions, rewards, dones and states by name, the rest as
    observations. Common times are those of the channel `clock`, or regular at `rate_hz` [Hz].
    """
    total, number, rates, task = 0, -1, [], ""
    with atomic_path(path) as temporary, h5py.File(temporary, "w") as file:
        data = file.create_group("data")
        for number, episode in enumerate(episodes):
            at = common_times(episode, clock=clock, rate_hz=rate_hz)
            single = _single_rate(episode, at, rate_hz)
            try:
                _write_demo(file, f"demo_{number}", single, at)
            except (OSError, TypeError, ValueError) as error:
                words = " ".join(str(error).split())
                raise Sim2RealError(f"cannot write episode {episode.id}: {words}") from None
            total += len(at)
            task = task or episode.provenance.task
            if len(at) > 1:
                rates.append(1 / max(float(np.median(np.diff(at))), 1e-9))
        if number < 0:
            raise Sim2RealError(f"no episodes to write into {path}")
        data.attrs["total"] = total
        rate = rate_hz or (round(float(np.median(rates)), 6) if rates else 0.0)
        kwargs = {"control_freq": rate} if rate else {}
        data.attrs["env_args"] = json.dumps(
            {"env_name": task, "type": _GYM, "env_version": "", "env_kwargs": kwargs}
        )


def _single_rate(episode: Episode, at: np.ndarray, rate_hz: float) -> Episode:
    """The episode with all channels at the times `at`; itself where they are so already."""
    if all(np.array_equal(channel.times, at) for channel in episode.channels.values()):
        return episode
    channels: dict[str, Signal | Video] = {}
    values = sampled(episode, at)
    for name, channel in episode.channels.items():
        if isinstance(channel, Signal):
            channels[name] = replace(channel, times=at, values=values[name], stated_hz=rate_hz)
        else:
            pictures = _pictures(channel, held(channel.times, at))
            channels[name] = video_of(at, pictures, stated_hz=rate_hz)
    how = f"at {rate_hz:g} Hz" if rate_hz else "at the times of one channel"
    return episode.derive(f"held {how}", channels=channels)


def _pictures(video: Video, places: np.ndarray) -> Iterator[np.ndarray]:
    """The frames at the given places, which do not decrease."""
    frames = (picture for _, picture in video.frames(-math.inf, math.inf))
    at, picture = -1, np.empty(0, np.uint8)
    for place in places.tolist():
        while at < place:
            picture, at = next(frames), at + 1
        yield picture


def _write_demo(file: h5py.File, name: str, episode: Episode, at: np.ndarray) -> None:
    demo = file.create_group(f"data/{name}")
    demo.attrs["num_samples"] = len(at)
    own = file.create_group(f"{OWN}/{name}")
    own["times"] = at
    channels: dict[str, Any] = {}
    for channel, signal in episode.channels.items():
        place = _PLACES.get(channel) or "obs/" + channel.removeprefix("obs/").replace("/", "_")
        while place in demo:
            place += "_"
        about = {"unit": signal.unit, "stated_hz": signal.stated_hz}
        if isinstance(signal, Video):
            everything = np.arange(len(signal.times))
            height, width, _ = signal.shape
            pictures = demo.create_dataset(
                place,
                (len(at), height, width, 3),
                "u1",
                chunks=(1, height, width, 3),
                compression="gzip",
                compression_opts=1,
            )
            for number, picture in enumerate(_pictures(signal, everything)):
                pictures[number] = picture
            # The encoded film as well: pictures that are encoded again are no longer the same.
            film = f"film_{len(channels)}"
            own[film] = np.frombuffer(signal.mp4, "u1")
            channels[channel] = {**about, "data": f"{OWN}/{name}/{film}", "video": True}
        else:
            demo[place] = signal.values
            channels[channel] = {**about, "data": f"data/{name}/{place}"}
    told = {
        "id": episode.id,
        "outcome": episode.outcome,
        "provenance": episode.provenance.to_dict(),
        "channels": channels,
    }
    own["about"] = np.frombuffer(json.dumps(told).encode(), "u1")
