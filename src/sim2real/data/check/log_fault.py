"""A fault found in a log: what it is, where, how it was measured, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim2real.arrays import Floats
from sim2real.plain import PlainData

SEVERITIES = ("error", "warning", "note")


@dataclass(frozen=True, kw_only=True)
class FaultSpan:
    """The samples of a channel that a fault concerns."""

    component: int | None = None
    """Index into the flattened sample; None for the whole channel."""
    start_s: float
    """Time of the first of them [s]."""
    end_s: float
    """Time of the last one [s]."""
    first: int
    """Index of the first of them."""
    last: int
    """Index of the last one."""
    count: int
    """How many there are between the two."""

    @classmethod
    def of(
        cls, times: Floats, first: int, last: int, count: int, component: int | None = None
    ) -> FaultSpan:
        """The samples `first` to `last` of a channel with these time stamps."""
        return cls(
            component=component,
            start_s=_near(times, first),
            end_s=_near(times, last),
            first=first,
            last=last,
            count=count,
        )


def _near(times: Floats, row: int) -> float:
    """Time of a sample, or of the nearest one with a finite stamp."""
    finite = np.flatnonzero(np.isfinite(times))
    return float(times[finite[np.argmin(np.abs(finite - row))]]) if len(finite) else 0.0


@dataclass(frozen=True, kw_only=True)
class LogFault(
    PlainData,
    also=[f"span.{name}" for name in ("component", "start_s", "end_s", "first", "last", "count")],
    without=("span", "samples", "amount", "measured_hz"),
):
    """One fault of a log."""

    kind: str
    """Stable short name, such as 'time-gap'."""
    severity: str = "error"
    """'error': do not use the channel as it is; 'warning': use it with care; 'note'."""
    channel: str
    """Faulty channel; the first by name where several share a faulty clock."""
    also: tuple[str, ...] = ()
    """Other channels with the same fault in the same clock."""
    span: FaultSpan
    message: str
    """What is wrong, with the measured numbers; one line."""
    remedy: str
    """What to do about it; one line."""
    repairable: bool = False
    """Whether `repair_episode` can undo it or remove the samples."""
    samples: tuple[int, ...] = ()
    """Indices of the samples that a repair replaces or drops."""
    amount: float = 0.0
    """What a repair needs: a factor, or a time [s] for a shift."""
    measured_hz: float = 0.0
    """Rate to state instead [Hz], where the time stamps are right and the stated rate is wrong."""

    @property
    def channels(self) -> tuple[str, ...]:
        """All faulty channels."""
        return (self.channel, *self.also)
