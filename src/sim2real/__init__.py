"""sim2real measures the gap between a simulated robot and the real one, and closes it."""

__version__ = "0.1.0"
