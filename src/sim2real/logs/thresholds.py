"""How bad a log may be and still be used."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class LogThresholds:
    """How many bad samples of a channel are left out before its log is refused."""

    wrong_stamps: float = 0.01
    """Largest share of time stamps that are not finite, repeat or go backwards."""
    lost_samples: float = 0.1
    """Largest share of samples with values that are not finite or physically impossible."""


LOG_THRESHOLDS = LogThresholds()
