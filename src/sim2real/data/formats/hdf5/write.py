"""Episodes written as robomimic's HDF5, which its training code and many others read.

Robomimic's layout has a single rate. Channels with different time stamps are sampled at common
times first; the new episode that results names its parent. Units, provenance, time stamps and
encoded videos, which have no place in the layout, are kept in a group of their own, so that
`read_hdf5` restores each episode with its id.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import h5py
import numpy as np

from sim2real.arrays import Floats
from sim2real.data.episode import Episode
from sim2real.data.formats.film import frames_at
from sim2real.data.formats.hdf5.read import OWN
from sim2real.data.formats.round_trip import described, stored
from sim2real.data.resampling import common_times, derived, held_channels
from sim2real.data.video import Video
from sim2real.errors import explaining
from sim2real.files import atomic_path

_GYM = 2  # robomimic's number for an environment that is created by name
_PLACES = {"action": "actions", "actions": "actions", "rewards": "rewards", "dones": "dones",
           "states": "states"}  # fmt: skip


def write_hdf5(
    path: Path, episodes: Iterable[Episode], *, rate_hz: float = 0.0, clock: str = ""
) -> None:
    """Write episodes as demonstrations: actions, rewards, dones and states by name, other channels
    as observations. Common times are those of the channel `clock`, or regular at `rate_hz` [Hz].
    """
    total, rates, task = 0, [], ""
    with atomic_path(path) as temporary, h5py.File(temporary, "w") as file:
        data = file.create_group("data")
        for number, episode in enumerate(episodes):
            at = common_times(episode, clock=clock, rate_hz=rate_hz)
            how = f"held at {rate_hz:g} Hz" if rate_hz else "held at the times of one channel"
            single = derived(episode, how, held_channels(episode, at, stated_hz=rate_hz))
            with explaining(f"cannot write episode {episode.id}", OSError, TypeError, ValueError):
                _write_demo(file, f"demo_{number}", single, at)
            total += len(at)
            task = task or episode.provenance.task
            if len(at) > 1:
                rates.append(1 / max(float(np.median(np.diff(at))), 1e-9))
        data.attrs["total"] = total
        rate = rate_hz or (round(float(np.median(rates)), 6) if rates else 0.0)
        kwargs = {"control_freq": rate} if rate else {}
        data.attrs["env_args"] = json.dumps(
            {"env_name": task, "type": _GYM, "env_version": "", "env_kwargs": kwargs}
        )


def _write_demo(file: h5py.File, name: str, episode: Episode, at: Floats) -> None:
    demo = file.create_group(f"data/{name}")
    demo.attrs["num_samples"] = len(at)
    own = file.create_group(f"{OWN}/{name}")
    own["times"] = at
    channels: dict[str, object] = {}
    for channel, signal in episode.channels.items():
        place = _PLACES.get(channel) or "obs/" + channel.removeprefix("obs/").replace("/", "_")
        while place in demo:
            place += "_"
        about = {"unit": signal.unit, "stated_hz": signal.stated_hz}
        if isinstance(signal, Video):
            height, width, _ = signal.shape
            pictures = demo.create_dataset(
                place,
                (len(at), height, width, 3),
                "u1",
                chunks=(1, height, width, 3),
                compression="gzip",
                compression_opts=1,
            )
            for number, picture in enumerate(frames_at(signal, np.arange(len(signal.times)))):
                pictures[number] = picture
            # The encoded video as well: images that are encoded again are not the same.
            film = f"film_{len(channels)}"
            own[film] = stored(signal)
            channels[channel] = {**about, "data": f"{OWN}/{name}/{film}", "video": True}
        else:
            demo[place] = signal.values
            channels[channel] = {**about, "data": f"data/{name}/{place}"}
    told = json.dumps(described(episode, channels))
    own["about"] = np.frombuffer(told.encode(), "u1")
