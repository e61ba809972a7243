"""Whether, when and in what a robot has drifted, as a monitor found it."""

from __future__ import annotations

from dataclasses import dataclass

from sim2real.plain import PlainData
from sim2real.results import Result
from sim2real.robot.drift.blame import DriftCause


@dataclass(frozen=True, kw_only=True)
class DriftVerdict(PlainData):
    """What is known after an episode."""

    number: int
    """Place of the episode, from 1, the baseline included."""
    episode: str
    evidence: float
    """Evidence that something has changed; an alarm from 1 / false_alarm on."""
    threshold: float
    telling: str
    """The statistic with the strongest evidence."""
    alarm: bool
    """Whether the threshold has been reached, now or before."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DriftReport(Result, kind="drift", also=("drifted",)):
    """Whether, when and in what a robot has drifted."""

    bundle: str
    baseline: int
    """Episodes everything is compared with."""
    false_alarm: float
    """Probability that it ever raises an alarm while nothing changes."""
    verdicts: tuple[DriftVerdict, ...]
    alarm: int | None
    """Number of the episode that raised the alarm, from 1; None without an alarm."""
    change: int | None
    """Estimated number of the first episode that differs."""
    causes: tuple[DriftCause, ...]
    """Parameters that explain the change; empty if none does."""
    skipped: tuple[str, ...] = ()
    """Why each episode that could not be replayed was left out."""

    @property
    def drifted(self) -> bool:
        """Whether there was an alarm."""
        return self.alarm is not None
