"""What counts in an identification: thresholds that may be changed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class IdentifyThresholds:
    """Of what is fitted, held back, promoted and learned beyond the parameters."""

    horizons_s: tuple[float, ...] = (0.5, 2.0)
    """Lengths of the segments, the shortest first: one fit after the other [s]."""
    segments: int = 160
    """Segments that a fit looks at, spread over all there are; more hardly tell more."""
    shortest_s: float = 1.0
    """Time of all logs below which nothing is fitted [s]."""
    held_back: float = 0.25
    """Share of the recordings that is held back."""
    worse: float = 1.02
    """A twin whose held-back error grows by more than this factor is not promoted."""
    remainder_worth: float = 0.97
    """Held-back error with a remainder, against that without, above which it is not kept."""
    remainder_harm: float = 1.01
    """The same of any one sensor over any one horizon."""
    remainder_sure: float = 0.95
    """How sure it must be that recordings are predicted better with it at all."""


IDENTIFY_THRESHOLDS = IdentifyThresholds()
