"""The command line: one verb a command, each a dataclass read by tyro."""

from sim2real.cli.main import main

__all__ = ["main"]
