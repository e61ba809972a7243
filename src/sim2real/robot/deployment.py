"""What came of a deployment: its trials, its record, and how it speaks with a person."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sim2real.evaluate.intervals import wilson
from sim2real.robot.ladder import LadderRecord


@dataclass(frozen=True, kw_only=True)
class AttemptRecord:
    """One attempt on a robot."""

    outcome: str
    """'success', 'failure', or '' where nobody judged."""
    stopped: str
    """Why it was stopped; '' where it came to its end."""
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
class Deployment:
    """What came of one call."""

    step: str
    robot: str
    serial: str
    execute: bool
    skipped: str
    """Steps of the ladder that were skipped by force."""
    trials: tuple[AttemptRecord, ...]
    record: LadderRecord | None
    """What was kept of it beside the bundle; None for a dry run."""
    folder: Path | None
    """Where the recordings are."""
    ended: str = ""
    """How the operator ended it; '' where nobody did."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        judged = [trial for trial in self.trials if trial.outcome]
        won = sum(trial.outcome == "success" for trial in judged)
        return {
            "step": self.step,
            "robot": self.robot,
            "serial": self.serial,
            "execute": self.execute,
            "skipped": self.skipped,
            "ended": self.ended,
            "success": wilson(won, len(judged)).to_dict() if judged else None,
            "record": asdict(self.record) if self.record else None,
            "folder": str(self.folder) if self.folder else None,
            "trials": [asdict(trial) for trial in self.trials],
        }


@dataclass(frozen=True, kw_only=True)
class OperatorPrompts:
    """How a deployment speaks with the person at the robot."""

    report: Callable[[int, int], None] = lambda done, of: None
    tell: Callable[[str], None] = lambda text: None
    ask: Callable[[str], str] = lambda text: ""
    """Ask the person; '' where nobody is there to answer."""
    show: Callable[[float, np.ndarray, np.ndarray], None] = lambda time_s, wanted, sent: None
    """Told (time, wanted, to be sent) of each period."""
