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
    """Task to learn, as `pendulum-swingup`; left out with --resume."""
    twin: Path | None = None
    """Folder of the twin to train in; the task's own by default."""
    source: str = "prior"
    """Where parameters come from: nominal, prior, posterior, adr, or a TOML or JSON file."""
    remainder: bool = False
    """Let the twin's learned remainder act, on top of its parameters."""
    begin: Path | None = None
    """Run whose networks this one begins with, instead of fresh ones."""
    starts: Path | None = None
    """File of states that a robot was seen in, which a quarter of the episodes start from."""
    seed: int = 0
    """Seed of everything random; the same seed gives the same run."""
    worlds: int | None = None
    """Worlds at once; the task's own number by default."""
    iterations: int | None = None
    """Updates of the policy; the task's own number by default."""
    target_success: float | None = None
    """Stop early when this share of the last 1000 episodes succeeded."""
    threads: int = 0
    """Threads of the simulation; 0 for all cores."""
    engine: str = "cpu"
    """Engine of the worlds: cpu, or warp for a GPU."""
    save_every: int = 25
    """Iterations between checkpoints."""
    out: Path = Path("runs/train")
    """Folder that runs are made in."""
    resume: Path | None = None
    """Continue this run as if it had not stopped."""
    json: bool = False
    """Print the result as JSON."""


@dataclass(frozen=True, kw_only=True)
class ExportConfig:
    """Make a deployable bundle of a training run: graphs, contract, limits, twin, hashes."""

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of the training run."""
    out: Path | None = None
    """Folder of the bundle; `bundle` inside the run by default. It must not exist."""
    observations: int = 10_000
    """Observations that the exported graphs are compared with the trained network on."""
    seed: int = 3_000_000
    """Seed of the worlds these observations come from."""
    json: bool = False
    """Print the result as JSON."""
