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
    saturated_more: float = 0.4
    """Share of actions at their limit, beyond that of any simulated episode, that is a fault."""
    zero_offset: float = 0.12
    """Zero error from which it is a fault; calibration, sag and friction cause smaller ones [rad or
    m]."""
    scale: float = 1.3
    """Factor of readings or positions from which it is a fault; motors and gears differ by less."""
    torque_scale: float = 2.2
    """The same for torques, of which friction, heat and a low battery take more than half."""
    start_outside: float = 0.6
    """How far a joint may start outside the worlds' starts: an unpowered arm sags [rad or m]."""
    other_pose: float = 1.2
    """How far outside the worlds' starts a joint is in another pose [rad or m]."""
    misfit_margin: float = 0.4
    """How much more than any clean episode's misfit a correction must improve a log's."""
    delay_margin: float = 0.3
    """The same for delays, in which buses differ."""
    misfit: float = 1.3
    """Misfit, relative to that of the twin's worlds, up to which a robot moves like them."""
    false_alarm: float = 0.02
    """Share of the logs of a sound robot whose motion may look like a fault."""
    chance: float = 0.05
    """Probability of a fault in as many logs by false alarms alone, above which it is a note."""
    worlds: int = 64
    """Worlds of the twin that define what is normal."""
    wider: float = 2.0
    """How much wider than the twin's prior their parameters are drawn."""


DOCTOR_THRESHOLDS = DoctorThresholds()
