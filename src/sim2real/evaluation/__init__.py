"""Trials, success rates with intervals, what success depends on, and what it says of robots."""

from sim2real.evaluation.evaluation_configs import (
    CompareConfig,
    EvaluateConfig,
    PlayConfig,
    PowerConfig,
    PredictConfig,
    RankConfig,
)

__all__ = [
    "CompareConfig",
    "EvaluateConfig",
    "PlayConfig",
    "PowerConfig",
    "PredictConfig",
    "RankConfig",
]
