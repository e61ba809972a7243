"""Progress in parts: long work reports (done, of), and names its parts to those who show names.

>>> phase(print, "fit")(1, 4)
1 4
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Report: TypeAlias = Callable[[int, int], None]
"""Called with how much of the work is done, and of how much."""


def phase(report: Report, name: str) -> Report:
    """What a part of the work reports to: a progress bar's `phase`, or `report` itself."""
    named: Callable[[str], Report] | None = getattr(report, "phase", None)
    return report if named is None else named(name)
