"""How often a policy succeeded in many simulated trials, and the parameters that it depends on."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from sim2real.arrays import Bools, Floats
from sim2real.files import atomic_path
from sim2real.intervals import Rate
from sim2real.plain import PlainData
from sim2real.results import Result

MAX_WORLDS = 1024
"""Most trials with one seed."""


@dataclass(frozen=True)
class SimulatedTrials:
    """Many trials with their draws: row k of each array is trial k."""

    task: str
    twin: str
    """Version of the twin."""
    seed: int
    names: tuple[str, ...]
    """Parameters, in the order of the columns of `values`."""
    values: Floats
    """(trials, parameters) the draw of each trial."""
    success: Bools
    """(trials,) bool."""
    reward: Floats
    """(trials,) sum of rewards."""
    diverged: Bools
    """(trials,) bool: the simulation diverged, which counts as a failure."""
    per_seed: int = MAX_WORLDS
    """Trials with one seed; those after them have the next."""
    each: int = 1
    """Consecutive trials that share a draw."""


@dataclass(frozen=True)
class ParameterEffect(PlainData):
    """Success along one parameter's range."""

    name: str
    edges: tuple[float, ...]
    """Edges of the bins: fifths of the trials, or the values of a choice."""
    rates: tuple[Rate, ...]
    """Success in each bin."""
    p_value: float
    """Of failed and successful draws having the same distribution (two-sided Mann-Whitney,
    Holm-corrected over the parameters)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation(
    Result,
    kind="evaluation",
    also=(
        "trials.task",
        "trials.twin",
        "trials.seed",
        "mean_reward=trials.reward.mean",
        "diverged=trials.diverged.sum",
        "parameters=effects",
        "notes?",
    ),
    without=("trials", "effects", "policy", "folder"),
):
    """A policy's success, and the parameters that it depends on."""

    trials: SimulatedTrials
    source: str
    success: Rate
    effects: tuple[ParameterEffect, ...]
    """One for each parameter that varied, the smallest p-value first."""
    policy: str = ""
    """Id of the policy."""
    folder: Path = field(default=Path("evaluate"), compare=False)
    """Default folder for results: inside the training run, or in the bundle's records."""
    notes: tuple[str, ...] = ()
    """What the policy does not say, and what was taken instead."""

    def save_beside(self, folder: Path) -> None:
        """Write every trial with its draw to `trials.npz`, which other verbs read."""
        save_worlds(folder / "trials.npz", self.trials, policy=self.policy)


def save_worlds(path: Path, trials: SimulatedTrials, *, policy: str) -> None:
    """Write trials of worlds, with every draw, as the `trials.npz` that `read_trials` reads."""
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        np.savez(file, policy=policy, **vars(trials))
