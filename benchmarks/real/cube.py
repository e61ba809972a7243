"""A cube tossed onto a table: flight, impacts, sliding and rest, predicted from the first rows.

One file holds all tosses. A toss is named by a path into it, `tosses.npz/toss_003`, so that tosses
are told apart as files are.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from benchmarks.real.dataset import EXAMPLES, DataSet
from sim2real.data import ChannelMap, Episode, Origin, Provenance, read_episodes
from sim2real.logs.alignment import aligned
from sim2real.logs.control_log import ControlLog
from sim2real.replay.replayer import Replay, Replayer
from sim2real.twin import Twin

TWIN = "cube"
FOLDER = "contactnets_cube"
PUBLISHED = {
    "position_percent": (
        22.8,
        "contact parameters published for MuJoCo, stiffness and damping x 3",
    ),
    "rotation_deg": (21.9, "contact parameters published for MuJoCo, stiffness and damping x 3"),
}
TARGETS = {"position_percent": "<= 12.5", "rotation_deg": "<= 18.5"}
WIDTH_M = 0.1048
"""Width of the cube [m], as stated: positions are compared in shares of it."""
_EVERY = 4
"""One toss of so many is held back where there are none to test on."""
_TOGETHER = 32
"""Tosses of similar length that are replayed at a time."""


def train_files(data: Path) -> list[Path]:
    """Tosses to fit."""
    tosses = _tosses(data / FOLDER / "train")
    if _tosses(data / FOLDER / "test"):
        return tosses
    return [toss for k, toss in enumerate(tosses) if k % _EVERY != _EVERY - 1]


def test_files(data: Path) -> list[Path]:
    """Tosses to score: those held out, or else every fourth one."""
    return _tosses(data / FOLDER / "test") or _tosses(data / FOLDER / "train")[_EVERY - 1 :: _EVERY]


def read(path: Path, examples: Path = EXAMPLES) -> list[Episode]:
    """The toss that a path names, by the channel map of its twin."""
    return [_read(path.parent, examples)[path.name]]


def score(twin: Twin, episodes: list[Episode]) -> dict[str, float]:
    """`position_percent` of the cube's width and `rotation_deg`, and their medians over tosses.

    Each is the mean over a toss, from its first row to its last, then over tosses. The
    first state is read from the first two rows: a recorded speed is of half a sample ago, and the
    pose is read a physics step after the row.
    """
    errors = toss_errors(twin, episodes)
    mean, middle = errors.mean(axis=0), np.median(errors, axis=0)
    return {
        "position_percent": float(mean[0]),
        "rotation_deg": float(mean[1]),
        "position_percent_median": float(middle[0]),
        "rotation_deg_median": float(middle[1]),
    }


def toss_errors(twin: Twin, episodes: list[Episode]) -> np.ndarray:
    """(tosses, 2) mean position error [% of the width] and rotation error [deg] of each toss."""
    logs = [aligned(episode, twin) for episode in episodes]
    values = twin.best_guess()[None]
    found = np.zeros((len(logs), 2))
    order = np.argsort([len(log.times) for log in logs], kind="stable")
    for first in range(0, len(order), _TOGETHER):
        group = order[first : first + _TOGETHER]
        joined = ControlLog.join([logs[k] for k in group])
        longest = float(np.ptp(logs[group[-1]].times))
        replayer = Replayer(twin, joined, horizon_s=longest, values=values, recordings=True)
        found[group] = _errors(replayer(values))
    return found


def _errors(replay: Replay) -> np.ndarray:
    """(tosses, 2) of one replay; infinite where a world diverged."""
    place, turn = replay.column("position"), replay.column("orientation")
    seen: np.ndarray = np.asarray(replay.valid[..., place].all(axis=2))
    away = np.linalg.norm(replay.errors[0][..., place], axis=2)
    measured, predicted = replay.measured[..., turn], replay.predicted[0][..., turn]
    lengths = np.linalg.norm(predicted, axis=2) * np.linalg.norm(measured, axis=2)
    facing = np.abs((measured * predicted).sum(axis=2)) / lengths
    angle = 2 * np.arccos(np.minimum(facing, 1.0))
    both = np.stack([100.0 / WIDTH_M * away, np.degrees(angle)], axis=2)
    both = np.where(np.isfinite(both), both, np.inf)
    # The first row, where every toss starts, has no error and counts.
    found: np.ndarray = np.where(seen[..., None], both, 0.0).sum(axis=1)
    found /= (1 + seen.sum(axis=1))[:, None]
    return found


@lru_cache(maxsize=2)
def _read(file: Path, examples: Path) -> dict[str, Episode]:
    """All tosses of a file by their names."""
    channels = ChannelMap.load(examples / TWIN / "channels.toml")
    episodes = read_episodes(file, channels=channels, base=Provenance(kind=Origin.REAL))
    return dict(zip(_names(file), episodes, strict=True))


def _tosses(folder: Path) -> list[Path]:
    return [file / name for file in sorted(folder.glob("*.npz")) for name in _names(file)]


def _names(file: Path) -> list[str]:
    with np.load(file) as arrays:
        return sorted(name for name in arrays.files if name.startswith("toss_"))


DATA_SET = DataSet(
    folder=FOLDER,
    twin=TWIN,
    published=PUBLISHED,
    targets=TARGETS,
    train_files=train_files,
    test_files=test_files,
    read=read,
    score=score,
)
