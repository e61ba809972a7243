"""`transfer`: strategies on many units of stand-in hardware."""

from benchmarks.transfer.bench import MEASUREMENT

__all__ = ["MEASUREMENT"]
