"""Who sets up the trials on a robot, and who judges them: its bench, a file, or a person.

Steps of the ladder, series of trials and loops all ask here. What nobody could do is refused before
anything moves.
"""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sim2real.errors import Sim2RealError, explaining, one_line
from sim2real.robot.abilities import bench_of, judge_of
from sim2real.robot.deployment import OperatorPrompts
from sim2real.robot.driver_errors import driver_says
from sim2real.robot.protocol import Robot
from sim2real.robot.readings import Goals
from sim2real.robot.supervisor import OPERATOR

_WAIT_S = 20.0
"""How long a file of outcomes may take to state that of a trial which has ended [s]."""
_LOOK_S = 0.2
"""Time between two looks at it [s]."""
_SUCCESS = ("success", "1", "1.0", "true", "yes", "y")
_FAILURE = ("failure", "0", "0.0", "false", "no", "n")


@dataclass(kw_only=True)
class Attendance:
    """The set-up and the judging of a robot's trials, numbered from `first`."""

    robot: Robot
    prompts: OperatorPrompts
    judge: Path | None = None
    """File of outcomes; what it says goes before what the robot's bench says."""
    trials: int = 1
    first: int = 0
    """Number of trials before the first one."""
    ended: str = ""
    """Why no further trial can be made; '' while nothing speaks against it."""
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)

    def check(self, *, judged: bool) -> None:
        """Refuse trials that nobody would set up, or, where they are to be `judged`, judge."""
        abilities, name = self.robot.abilities, self.robot.name
        if judged and self.judge is not None:
            read_outcomes(self.judge)
        elif judged and not (abilities.judges or self.prompts.attended):
            raise Sim2RealError(
                f"{name} does not judge its trials, and nobody is at a terminal to judge them: run"
                " this in a terminal, or give a file of outcomes with --judge FILE"
            )
        if self.trials > 1 and not (abilities.resets or self.prompts.attended):
            raise Sim2RealError(
                f"{name} does not set up its trials, and nobody is at a terminal to set them up:"
                " run this in a terminal"
            )

    def set_up(self, number: int, *, moves: bool, resets: bool) -> Goals:
        """Have the robot's bench, or a person, set up a trial; the goals that the bench sets.

        A bench that may not reset, because another program drives, only says its goals; if nothing
        moves, no person is asked. Nobody's answer ends the series.
        """
        bench = bench_of(self.robot)
        if bench is not None:
            return bench.reset(self.first + number) if resets else bench.goals()
        if moves and self.prompts.attended:
            said = self.prompts.ask(
                f"set up trial {number + 1} of {self.trials}, then press Enter to let it move"
            )
            if not said:  # the end of the terminal's input, and not an empty line
                self.ended = f"nobody set up trial {number + 1}"
        return {}

    def judged(self, number: int, stopped: str) -> str:
        """'success' or 'failure' of a trial; '' if the operator ended it, or nobody could say."""
        if stopped:
            # An operator who ends it early has not seen the outcome.
            return "" if stopped == OPERATOR else "failure"
        bench = judge_of(self.robot)
        if self.judge is not None:
            said = self._in_file(self.judge, self.first + number + 1)
            if said or not self.prompts.attended:
                return said
        elif bench is not None:
            # A robot that does not answer has not succeeded.
            with (
                suppress(Sim2RealError),
                driver_says(f"{self.robot.name} failed while its bench judged a trial"),
            ):
                return "success" if bench.judge() else "failure"
            return "failure"
        pressed = self.prompts.choose("did it succeed? [y/n, Enter if unclear]", "yn")
        if not pressed:
            self.ended = f"nobody judged trial {number + 1}"
        return {"y": "success", "n": "failure"}.get(pressed, "")

    def _in_file(self, file: Path, trial: int) -> str:
        """What a file says of a trial, which may take a moment."""
        why = ""
        for _ in range(max(1, round(_WAIT_S / _LOOK_S))):
            try:
                found = read_outcomes(file)
            except Sim2RealError as error:  # half a line, perhaps
                why = one_line(error)
            else:
                if trial in found:
                    return found[trial]
                why = f"{file} has no outcome of trial {trial}"
            self.sleep(_LOOK_S)
        self.ended = why
        return ""


def read_outcomes(file: Path) -> dict[int, str]:
    """'success' or 'failure' by the number of the trial, which counts from 1.

    CSV with a header, or a JSON list of objects: `trial`, and `success` (1 or 0) or `outcome`
    ('success' or 'failure'). Of two rows about one trial the later one counts. Anything else is a
    `Sim2RealError` that names the row; a file without rows has no outcome yet.
    """
    with explaining(f"cannot read the outcomes in {file}", OSError, ValueError, csv.Error):
        text = file.read_text(encoding="utf-8-sig")
        if file.suffix == ".json":
            rows = json.loads(text)
            if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
                raise Sim2RealError(f"{file} must be a list of rows, each an object")
        else:
            rows = list(csv.DictReader(text.splitlines(), strict=True))
    return dict(_outcome(row, f"{file}, row {number}") for number, row in enumerate(rows, 1))


def _outcome(row: Mapping[str, Any], where: str) -> tuple[int, str]:
    trial = str(row.get("trial", "")).strip()
    said = str(row.get("outcome", row.get("success", ""))).strip().lower()
    if not trial.isdecimal() or int(trial) < 1:
        raise Sim2RealError(f"{where}: trial must be a number from 1, not {trial[:40]!r}")
    if said not in _SUCCESS + _FAILURE:
        raise Sim2RealError(
            f"{where}: outcome must be success or failure (or success 1 or 0), not {said[:40]!r}"
        )
    return int(trial), "success" if said in _SUCCESS else "failure"
