"""A motor with a ball screw under PD control: the benchmark EMPS, by forces and in closed loop."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.real.dataset import EXAMPLES, DataSet
from benchmarks.real.inverse import inverse_fit
from benchmarks.real.open_loop import open_loop
from sim2real.data import ChannelMap, Episode, Origin, Provenance, read_episodes
from sim2real.logs.alignment import aligned
from sim2real.twin import Twin

TWIN = "emps"
FOLDER = "emps"
_SYMMETRIC = {
    "M": ("body/carriage/mass", 95.1089, 0.1085),
    "Fv": ("joint/slide/damping", 203.5034, 1.1460),
    "Fc": ("joint/slide/frictionloss", 20.3935, 0.1012),
    "offset": ("option/gravity[0]", -3.1648, 0.0444),
}
"""Parameters of the symmetric model: ours, and the published value and standard deviation."""
PUBLISHED = {
    "force_error_pct": (3.1117, "inverse model with asymmetric friction; 4.0834 symmetric"),
    "sim_position_pct": (0.013752, "closed-loop simulation"),
    "sim_force_pct": (5.848, "closed-loop simulation"),
    **{name: (value, "symmetric model") for name, (_, value, _) in _SYMMETRIC.items()},
}
TARGETS = {
    "force_error_pct": "<= 3.1",
    "worst_deviation": "<= 2",
    "sim_position_pct": "<= 0.01375",
    "sim_force_pct": "<= 5.848",
}


def train_files(data: Path) -> list[Path]:
    """The benchmark's estimation record."""
    return sorted((data / FOLDER / "train").glob("*.mat"))


def test_files(data: Path) -> list[Path]:
    """Recordings to score; the estimation record itself where none is held out, as published."""
    return sorted((data / FOLDER / "test").glob("*.mat")) or train_files(data)


def read(path: Path, examples: Path = EXAMPLES) -> list[Episode]:
    """The recording in a file, its reference one period early.

    In a log, a command shows in the next readings. Here the controller is part of the twin, and
    the voltage in a row is what it made of the reference in the same row.
    """
    channels = ChannelMap.load(examples / TWIN / "channels.toml")
    found = []
    for episode in read_episodes(path, channels=channels, base=Provenance(kind=Origin.REAL)):
        reference = episode["reference"]
        # The first one would come before the first reading.
        early = replace(reference, times=reference.times[:-1], values=reference.values[1:])
        moved = {**episode.channels, "reference": early}
        found.append(episode.derive("reference one period early", channels=moved))
    return found


def score(twin: Twin, episodes: list[Episode]) -> dict[str, float]:
    """Relative errors of position and force in a closed-loop simulation from begin to end [%]."""
    left, whole = np.zeros(2), np.zeros(2)
    for episode in episodes:
        replay = open_loop(twin, episode)
        known = np.isfinite(replay.errors[0]).all(axis=-1)
        left += (replay.errors[0][known] ** 2).sum(axis=0)
        whole += (replay.measured[known] ** 2).sum(axis=0)
    position, force = 100.0 * np.sqrt(left / whole)
    return {"sim_position_pct": float(position), "sim_force_pct": float(force)}


def estimation(twin: Twin, episodes: list[Episode]) -> dict[str, float]:
    """Figures of the inverse model, which the benchmark defines on the record they are fitted to.

    `force_error_pct` is what all parameters of the twin leave of the force; the others are of the
    symmetric model: `worst_deviation` is from the published values, in standard deviations.
    """
    logs = [aligned(episode, twin) for episode in episodes]
    names = [name for name, _, _ in _SYMMETRIC.values()]
    whole, simple = inverse_fit(twin, logs), inverse_fit(twin, logs, fitted=names)
    values = dict(zip(simple.names, simple.values.tolist(), strict=True))
    found = {short: values[name] for short, (name, _, _) in _SYMMETRIC.items()}
    # A bench that leans pulls with its share of the weight; the force has to make up for it.
    found["offset"] *= -found["M"]
    worst = max(abs(found[short] - v) / s for short, (_, v, s) in _SYMMETRIC.items())
    return {
        "force_error_pct": 100.0 * float(whole.error[0]),
        "symmetric_error_pct": 100.0 * float(simple.error[0]),
        **found,
        "worst_deviation": worst,
    }


DATA_SET = DataSet(
    folder=FOLDER,
    twin=TWIN,
    published=PUBLISHED,
    targets=TARGETS,
    train_files=train_files,
    test_files=test_files,
    read=read,
    score=score,
    estimation=estimation,
)
