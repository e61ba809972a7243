"""A servo that lifts, holds and drops a mass: logs of an XL330 under several firmware gains.

The gain that is held back was never fitted: it enters the twin as what the log states.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.real.dataset import EXAMPLES, DataSet
from benchmarks.real.open_loop import open_loop
from sim2real.data import ChannelMap, Episode, Origin, Provenance, read_episodes
from sim2real.twin import Twin

TWIN = "xl330"
FOLDER = "bam_xl330"
PUBLISHED = {"mae_mrad": (41.8, "friction model M6 of BAM, fitted to the same logs by CMA-ES")}
TARGETS = {"mae_mrad": "<= 38", "mae_mrad_remainder": "<= 33"}
_HELD_BACK_KP = 200
"""Gain that is held back where there are no logs to test on: the middle one."""


def train_files(data: Path) -> list[Path]:
    """Logs to fit."""
    files = _logs(data / FOLDER / "train")
    if _logs(data / FOLDER / "test"):
        return files
    return [file for file in files if _kp(file) != _HELD_BACK_KP]


def test_files(data: Path) -> list[Path]:
    """Logs to score, all of a gain that no log of the fit has."""
    held_back = _logs(data / FOLDER / "test")
    return held_back or [f for f in _logs(data / FOLDER / "train") if _kp(f) == _HELD_BACK_KP]


def read(path: Path, examples: Path = EXAMPLES) -> list[Episode]:
    """The log in a file, by the channel map of its twin."""
    base = Provenance(kind=Origin.REAL)
    return list(
        read_episodes(path, channels=ChannelMap.load(examples / TWIN / "channels.toml"), base=base)
    )


def score(twin: Twin, episodes: list[Episode], *, remainder: bool = False) -> dict[str, float]:
    """`mae_mrad`: mean over logs of the mean distance of predicted from measured position."""
    replays = [open_loop(twin, episode, remainder=remainder) for episode in episodes]
    errors = [float(np.nanmean(np.abs(replay.errors[0]))) for replay in replays]
    return {"mae_mrad": 1e3 * float(np.mean(errors))}


def _logs(folder: Path) -> list[Path]:
    return sorted(folder.glob("????-??-??_*.json"))


def _kp(file: Path) -> float:
    return float(json.loads(file.read_text(encoding="utf-8"))["kp"])


DATA_SET = DataSet(
    folder=FOLDER,
    twin=TWIN,
    published=PUBLISHED,
    targets=TARGETS,
    train_files=train_files,
    test_files=test_files,
    read=read,
    score=score,
    score_with_remainder=partial(score, remainder=True),
)
