"""What a loop would do, without doing it: which steps are kept, which are made again, and why.

The loop is walked with the results that are kept. Where a step is made again, the walk goes on as
if it found what it found before; where nothing is known of a result that decides what follows, the
plan ends.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sim2real.errors import Sim2RealError, options_as
from sim2real.files import read_json
from sim2real.loop.circle import check_plan, walk
from sim2real.loop.loop_config import LoopConfig
from sim2real.loop.remade import RESULT_FILE
from sim2real.loop.steps import KeptResult, KeptStep, Store
from sim2real.plain import PlainData
from sim2real.robot import open_robot


@dataclass(frozen=True, kw_only=True)
class PlannedStep:
    """One step of a loop, before the loop runs."""

    kind: str
    name: str
    """Name of its folder."""
    state: str
    """'kept', 'made again' or 'new'."""
    why: str = ""
    """Why it is made again, or how long ago the kept one was made."""

    def __str__(self) -> str:
        said = {"kept": f"kept ({self.why})", "made again": f"made again: {self.why}"}
        return f"{self.kind}: {said.get(self.state, self.state)}"


@dataclass(frozen=True, kw_only=True)
class LoopPlan(PlainData):
    """What a loop would do."""

    folder: Path
    steps: tuple[PlannedStep, ...]
    ended: str
    """Why it goes no further; '' where it is whole."""


def plan_the_loop(task: LoopConfig | str, **options: Any) -> LoopPlan:  # fields of LoopConfig
    """Which steps of a loop are kept, which are made again and why; nothing is written or moved."""
    config = task if isinstance(task, LoopConfig) else options_as(LoopConfig, task=task, **options)
    config = replace(config, dry_run=True)
    open_robot(config.robot, task=config.task)
    config.check(simulated=False)
    check_plan(config)
    store = _UndoingStore(config.folder / "steps")
    ended = ""
    try:
        walk(config, store, explain=store.run_all)
    except _Unknown:
        ended = "what follows depends on what these find"
    except Sim2RealError as error:
        ended = str(error)
    return LoopPlan(folder=config.folder, steps=tuple(store.planned), ended=ended)


class _Unknown(Exception):  # noqa: N818  the end of a plan, and no error
    """The plan needs a result that nobody knows yet."""


class _UnknownResult(dict[str, Any]):
    """The result of a step that was never done."""

    def __getitem__(self, name: str) -> Any:
        raise _Unknown

    def get(self, name: str, default: Any = None) -> Any:
        raise _Unknown

    def __contains__(self, name: object) -> bool:
        raise _Unknown


class _UndoingStore(Store):
    """Reads results that are kept, does no step, and notes what would be done."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.planned: list[PlannedStep] = []

    def run(self, step: KeptStep) -> KeptResult:
        """The kept result, that of the step it takes the place of, or one that is unknown."""
        if step.key in self._done:
            return self._done[step.key]
        for need in step.needs:
            self.run(need)
        if self.has([step]):
            done = super().run(step)
            self._note(step, "kept", done.how.removeprefix("kept, "))
            return done
        why = self.why(step)
        self._note(step, "made again" if why else "new", why)
        before = self._replaced.get(step.name)
        result: dict[str, Any] = _UnknownResult()
        if before is not None:
            result = read_json(self.folder / before / RESULT_FILE)["result"]
        elif step.kind == "ladder":
            result = {"passed": True}  # as it has to be, for the loop to go on
        done = KeptResult(step, self.folder / step.name, result, 0.0, kept=False)
        self._done[step.key] = done
        return done

    def run_all(self, steps: list[KeptStep]) -> None:
        """Plan some steps."""
        for step in steps:
            self.run(step)

    def _note(self, step: KeptStep, state: str, why: str) -> None:
        planned = PlannedStep(kind=step.kind, name=step.name, state=state, why=why)
        self.planned.append(planned)
