"""Faults of a recorded log that ruin identification and training: found, told, repaired."""

from sim2real.data.check.engine import check
from sim2real.data.check.finding import KINDS, Finding, Place
from sim2real.data.check.repair import repair
from sim2real.data.check.values import bad_samples

__all__ = ["KINDS", "Finding", "Place", "bad_samples", "check", "repair"]
