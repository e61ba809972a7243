"""Whether, when and in what a robot has drifted, as a monitor found it."""

from __future__ import annotations

from collections.abc import Iterator
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

    def sentences(self) -> Iterator[str]:
        """What was found, a line each."""
        for reason in self.skipped:
            yield f"left out: {reason}"
        rate = (
            f"the probability of ever raising a false alarm is at most {100 * self.false_alarm:g} %"
        )
        if self.alarm is None:
            yield f"no drift against the first {self.baseline} episodes ({rate})"
            return
        yield f"drift: alarm at episode {self.alarm}, changed since about {self.change} ({rate})"
        for cause in self.causes:
            alike = f" or {', '.join(cause.alike)}, which look the same" if cause.alike else ""
            yield (
                f"  {cause.name}{alike}: {cause.shift:+.4g} {cause.unit}"
                f" [{cause.low:+.4g}, {cause.high:+.4g}], explains {100 * cause.explains:.0f} % of"
                f" the change so far, p {cause.p_value:.1g}"
            )
        if not self.causes:
            yield "  no parameter of the twin explains it: check the robot and its surroundings"
        yield "identify the robot again, and start a new baseline"
