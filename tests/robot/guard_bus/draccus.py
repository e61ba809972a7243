"""LeRobot's reader of configurations, as far as a robot's file needs it."""

from types import SimpleNamespace


def decode(kind, fields):
    return SimpleNamespace(**fields)
