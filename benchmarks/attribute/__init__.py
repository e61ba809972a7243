"""`attribute`: attribution of planted gaps."""

from benchmarks.attribute.bench import MEASUREMENT

__all__ = ["MEASUREMENT"]
