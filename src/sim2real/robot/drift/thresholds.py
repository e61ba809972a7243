"""Which parameters are named as the cause of a drift."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class DriftThresholds:
    """Thresholds of the causes of a drift; whether there is one depends on `false_alarm` alone."""

    level: float = 0.05
    """Significance level of naming a parameter that has not moved."""
    explained_least: float = 0.1
    """Share of the change that a further cause must explain; less may come from linearising."""
    alike: float = 0.9
    """Share of what the best parameter explains above which another explains it equally well."""
    causes: int = 3
    """Most causes that are named."""


DRIFT_THRESHOLDS = DriftThresholds()
