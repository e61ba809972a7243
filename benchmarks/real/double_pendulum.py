"""Two torque-controlled joints, both driven: system identification runs of a double pendulum."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.real.dataset import EXAMPLES, DataSet
from benchmarks.real.segments import segment_rms
from sim2real.data import ChannelMap, Episode, Origin, Provenance, read_episodes
from sim2real.twin import Twin

TWIN = "double-pendulum"
FOLDER = "double_pendulum"
PUBLISHED = {"over_published": (1.0, "the authors' identified parameters, model_1.0 of design C.1")}
TARGETS = {"over_published": "<= 0.8"}
_HORIZON_S = 0.5


def train_files(data: Path) -> list[Path]:
    """Recordings to fit."""
    files = _runs(data / FOLDER / "train")
    if _runs(data / FOLDER / "test"):
        return files
    return [file for k, file in enumerate(files) if k % 3 != 1]


def test_files(data: Path) -> list[Path]:
    """Recordings to score: those held out, or else every third one."""
    return _runs(data / FOLDER / "test") or _runs(data / FOLDER / "train")[1::3]


def read(path: Path, examples: Path = EXAMPLES) -> list[Episode]:
    """The run in a file, a channel for each joint."""
    channels = ChannelMap.load(examples / TWIN / "joints.toml")
    return list(read_episodes(path, channels=channels, base=Provenance(kind=Origin.REAL)))


def score(twin: Twin, episodes: list[Episode]) -> dict[str, float]:
    """Root mean square error of both angles over 0.5 s, and against that of what was published.

    The twin's nominal values are the published ones.
    """
    published = np.array([parameter.nominal for parameter in twin.parameters])
    mine, theirs = (
        segment_rms(twin, episodes, values, horizon_s=_HORIZON_S)
        for values in (twin.best_guess(), published)
    )
    return {
        "angle_rmse_rad": _both(mine),
        "shoulder_rmse_rad": mine["shoulder_angle"],
        "elbow_rmse_rad": mine["elbow_angle"],
        "published_rmse_rad": _both(theirs),
        "over_published": _both(mine) / _both(theirs),
    }


def _both(errors: dict[str, float]) -> float:
    return float(np.hypot(errors["shoulder_angle"], errors["elbow_angle"]) / np.sqrt(2))


def _runs(folder: Path) -> list[Path]:
    return sorted(folder.glob("sysid_C.1/*.csv.gz")) or sorted(folder.glob("*.csv.gz"))


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
