"""`scale`: executors side by side, and killed."""

from benchmarks.scale.bench import MEASUREMENT

__all__ = ["MEASUREMENT"]
