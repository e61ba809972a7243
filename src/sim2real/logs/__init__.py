"""TODO."""

from typing import TYPE_CHECKING

from sim2real.lazy import attach

__all__ = [
    "ControlLog",
    "aligned",
    "aligned_logs",
]

if TYPE_CHECKING:
    from sim2real.logs.alignment import aligned, aligned_logs
    from sim2real.logs.control_log import ControlLog
else:
    __getattr__, __dir__ = attach(__name__, __file__)
