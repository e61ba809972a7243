"""Options of evaluating and playing; light, so that the command line starts at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro


@dataclass(frozen=True, kw_only=True)
class EvaluateConfig:
    """Measure a policy's success over randomised worlds, and which parameters it fails at."""

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of the training run, or of a bundle."""
    episodes: int = 500
    """Episodes to try, each with parameters of its own."""
    each: int = 1
    """Episodes in a row that share their parameters, as trials of one robot do; `predict` needs
    several."""
    params: str | None = None
    """Where parameters come from: nominal, prior, posterior, or a TOML or JSON file;
    what the run was trained with by default."""
    remainder: bool = False
    """Let the twin's learned remainder act; it always does where the run was trained with it."""
    seed: int = 1_000_000
    """Seed of the episodes; unlike the training's, so that none was trained on."""
    confidence: float = 0.95
    """Confidence of the intervals."""
    out: Path | None = None
    """Folder for trials, plot and JSON; `evaluate` inside the run, or in a bundle's records, by
    default."""
    lake: str = ""
    """Also keep every episode, with its draw and provenance, in the lake at this address."""
    threads: int = 0
    """Threads of the simulation; 0 for all cores."""
    json: bool = False
    """Print the result as JSON."""


@dataclass(frozen=True, kw_only=True)
class PlayConfig:
    """Show a policy at work: a video, and MuJoCo's viewer where there is a screen."""

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of the training run."""
    episodes: int = 3
    """Episodes to film, one after the other."""
    params: str | None = None
    """Where parameters come from; what the run was trained with by default."""
    remainder: bool = False
    """Let the twin's learned remainder act; it always does where the run was trained with it."""
    seed: int = 2_000_000
    """Seed of the episodes."""
    out: Path | None = None
    """The video; `play.mp4` inside the run by default."""
    size: tuple[int, int] = (640, 480)
    """Width and height of the video [pixels]."""
    viewer: bool = False
    """Open MuJoCo's viewer instead."""
    json: bool = False
    """Print the result as JSON."""


@dataclass(frozen=True, kw_only=True)
class CompareConfig:
    """Say whether policy B is better than A, or how many more trials that takes.

    Trials are a folder of `evaluate`, a folder of recordings, a lake, or a CSV or JSON file of
    trials; FILE@POLICY takes one policy's of several.
    """

    a: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="A")]
    """Trials of the first policy."""
    b: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="B")]
    """Trials of the second policy."""
    confidence: float = 0.95
    """Confidence of the intervals; what is left is the error rate of the sequential test."""
    most: int | None = None
    """Trials of each after which no more are made, if that was planned before the first."""
    source: Literal["sim", "real"] | None = None
    """Take only simulated or only real trials."""
    by_order: bool = False
    """The k-th trials of both began alike, though nothing in them says so."""
    json: bool = False
    """Print as JSON."""


@dataclass(frozen=True, kw_only=True)
class RankConfig:
    """Say whether simulation ranks policies as reality does.

    The table is CSV or a JSON list with a row a policy, or a row a real trial; or JSON with two
    tables, of simulation and reality, each of policies or of groups of policies.
    """

    table: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="TABLE")]
    """The table."""
    policy: str = "policy"
    """Column of the policy's name."""
    sim: str = "sim"
    """Column, or table, of success or score in simulation."""
    real: str = "real"
    """Column, or table, of success or score in reality."""
    group: tuple[str, ...] = ()
    """Columns that tell apart what must not be compared; `group` or `task` where there is one."""
    n_real: str = "n_real"
    """Column of the number of real trials behind a success rate; may be absent."""
    confidence: float = 0.95
    """Confidence of the intervals."""
    seed: int = 0
    """Seed of resampling."""
    json: bool = False
    """Print as JSON."""


@dataclass(frozen=True, kw_only=True)
class PowerConfig:
    """Plan a comparison: the trials it takes to show a difference in success."""

    first: Annotated[float, tyro.conf.arg(name="from")]
    """Success rate of one policy."""
    second: Annotated[float, tyro.conf.arg(name="to")]
    """Success rate of the other."""
    power: float = 0.8
    """Chance of showing the difference."""
    alpha: float = 0.05
    """Chance of showing one where there is none, two-sided."""
    correlation: float = 0.0
    """Correlation of the two policies' outcomes under one condition; 0 if conditions decide
    nothing."""
    json: bool = False
    """Print as JSON."""


@dataclass(frozen=True, kw_only=True)
class PredictConfig:
    """Predict real success from simulated trials; with a few real trials, narrow it down."""

    simulated: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SIMULATED")]
    """Simulated trials: a folder of `evaluate --params posterior --each 10`, or a file or lake."""
    trials: int = 20
    """Real trials whose outcome is predicted."""
    real: str = ""
    """Real trials of the same policy and one robot; by condition, where theirs were simulated."""
    confidence: float = 0.9
    """Confidence of the intervals."""
    json: bool = False
    """Print as JSON."""
