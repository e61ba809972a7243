"""What counts as a fault of an interface: thresholds that may be changed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class DoctorThresholds:
    """Of faults between a policy and a robot that clocks, sizes and the twin's worlds show."""

    slow_loop: float = 1.04
    """Period against the promised one from which a loop is slow; clocks differ by less."""
    stale_share: float = 0.15
    """Share of periods without a new reading beyond which a channel is stale."""
    stale_periods: int = 8
    """So many periods in a row without a new reading are a frozen channel."""
    other_unit: float = 4.0
    """A reading so many times beyond the largest of all worlds has another unit."""
    saturated_share: float = 0.85
    """Share of actions at their limit that may still be an arm that pushes against its table."""
    misfit: float = 1.3
    """Misfit, in that of the twin's worlds, up to which a robot moves as they do."""
    worlds: int = 64
    """Worlds of the twin that show what is normal."""
    wider: float = 2.0
    """How many times as wide as the twin's prior their parameters are drawn."""


DOCTOR_THRESHOLDS = DoctorThresholds()
