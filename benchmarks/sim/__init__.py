"""`sim`: speed and memory of randomised worlds."""

from benchmarks.sim.bench import MEASUREMENT

__all__ = ["MEASUREMENT"]
