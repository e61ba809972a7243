"""What counts as a fault of a log."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class CheckThresholds:
    """Thresholds of log faults; the defaults hold for all robots here."""

    gap_steps: float = 2.5
    """A longer step, in median steps, is a gap: a late sample reaches 2, a lost sample is 2."""
    gap_spread: float = 5.0
    """How far a gap must exceed the median, in 95th percentiles above it: event-based sampling has
    no gaps."""
    rate_error: float = 0.02
    """Largest error of a stated rate: loops paced by sleeping lose up to 2 %; 2 % of time is 4 % of
    every acceleration."""
    clock_error: float = 2e-4
    """Largest rate error between two clocks: quartz clocks are within 100 ppm each."""
    frozen_samples: int = 8
    """Fewest equal values in a row of a frozen channel: fewer do little harm and prove little."""


CHECK_THRESHOLDS = CheckThresholds()
