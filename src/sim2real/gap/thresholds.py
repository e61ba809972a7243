"""What counts as a gap, and as covered.

The defaults hold for all robots here; `measure_gap` and `range_coverage` take others.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class GapThresholds:
    """Thresholds of a measured gap, and of the coverage of a posterior or ranges."""

    level: float = 0.05
    """Significance level."""
    segments: int = 400
    """Most segments for errors, distances and coverage."""
    short_segments: int = 1600
    """Most shorter segments for hotspots."""
    draws: int = 40
    """Draws of a posterior for its coverage."""
    inside_least: float = 0.90
    """Share of readings inside the middle 95 % below which ranges are too narrow."""
    spread_most: float = 2.0
    """Spread of the simulated readings, over the error, above which ranges are too wide."""


GAP_THRESHOLDS = GapThresholds()
