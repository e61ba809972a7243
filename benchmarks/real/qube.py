"""A Furuta pendulum: voltages that sweep from 10 Hz down to 0, open loop, on a Quanser Qube.

Only chirps are fitted and scored. Swing-ups end near the upright, where a prediction says little,
and come at two rates.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from benchmarks.real.dataset import EXAMPLES, DataSet
from benchmarks.real.segments import segment_rms
from sim2real.data import ChannelMap, Episode, Origin, Provenance, read_episodes
from sim2real.twin import Twin

TWIN = "qube"
FOLDER = "qube"
PUBLISHED = {
    "arm_rmse_rad": (0.163, "the simulator's nominal parameters; 0.069 with a delay found by hand"),
    "arm_vel_rmse": (1.60, "the simulator's nominal parameters; 0.56 with a delay found by hand"),
}
TARGETS = {"arm_rmse_rad": "<= 0.069", "arm_vel_rmse": "<= 0.56"}
_HORIZON_S = 0.5
_SKIPPED = 25
"""First rows of a recording that are not scored."""


def train_files(data: Path) -> list[Path]:
    """Recordings to fit."""
    files = _chirps(data / FOLDER / "train")
    return files if _chirps(data / FOLDER / "test") else files[::2]


def test_files(data: Path) -> list[Path]:
    """Recordings to score: those held out, or else every second one."""
    return _chirps(data / FOLDER / "test") or _chirps(data / FOLDER / "train")[1::2]


def read(path: Path, examples: Path = EXAMPLES) -> list[Episode]:
    """The recording in a file, by the channel map of its twin."""
    channels = ChannelMap.load(examples / TWIN / "channels.toml")
    return list(read_episodes(path, channels=channels, base=Provenance(kind=Origin.REAL)))


def score(twin: Twin, episodes: list[Episode], *, remainder: bool = False) -> dict[str, float]:
    """Root mean square errors over 0.5 s from measured states, and the delay that was found.

    The recorded rates are late, and the twin knows by how much: states are read from the log, and
    rates compared, as its sensors have it. `…_recorded_start` takes the late rates for the
    present ones instead, in the starts and in the comparison.
    """
    values = twin.best_guess()
    names = [parameter.name for parameter in twin.parameters]
    known = segment_rms(
        twin, episodes, values, horizon_s=_HORIZON_S, skip=_SKIPPED, remainder=remainder
    )
    present = values.copy()
    for column, name in enumerate(names):
        if name.startswith("sensor/") and name.endswith("/delay"):
            present[column] = 0.0
    late = segment_rms(
        twin, episodes, present, horizon_s=_HORIZON_S, skip=_SKIPPED, remainder=remainder
    )
    return {
        "arm_rmse_rad": known["arm_angle"],
        "pendulum_rmse_rad": known["pendulum_angle"],
        "arm_vel_rmse": known["arm_velocity"],
        "pendulum_vel_rmse": known["pendulum_velocity"],
        "delay_ms": 1e3 * float(values[names.index("actuator/motor/delay")]),
        "arm_rmse_recorded_start_rad": late["arm_angle"],
        "arm_vel_rmse_recorded_start": late["arm_velocity"],
    }


def _chirps(folder: Path) -> list[Path]:
    return sorted(folder.glob("chirp_*.npz"))


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
