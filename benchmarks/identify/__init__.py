"""`identify`: identification against known truths and against its peers."""

from benchmarks.identify.bench import MEASUREMENT

__all__ = ["MEASUREMENT"]
