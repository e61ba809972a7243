"""The folder of a training run: its configuration, checkpoints, events and result."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from sim2real.errors import Sim2RealError, table_at
from sim2real.files import read_json, write_json, write_text
from sim2real.learn.learn_configs import TrainConfig
from sim2real.plain import PlainData, of_plain
from sim2real.policy import PolicyEpisodes
from sim2real.tasks import Starts, Training, find_task
from sim2real.twin import Twin

CONFIG_FILE = "config.json"
_EPISODES_FILE = "episodes.json"


@dataclass(frozen=True, kw_only=True)
class Run(PlainData, without=("folder",), also=("engine?=other_engine",)):
    """One training run: its settings, and its folder."""

    folder: Path
    task: str
    seed: int
    source: str
    """A named source, or the path of a file of ranges, which is copied into the folder."""
    twin: Path | None
    training: Training
    threads: int
    """Threads of the simulation."""
    learner_threads: int
    """Threads of the learner; they decide the order of its sums, so a resumed run has the same."""
    target_success: float | None
    save_every: int
    remainder: bool = False
    """Whether the twin's learned remainder acts."""
    begin: Path | None = None
    """Run whose networks it starts from."""
    starts: Path | None = None
    """File of states that some episodes start from."""
    engine: str = "cpu"
    """Engine of the worlds."""

    @property
    def other_engine(self) -> str:
        """The engine, if it is not the usual one."""
        return "" if self.engine == "cpu" else self.engine

    @classmethod
    def plan(cls, config: TrainConfig, *, learner_threads: int) -> Run:
        """The run for a configuration; nothing is written yet."""
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
            engine=config.engine,
        )

    def create(self, twin: Twin | None = None) -> Run:
        """Make the run's folder with its configuration, and with `twin` if it is saved nowhere
        else; returns the run as stored."""
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
            kept_twin = Path(twin.save(folder / "twin").folder.name)
        if made_from := self._episodes(kept_twin and folder / kept_twin):
            write_json(folder / _EPISODES_FILE, made_from)
        write_json(folder / CONFIG_FILE, replace(self, source=source, twin=kept_twin).to_dict())
        return Run.open(folder)

    @property
    def made_from(self) -> PolicyEpisodes:
        """Episodes that the run comes from; empty for runs of versions before 0.2.0."""
        file = self.folder / _EPISODES_FILE
        if not file.is_file():
            return {}
        return cast(PolicyEpisodes, of_plain(dict[str, list[str]], read_json(file), str(file)))

    def _episodes(self, twin: Path | None) -> PolicyEpisodes:
        """Episodes that its twin, its starts and the run that it begins with come from."""
        before: PolicyEpisodes = {} if self.begin is None else Run.open(self.begin).made_from
        known = None if twin is None else Twin.load(twin, check=False)
        seen = () if self.starts is None else Starts.load(self.starts).episodes
        used = {
            "identified_on": {
                *before.get("identified_on", []),
                *(known.identified_on if known else ()),
            },
            "checked_on": {*before.get("checked_on", []), *(known.checked_on if known else ())},
            "trained_on": {*before.get("trained_on", []), *seen},
        }
        return cast(PolicyEpisodes, {name: sorted(ids) for name, ids in used.items() if ids})

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
        if found.twin is not None:  # one of its own goes where the folder goes
            found = replace(found, twin=(folder / found.twin).resolve())
        kept = folder / found.source
        return replace(found, source=str(kept)) if kept.is_file() else found
