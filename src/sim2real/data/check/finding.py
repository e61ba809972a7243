"""What a check found in a log: what it is, where, how it was measured, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

KINDS = {
    "time-not-finite": "time stamps that are no numbers",
    "time-repeated": "two samples with one time stamp",
    "time-backward": "time stamps that step back",
    "time-gap": "samples missing",
    "time-rate": "time runs at another rate than stated",
    "clock-drift": "clocks of two channels that run apart",
    "stuck": "a value frozen while the robot moved",
    "clipped": "a sensor at the end of its range",
    "not-finite": "values that are no numbers",
    "absurd": "values that cannot be",
    "unit": "values in another unit than stated",
    "shift": "an action whose effect comes before it",
}
"""Every kind of finding, by its stable name."""

SEVERITIES = ("error", "warning", "note")


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where in a channel."""

    component: int | None = None
    """Index into the flattened sample; None for the whole channel."""
    start_s: float
    """Time of the first sample concerned [s]."""
    end_s: float
    """Time of the last one [s]."""
    first: int
    """Index of the first sample concerned."""
    last: int
    """Index of the last one."""
    count: int
    """Number of samples concerned between the two."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One fault of a log."""

    kind: str
    """Stable short name, one of `KINDS`."""
    severity: str
    """'error': do not use as it is; 'warning': know it; 'note'."""
    channel: str
    """Channel at fault; the first by name where channels share the faulty clock."""
    also: tuple[str, ...] = ()
    """Other channels with the same fault in the same clock."""
    place: Place
    message: str
    """One line with the measured numbers."""
    remedy: str
    """One line: what to do."""
    repairable: bool = False
    """Whether `repair` can undo it, or take the samples out."""
    samples: tuple[int, ...] = ()
    """Indices of the samples a repair replaces or drops."""
    amount: float = 0.0
    """Number a repair needs: a factor, a rate [Hz] or a time [s], as the kind has it."""

    @property
    def channels(self) -> tuple[str, ...]:
        """All channels concerned."""
        return (self.channel, *self.also)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, without the list of samples."""
        place = {name: getattr(self.place, name) for name in Place.__dataclass_fields__}
        keys = ("kind", "severity", "channel", "message", "remedy", "repairable")
        return {**{key: getattr(self, key) for key in keys}, "also": list(self.also), **place}
