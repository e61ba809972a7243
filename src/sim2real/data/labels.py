"""What people say about episodes: tags and intervals, with author and date.

A label is never overwritten. A correction names the label it supersedes; both stay, and only the
new one is current.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pyarrow as pa

from sim2real.data.arrow_rows import WHEN, schema
from sim2real.errors import Sim2RealError, explaining, nearest

TAGS = ("success", "failure", "phase", "dimension", "note")

LABELS = schema(
    ("id episode tag value", pa.string()),
    ("start_s end_s", pa.float64()),
    ("who", pa.string()),
    ("created", WHEN),
    ("supersedes", pa.string()),
)


@dataclass(frozen=True, kw_only=True)
class Label:
    """One remark about an episode or an interval of it."""

    episode: str
    """Id of the episode."""
    tag: str
    """'success', 'failure', 'phase' (of a failure), 'dimension' (of the gap) or 'note'."""
    value: str = ""
    """What the tag says: the phase, the dimension, free text."""
    start_s: float | None = None
    """Start of the interval [s]; None for the whole episode."""
    end_s: float | None = None
    """End of the interval [s]."""
    who: str
    """Author."""
    created: datetime = field(default_factory=lambda: datetime.now(UTC))
    """When it was written."""
    supersedes: str = ""
    """Id of the label this one corrects."""
    id: str = field(init=False)
    """Hash of all of the above."""

    def __post_init__(self) -> None:
        if self.tag not in TAGS:
            raise Sim2RealError(f"unknown tag {self.tag!r} of a label{nearest(self.tag, TAGS)}")
        if not self.who:
            raise Sim2RealError("a label needs its author")
        if self.tag in ("phase", "dimension", "note") and not self.value:
            raise Sim2RealError(f"a {self.tag!r} label needs a value")
        if (self.start_s is None) != (self.end_s is None):
            raise Sim2RealError("an interval needs both a start and an end")
        start, end = self.start_s or 0.0, self.end_s or 0.0
        if not (math.isfinite(start) and math.isfinite(end) and start <= end):
            raise Sim2RealError(f"an interval must end after it starts, not {start} to {end} s")
        said = {name: getattr(self, name) for name in LABELS.names if name != "id"}
        text = "|".join(f"{name}={value}" for name, value in sorted(said.items()))
        with explaining("a label contains text that is not valid Unicode", UnicodeEncodeError):
            object.__setattr__(self, "id", hashlib.sha256(text.encode()).hexdigest()[:32])
