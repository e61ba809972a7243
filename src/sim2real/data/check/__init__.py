"""Faults of a recorded log that ruin identification and training: found, told, repaired."""

from sim2real.data.check.engine import check
from sim2real.data.check.finding import KINDS, Finding, Place
from sim2real.data.check.repair import repair

__all__ = ["KINDS", "Finding", "Place", "check", "repair"]
