"""Options of training and exporting; light, so that the command line starts at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Train a policy for a task with PPO in randomised worlds."""

    task: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TASK")] = ""
    """Name of the task, such as `pendulum-swingup`; not with --resume."""
    twin: Path | None = None
    """Folder of the twin to train in; the task's own by default."""
    source: str = "prior"
    """Source of parameters: nominal, prior, posterior, adr, or a TOML or JSON file."""
    remainder: bool = False
    """Use the twin's learned remainder."""
    begin: Path | None = None
    """Training run whose networks this one starts from, instead of new ones."""
    starts: Path | None = None
    """File of recorded states of a robot; a quarter of the episodes start from them."""
    seed: int = 0
    """Seed of everything random; the same seed gives the same run."""
    worlds: int | None = None
    """Number of worlds at once; the task's own number by default."""
    iterations: int | None = None
    """Number of updates of the policy; the task's own number by default."""
    target_success: float | None = None
    """Stop early when this share of the last 1000 episodes has succeeded."""
    threads: int = 0
    """Threads of the simulation; 0 for all cores."""
    engine: str = "cpu"
    """Engine of the worlds: cpu, or warp for a GPU."""
    save_every: int = 25
    """Iterations between checkpoints."""
    out: Path = Path("runs/train")
    """Folder for runs, each in its own folder."""
    resume: Path | None = None
    """Folder of a run to continue, as if it had not stopped."""
    json: bool = False
    """Print the result as JSON."""


@dataclass(frozen=True, kw_only=True)
class ExportConfig:
    """Export a training run as a deployable bundle: graphs, contract, limits, twin, hashes."""

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of the training run."""
    out: Path | None = None
    """Folder of the bundle, which must not exist; `bundle` inside the run by default."""
    observations: int = 10_000
    """Number of observations to compare the exported graphs with the trained network on."""
    seed: int = 3_000_000
    """Seed of the worlds that these observations come from."""
    json: bool = False
    """Print the result as JSON."""
