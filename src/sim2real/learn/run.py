"""The folder of a training run: its configuration, checkpoints, events and result."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path

from sim2real.errors import Sim2RealError, table_at
from sim2real.files import read_json, write_json, write_text
from sim2real.learn.learn_configs import TrainConfig
from sim2real.plain import PlainData
from sim2real.tasks import Training, find_task
from sim2real.twin import Twin

CONFIG_FILE = "config.json"


@dataclass(frozen=True, kw_only=True)
class Run(PlainData, without=("folder",)):
    """One training run: what it was asked for, and the folder it is kept in."""

    folder: Path
    task: str
    seed: int
    source: str
    """A named source, or the path of a file of ranges; a copy of it lies in the folder."""
    twin: Path | None
    training: Training
    threads: int
    """Threads of the simulation."""
    learner_threads: int
    """Threads of the learner: they decide the order of its sums, so a run keeps them."""
    target_success: float | None
    save_every: int
    remainder: bool = False
    """Whether the twin's learned remainder acts."""
    begin: Path | None = None
    """Run whose networks it begins with."""
    starts: Path | None = None
    """File of states that some episodes start from."""

    @classmethod
    def plan(cls, config: TrainConfig, *, learner_threads: int) -> Run:
        """The run a configuration asks for; nothing is written yet."""
        if not config.task:
            raise Sim2RealError("name a task to train, or a run to --resume")
        training = find_task(config.task).training
        changes = {
            name: value
            for name in ("worlds", "iterations")
            if (value := getattr(config, name)) is not None
        }
        if min((*changes.values(), config.save_every)) < 1:
            raise Sim2RealError("--worlds, --iterations and --save-every must be at least 1")
        return cls(
            folder=config.out / config.task / time.strftime("%Y%m%d-%H%M%S"),
            task=config.task,
            seed=config.seed,
            source=config.source,
            twin=config.twin.resolve() if config.twin else None,
            training=replace(training, **changes),
            threads=config.threads,
            learner_threads=learner_threads,
            target_success=config.target_success,
            save_every=config.save_every,
            remainder=config.remainder,
            begin=config.begin.resolve() if config.begin else None,
            starts=config.starts.resolve() if config.starts else None,
        )

    def create(self, twin: Twin | None = None) -> Run:
        """Make the run's folder with its configuration, and with the twin if it is trained in one
        that is kept nowhere else; the run as kept there."""
        folder, copy = self.folder, 1
        while True:
            try:
                folder.mkdir(parents=True)
                break
            except FileExistsError:
                copy += 1
                folder = self.folder.with_name(f"{self.folder.name}-{copy}")
            except OSError as error:
                raise Sim2RealError(f"cannot make {folder}: {error.strerror}") from None
        source = self.source
        if Path(source).is_file():
            kept = folder / f"params{Path(source).suffix}"
            write_text(kept, Path(source).read_text(encoding="utf-8"))
            source = kept.name
        kept_twin = self.twin
        if twin is not None:
            kept_twin = twin.save((folder / "twin").resolve()).folder
        write_json(folder / CONFIG_FILE, replace(self, source=source, twin=kept_twin).to_dict())
        return Run.open(folder)

    @staticmethod
    def is_run(folder: Path) -> bool:
        """Whether a folder is that of a run."""
        return (folder / CONFIG_FILE).is_file()

    @classmethod
    def open(cls, folder: Path) -> Run:
        """The run in a folder."""
        if not cls.is_run(folder):
            raise Sim2RealError(f"{folder} is not a training run: it has no {CONFIG_FILE}")
        file = folder / CONFIG_FILE
        values = dict(table_at(read_json(file), str(file))) | {"folder": str(folder)}
        found = cls.from_dict(values, str(file))
        kept = folder / found.source
        return replace(found, source=str(kept)) if kept.is_file() else found
