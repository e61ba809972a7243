"""What counts as an interface fault."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class DoctorThresholds:
    """Thresholds of interface faults; the defaults hold for all robots here."""

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


DOCTOR_THRESHOLDS = DoctorThresholds()
