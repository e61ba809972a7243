"""`deploy`: the loop on a robot."""

from benchmarks.deploy.bench import MEASUREMENT

__all__ = ["MEASUREMENT"]
