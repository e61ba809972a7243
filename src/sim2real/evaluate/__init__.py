"""Trials, success rates with intervals, and what success depends on."""

from sim2real.evaluate.config import EvaluateConfig, PlayConfig

__all__ = ["EvaluateConfig", "PlayConfig"]
