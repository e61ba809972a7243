"""Thresholds of an identification."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class IdentifyThresholds:
    """What is refused, fitted, held back, promoted, and kept as a remainder."""

    horizons_s: tuple[float, ...] = (0.5, 2.0)
    """Lengths of the segments of successive fits, the shortest first [s]."""
    segments: int = 160
    """Most segments of a fit, spread evenly; more add little."""
    shortest_s: float = 1.0
    """Least total time of the logs [s]."""
    beyond_limits: float = 0.5
    """Largest share of the rows in which a command may be beyond its limits."""
    at_limits: float = 0.9
    """Largest share of the rows in which a command may be at its limits or beyond."""
    held_back: float = 0.25
    """Share of the recordings that is held back."""
    worse: float = 1.02
    """Growth of the held-back error above which a twin is not promoted."""
    remainder_worth: float = 0.97
    """Held-back error with a remainder, relative to without, above which it is not kept."""
    remainder_harm: float = 1.01
    """The same for any single sensor and horizon."""
    remainder_sure: float = 0.95
    """Confidence that it improves the prediction at all."""
    calibration_draws: int = 40
    """Draws of the posterior that predict held-back recordings; fewer than 20 check nothing."""


IDENTIFY_THRESHOLDS = IdentifyThresholds()
