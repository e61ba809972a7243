"""A small arm of five servos that follows commands late and sags: motions of an SO-101."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.real.dataset import EXAMPLES, DataSet
from benchmarks.real.open_loop import open_loop
from sim2real.data import ChannelMap, Episode, Origin, Provenance, read_episodes
from sim2real.twin import Twin

TWIN = "so101"
FOLDER = "sage_so101"
PUBLISHED = {"rms_mrad": (38.7, "the command taken as the position")}
TARGETS = {"rms_mrad": "<= 16", "lag_ms": "<= 10"}
_EVERY = 4
"""One motion of so many is held back where there are none to test on."""
_JAMMED_RAD = 0.15
"""An error that a joint of this arm does not have of itself while it rests [rad]."""
_JAMMED_S = 1.0
"""Time a joint must be that far off to be called jammed [s]."""
_WIDEST = 6
"""Periods by which motions are shifted to find their lag."""


def train_files(data: Path) -> list[Path]:
    """Motions to fit."""
    motions = _motions(data / FOLDER / "train")
    held_back = [] if _motions(data / FOLDER / "test") else motions[::_EVERY]
    return [motion for motion in motions if motion not in held_back]


def test_files(data: Path) -> list[Path]:
    """Motions to score."""
    return _motions(data / FOLDER / "test") or _motions(data / FOLDER / "train")[::_EVERY]


def read(path: Path, examples: Path = EXAMPLES) -> list[Episode]:
    """The motion in a folder, by the channel map of its twin."""
    base = Provenance(kind=Origin.REAL)
    return list(
        read_episodes(path, channels=ChannelMap.load(examples / TWIN / "channels.toml"), base=base)
    )


def fit_episodes(episodes: list[Episode]) -> list[Episode]:
    """Motions without those where something was in the way: the twin has no such thing."""
    return [episode for episode in episodes if not _jammed(episode)]


def score(twin: Twin, episodes: list[Episode], *, remainder: bool = False) -> dict[str, float]:
    """`rms_mrad` over motions and joints, and `lag_ms`, the largest of any joint's lag.

    A joint's lag is the shift in time that brings its predicted speeds closest to the measured
    ones, over all motions together.
    """
    replays = [open_loop(twin, episode, remainder=remainder) for episode in episodes]
    squares = [np.nanmean(replay.errors[0, 0] ** 2, axis=0) for replay in replays]
    lags = lags_s(
        [(replay.predicted[0, 0], replay.measured[0]) for replay in replays], replays[0].period_s
    )
    return {
        "rms_mrad": 1e3 * float(np.sqrt(np.mean(squares))),
        "lag_ms": 1e3 * float(np.abs(lags).max()),
    }


def lags_s(pairs: list[tuple[np.ndarray, np.ndarray]], period_s: float) -> np.ndarray:
    """(joints,) how much later the second of each pair (periods, joints) moves [s].

    Fast motions count most, as slow ones hardly tell a lag: friction holds a joint until the error
    is large, and readings have steps. A lag beyond the widest shift is given as that shift.
    """
    shifts = np.arange(-_WIDEST, _WIDEST + 1)
    apart = np.zeros((len(shifts), pairs[0][0].shape[1]))
    for first, second in pairs:
        ours = np.diff(first[_WIDEST:-_WIDEST], axis=0)
        for row, shift in enumerate(shifts):
            theirs = np.diff(second[_WIDEST + shift : len(second) - _WIDEST + shift], axis=0)
            apart[row] += np.nansum((theirs - ours) ** 2, axis=0)
    best = np.clip(apart.argmin(axis=0), 1, len(shifts) - 2)
    before, at, after = (apart[best + k, np.arange(apart.shape[1])] for k in (-1, 0, 1))
    # The minimum of a parabola through three shifts.
    curve = np.maximum(before - 2 * at + after, 1e-30)
    aside = np.clip(0.5 * (before - after) / curve, -1.0, 1.0)
    found: np.ndarray = (shifts[best] + aside) * period_s
    return found


def _motions(folder: Path) -> list[Path]:
    return sorted(file.parent for file in folder.glob("*/control.csv.gz"))


def _jammed(episode: Episode) -> bool:
    command, position = episode["command"], episode["position"]
    size = min(len(command.values), len(position.values))
    off = np.abs(np.subtract(command.values[:size], position.values[:size])) > _JAMMED_RAD
    still = np.abs(np.gradient(position.values[:size], axis=0)) < 0.01
    length = max(1, round(_JAMMED_S * position.rate_hz))
    window = np.ones(length)
    stuck = [np.convolve(column, window, "valid").max() for column in (off & still).T.astype(float)]
    return bool(max(stuck) >= length)


DATA_SET = DataSet(
    folder=FOLDER,
    twin=TWIN,
    published=PUBLISHED,
    targets=TARGETS,
    train_files=train_files,
    test_files=test_files,
    read=read,
    score=score,
    fit_episodes=fit_episodes,
    score_with_remainder=partial(score, remainder=True),
)
