"""From an episode to a `ControlLog`: cleaned, on control periods, in the contract's order.

Analyses read logs in this form only. `aligned` refuses an episode whose clocks or values would
spoil an analysis, in one line that says what to do.

>>> from sim2real.tasks import find_task
>>> from sim2real.testing import recordings, truths_of
>>> from sim2real.twin import Twin
>>> twin = Twin.load(find_task("pendulum-swingup").twin)
>>> (log,) = recordings(twin, truths_of(twin, 1, seed=0), seconds=1.0, rate_hz=50.0)
>>> log.readings.shape, log.missing
((51, 2), ())
"""

from typing import TYPE_CHECKING

from sim2real.lazy import attach

__all__ = [
    "ControlLog",
    "LogThresholds",
    "aligned",
    "aligned_logs",
]

if TYPE_CHECKING:
    from sim2real.logs.alignment import aligned, aligned_logs
    from sim2real.logs.control_log import ControlLog
    from sim2real.logs.thresholds import LogThresholds
else:
    __getattr__, __dir__ = attach(__name__, __file__)
