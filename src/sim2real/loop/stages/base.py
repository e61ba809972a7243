"""The task and robot of a loop's stages, and what is read from the results of their steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sim2real.data import Episode, read_recording
from sim2real.loop.steps import KeptResult
from sim2real.robot import OperatorPrompts
from sim2real.tasks import find_task


@dataclass(frozen=True, kw_only=True)
class StagesBase:
    """The task and the robot that stages are made for."""

    task: str
    robot: str
    person: str
    seed: int = 0
    force: bool = False
    by_the_switch: bool = False
    judge: Path | None = None
    """File of outcomes, for a robot that judges none."""
    threads: int = 0
    prompts: OperatorPrompts = field(default_factory=OperatorPrompts)
    """How stages talk to the person at the robot."""

    @property
    def report(self) -> Callable[[int, int], None]:
        """Called with the progress of the current step, and its total."""
        return self.prompts.report

    @property
    def twin(self) -> Path:
        """Folder or file of the task's own twin."""
        return find_task(self.task).twin


def run_of(trained: KeptResult) -> Path:
    """Folder of a step's training run."""
    return trained.folder / str(trained.result["run"])


def episodes_of(done: KeptResult) -> list[Episode]:
    """Episodes that a step recorded, in the order of their names."""
    return [read_recording(path) for path in sorted(done.folder.rglob("*.arrow"))]
