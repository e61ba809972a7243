"""What counts as a gap, and as covered: thresholds that may be changed.

The defaults hold for all robots here. A user of the library gives others to `measure_gap`
and `range_coverage`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class GapThresholds:
    """Of a gap that is measured, and of what a posterior or ranges cover."""

    level: float = 0.05
    """Chance of a false claim that is taken."""
    segments: int = 400
    """Segments that errors, distances and coverage are measured on, at most."""
    short_segments: int = 1600
    """Shorter segments that places are looked for in, at most."""
    draws: int = 40
    """Draws of a posterior, whose coverage is looked at."""
    inside_least: float = 0.90
    """Share of readings inside the middle 95 % below which ranges are too narrow."""
    spread_most: float = 2.0
    """Spread of what is simulated, in real errors, above which ranges are too wide."""


GAP_THRESHOLDS = GapThresholds()
