"""A process that appends episodes and says, after each append, that it returned."""

import itertools
from pathlib import Path

import numpy as np

from sim2real.data import Episode, Lake, Provenance, Signal


def small_episode(number: int) -> Episode:
    times = np.arange(10) * 0.01
    return Episode(
        channels={"q": Signal(times, np.full((10, 2), float(number)), "rad")},
        provenance=Provenance(kind="simulated", seed=number),
    )


def write(uri: str, first: int, count: int | None, said: Path) -> None:
    """Append episodes first, first + 1, …; the file `said` gets a line for each that returned."""
    lake = Lake.open(uri)
    numbers = itertools.count(first) if count is None else range(first, first + count)
    with said.open("a") as file:
        for number in numbers:
            (id_,) = lake.append(small_episode(number))
            file.write(f"{id_}\n")
            file.flush()
