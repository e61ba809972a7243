"""`data`: the lake against LeRobot's data sets."""

from benchmarks.data.bench import MEASUREMENT

__all__ = ["MEASUREMENT"]
