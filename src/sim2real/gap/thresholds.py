"""What counts as a gap, and as covered; `measure_gap` and `range_coverage` take others."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class GapThresholds:
    """Thresholds of a measured gap, and of the coverage of a posterior or ranges."""

    level: float = 0.05
    """Significance level."""
    segments: int = 400
    """Most segments to replay for errors, tests and coverage."""
    short_segments: int = 1600
    """Most of the shorter segments to replay for hotspots."""
    draws: int = 40
    """Draws of a posterior to check its coverage with."""
    motion: float = 3.0
    """Standard deviation of readings above which they show motion [noise levels]."""
    lag_least: float = 0.1
    """Share of the squared error above which a lag that explains it is reported."""
    lag_most: float = 0.5
    """The same, above which a lag is the main cause of the error."""
    inside_least: float = 0.90
    """Share of readings inside the middle 95 % below which ranges are too narrow."""
    spread_most: float = 2.0
    """Spread of the simulated readings, over the error, above which ranges are too wide."""


GAP_THRESHOLDS = GapThresholds()
