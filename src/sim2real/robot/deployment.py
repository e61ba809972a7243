"""The result of a deployment, and the callbacks to the person at the robot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sim2real.arrays import Reals
from sim2real.intervals import Rate, wilson
from sim2real.plain import PlainData
from sim2real.robot.ladder import LadderRecord

_ASKED = 3
"""How often a person is asked who answers something else."""


@dataclass(frozen=True, kw_only=True)
class AttemptRecord:
    """One attempt on a robot."""

    outcome: str
    """'success', 'failure', or '' if it was not judged."""
    stopped: str
    """Why it was stopped; '' if it ran to its end."""
    periods: int
    lost: int
    limited: int
    late_p99_s: float
    late_max_s: float
    overruns: int
    """Periods that began more than a period late."""
    episode: str = ""
    """Id of its episode."""
    recording: str = ""
    """File of its recording."""


@dataclass(frozen=True, kw_only=True)
class Deployment(PlainData, also=("success",)):
    """The result of one step of the ladder."""

    step: str
    robot: str
    serial: str
    execute: bool
    skipped: str
    """Steps of the ladder that were skipped by force."""
    trials: tuple[AttemptRecord, ...]
    record: LadderRecord | None
    """Its record beside the bundle; None for a dry run."""
    folder: Path | None
    """Where the recordings are."""
    ended: str = ""
    """How the operator ended it early; '' otherwise."""

    @property
    def success(self) -> Rate | None:
        """Success of the attempts that were judged; None without any."""
        judged = [trial for trial in self.trials if trial.outcome]
        won = sum(trial.outcome == "success" for trial in judged)
        return wilson(won, len(judged)) if judged else None


def nobody(text: str) -> str:
    """The answer where no person is asked."""
    return ""


@dataclass(frozen=True, kw_only=True)
class OperatorPrompts:
    """Callbacks through which a program talks to the person at the robot."""

    report: Callable[[int, int], None] = lambda done, of: None
    tell: Callable[[str], None] = lambda text: None
    ask: Callable[[str], str] = nobody
    """Asks the person for a line, which ends with its line break; '' if there is no answer."""
    press: Callable[[str, str], str] | None = None
    """Asks for one of some keys, or Enter: see `choose`; without it, the key is asked for as a
    line."""
    goes_on: bool = False
    """Where no person is asked: whether the next safe step of the ladder is taken although there
    are doubts about the one before it."""
    show: Callable[[float, Reals, Reals], None] = lambda time_s, wanted, sent: None
    """Called in each period with (time, wanted command, command to be sent)."""

    @property
    def attended(self) -> bool:
        """Whether a person answers."""
        return self.ask is not nobody

    def choose(self, text: str, keys: str) -> str:
        """The key that a person presses, of some keys; a blank for Enter, '' if nobody answers."""
        for _ in range(_ASKED):
            said = self.press(text, keys) if self.press else self.ask(text)
            pressed = said.strip().lower()[:1]
            if not said or not pressed or pressed in keys:
                return pressed or (" " if said else "")
        return " "
