"""Thresholds of an explanation of failures."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class FailureThresholds:
    """What counts as confirmed by trials on a robot."""

    level: float = 0.05
    """P-value below which a complaint is confirmed, corrected for the number of comparisons."""
    min_outcomes: int = 4
    """Fewest successes, and fewest failures, that a complaint is tested with."""
    value_level: float = 0.01
    """P-value below which a parameter explains failures, corrected for the number of parameters."""


FAILURE_THRESHOLDS = FailureThresholds()
