"""`real`: recordings of real robots, how each is read and scored."""

from benchmarks.real.bench import MEASUREMENT

__all__ = ["MEASUREMENT"]
