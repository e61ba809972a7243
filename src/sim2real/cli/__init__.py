"""The command line: a verb per task, whose options are a dataclass read by tyro."""

from sim2real.cli.main import main

__all__ = ["main"]
