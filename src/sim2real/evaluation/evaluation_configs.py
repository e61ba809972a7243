"""Options of evaluating and playing; light, so that the command line starts at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from sim2real.scale import ExecutorOptions


@dataclass(frozen=True, kw_only=True)
class EvaluateConfig(ExecutorOptions):
    """Measure a policy's success in randomised worlds, and find the parameters it depends on."""

    policy: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of the training run, or of a bundle; an ONNX file with a contract beside it; or
    `package.module:Class`."""
    episodes: int = 500
    """Episodes, each with its own parameters."""
    each: int = 1
    """Consecutive episodes with the same parameters, like trials of one robot; for `predict`."""
    params: str | None = None
    """Where parameters come from: nominal, prior, posterior, or a TOML or JSON file; by default
    what the policy was trained with, or the prior if it does not say."""
    remainder: bool = False
    """Use the twin's learned remainder; a run that was trained with it always uses it."""
    seed: int = 1_000_000
    """Seed of the episodes; the default differs from that of training."""
    confidence: float = 0.95
    """Confidence of the intervals."""
    out: Path | None = None
    """Folder for the results; by default `evaluate` in the run or in the bundle's records."""
    lake: str = ""
    """Also keep every episode, with its draw and provenance, in this lake."""
    threads: int = 0
    """Threads of the simulation; 0 for all cores."""
    engine: str = "cpu"
    """Engine of the worlds: cpu, or warp for a GPU."""
    json: bool = False
    """Print the result as JSON."""


@dataclass(frozen=True, kw_only=True)
class PlayConfig:
    """Show a policy in a video, or in MuJoCo's viewer."""

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of the training run, or of a bundle; an ONNX file with a contract beside it; or
    `package.module:Class`."""
    episodes: int = 3
    """Episodes to film, one after the other."""
    params: str | None = None
    """nominal, prior, posterior, or a TOML or JSON file; by default as the run was trained."""
    remainder: bool = False
    """Use the twin's learned remainder; a run that was trained with it always uses it."""
    seed: int = 2_000_000
    """Seed of the episodes."""
    out: Path | None = None
    """File for the video; by default `play.mp4` in the run or in the bundle's records."""
    size: tuple[int, int] = (640, 480)
    """Width and height of the video [pixels]."""
    viewer: bool = False
    """Open MuJoCo's viewer instead."""
    json: bool = False
    """Print the result as JSON."""


@dataclass(frozen=True, kw_only=True)
class CompareConfig:
    """Say whether policy B is better than policy A, or how many more trials are needed to tell.

    Trials are a folder of `evaluate`, a folder of recordings, a lake, or a CSV or JSON file of
    trials; FILE@POLICY selects one policy's trials.
    """

    a: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="A")]
    """Trials of the first policy."""
    b: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="B")]
    """Trials of the second policy."""
    confidence: float = 0.95
    """Confidence of the intervals; the sequential test errs with the remaining probability."""
    most: int | None = None
    """Largest number of trials of each policy, if it was planned before the first trial."""
    source: Literal["sim", "real"] | None = None
    """Use only simulated or only real trials."""
    by_order: bool = False
    """Pair the k-th trials of both: they started alike, even if that was not recorded."""
    json: bool = False
    """Print the result as JSON."""


@dataclass(frozen=True, kw_only=True)
class RankConfig:
    """Say whether simulation ranks policies as reality does.

    The table is CSV or a JSON list with a row per policy or per real trial, or JSON with two
    tables, for simulation and reality, each of policies or of groups of policies.
    """

    table: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="TABLE")]
    """The table."""
    policy: str = "policy"
    """Column with the policy's name."""
    sim: str = "sim"
    """Column, or table, with success or score in simulation."""
    real: str = "real"
    """Column, or table, with success or score in reality."""
    group: tuple[str, ...] = ()
    """Columns that define groups of comparable policies; by default `group` or `task`."""
    n_real: str = "n_real"
    """Column with the number of real trials behind a success rate; optional."""
    confidence: float = 0.95
    """Confidence of the intervals."""
    seed: int = 0
    """Seed of resampling."""
    json: bool = False
    """Print the result as JSON."""


@dataclass(frozen=True, kw_only=True)
class PowerConfig:
    """Plan a comparison: how many trials are needed to show a difference in success."""

    first: Annotated[float, tyro.conf.arg(name="from")]
    """Success rate of one policy."""
    second: Annotated[float, tyro.conf.arg(name="to")]
    """Success rate of the other."""
    power: float = 0.8
    """Probability of showing the difference."""
    alpha: float = 0.05
    """Probability of showing one where there is none, two-sided."""
    correlation: float = 0.0
    """Correlation of both policies' outcomes under the same condition; 0 for no influence."""
    json: bool = False
    """Print the result as JSON."""


@dataclass(frozen=True, kw_only=True)
class PredictConfig:
    """Predict real success from simulated trials; a few real trials make it more precise."""

    simulated: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SIMULATED")]
    """Simulated trials: a folder of `evaluate --params posterior --each 10`, or a file or lake."""
    trials: int = 20
    """Number of real trials to predict."""
    real: str = ""
    """Real trials of the same policy on one robot."""
    confidence: float = 0.9
    """Confidence of the intervals."""
    json: bool = False
    """Print the result as JSON."""
