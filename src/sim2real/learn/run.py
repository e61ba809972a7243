"""The folder of a training run: its configuration, log, checkpoints and result."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from sim2real.errors import Sim2RealError
from sim2real.files import read_json, write_json
from sim2real.learn.config import TrainConfig
from sim2real.tasks import Training, find_task

CONFIG_FILE = "config.json"


@dataclass(frozen=True)
class Run:
    """One training run on disk."""

    folder: Path
    task: str
    seed: int
    source: str
    twin: Path | None
    training: Training
    threads: int

    @classmethod
    def create(cls, config: TrainConfig) -> Run:
        """A new run folder for a configuration."""
        if not config.task:
            raise Sim2RealError("name a task to train, or a run to --resume")
        training = find_task(config.task).training
        changes = {
            name: value
            for name in ("worlds", "iterations")
            if (value := getattr(config, name)) is not None
        }
        if min(changes.values(), default=1) < 1:
            raise Sim2RealError(f"worlds and iterations must be at least 1, got {changes}")
        stamp = time.strftime("%Y%m%d-%H%M%S")
        folder = config.out / config.task / stamp
        copy = 1
        while folder.exists():
            copy += 1
            folder = config.out / config.task / f"{stamp}-{copy}"
        run = cls(
            folder=folder,
            task=config.task,
            seed=config.seed,
            source=config.source,
            twin=config.twin,
            training=replace(training, **changes),
            threads=config.threads,
        )
        write_json(folder / CONFIG_FILE, run.to_dict())
        return run

    @classmethod
    def open(cls, folder: Path) -> Run:
        """The run in a folder."""
        if not (folder / CONFIG_FILE).is_file():
            raise Sim2RealError(f"{folder} is not a training run: it has no {CONFIG_FILE}")
        data = read_json(folder / CONFIG_FILE)
        try:
            training = data["training"]
            training["hidden"] = tuple(training["hidden"])
            return cls(
                folder=folder,
                task=data["task"],
                seed=data["seed"],
                source=data["source"],
                twin=Path(data["twin"]) if data["twin"] else None,
                training=Training(**training),
                threads=data["threads"],
            )
        except (KeyError, TypeError) as error:
            raise Sim2RealError(f"{folder / CONFIG_FILE} is malformed: {error}") from None

    def to_dict(self) -> dict[str, Any]:
        """The content of the run's configuration file."""
        return {
            "task": self.task,
            "seed": self.seed,
            "source": self.source,
            "twin": str(self.twin) if self.twin else None,
            "threads": self.threads,
            "training": asdict(self.training),
        }
