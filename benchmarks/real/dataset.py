"""What a data set brings: a twin, its recordings, and a way to score predictions of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.machine import ROOT
from sim2real.data import Episode
from sim2real.twin import Twin

EXAMPLES = ROOT / "examples" / "real"
"""Folder with the twins."""

Score = Callable[[Twin, list[Episode]], dict[str, float]]
"""How far a twin's predictions are from recordings, by measure."""


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """Published recordings of one robot."""

    folder: str
    """Its folder, with `train` and perhaps `test`."""
    twin: str
    """Folder of its twin among the examples."""
    published: Mapping[str, tuple[float, str]]
    """What was published of a measure, and how it was made."""
    targets: Mapping[str, str]
    train_files: Callable[[Path], list[Path]]
    """Recordings to fit, of a folder with all data sets."""
    test_files: Callable[[Path], list[Path]]
    """Recordings to score."""
    read: Callable[[Path, Path], list[Episode]]
    """Episodes of a recording, given the folder of examples."""
    score: Score
    score_with_remainder: Score | None = None
    """The same with the twin's learned remainder, where that is tried."""
    fit_episodes: Callable[[list[Episode]], list[Episode]] = lambda episodes: episodes
    """Those of the recordings that a fit can use."""
    estimation: Score | None = None
    """Figures of the record that the parameters were fitted to."""
