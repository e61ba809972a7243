"""What counts as a gap, as an interface fault, and as covered.

The defaults hold for all robots here; `measure_gap`, `range_coverage` and `diagnose` take others.
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


@dataclass(frozen=True, kw_only=True)
class DoctorThresholds:
    """Thresholds of interface faults."""

    slow_loop: float = 1.04
    """Control period, relative to the promised one, above which a loop is slow; clocks differ by
    less."""
    stale_share: float = 0.15
    """Share of periods without a new reading above which a channel is stale."""
    stale_periods: int = 8
    """Consecutive periods without a new reading that make a channel frozen."""
    other_unit: float = 4.0
    """Size of a reading, relative to the largest of all worlds, that means another unit."""
    saturated_share: float = 0.85
    """Share of actions at their limit up to which an arm may just be pushing against its table."""
    misfit: float = 1.3
    """Misfit, relative to the twin's worlds, up to which a robot moves like them."""
    worlds: int = 64
    """Worlds of the twin that define what is normal."""
    wider: float = 2.0
    """How much wider than the twin's prior their parameters are drawn."""


GAP_THRESHOLDS = GapThresholds()
DOCTOR_THRESHOLDS = DoctorThresholds()
