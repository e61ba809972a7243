"""How far a twin is from its robot: on which channel, how far ahead, where, and how significantly.

`measure_gap` replays real logs in the twin and compares; `look_at_ranges` says whether the ranges
that training draws from cover what the robot did.

>>> from sim2real.gap import look_at_ranges
>>> from sim2real.tasks import find_task
>>> ranges = look_at_ranges(find_task("pendulum-swingup").twin, params="nominal")
>>> ranges.source, ranges.draws.shape, ranges.correlations()
('nominal', (2000, 11), [])
"""

from typing import TYPE_CHECKING

from sim2real.lazy import attach

__all__ = [
    "BAND",
    "LEVELS",
    "PRIOR_SHARES",
    "STRONG",
    "ChannelGap",
    "Correlation",
    "Gap",
    "GapConfig",
    "GapThresholds",
    "Hotspot",
    "Overlay",
    "RangeCoverage",
    "Ranges",
    "RangesConfig",
    "ReadingBands",
    "SegmentErrors",
    "SensorCoverage",
    "look_at_ranges",
    "measure_gap",
    "range_coverage",
    "ranges_of",
    "two_figures",
]

if TYPE_CHECKING:
    from sim2real.gap.channel_gap import ChannelGap
    from sim2real.gap.coverage import LEVELS, RangeCoverage, ReadingBands, SensorCoverage
    from sim2real.gap.drawn_ranges import look_at_ranges, ranges_of
    from sim2real.gap.error_hotspots import Hotspot
    from sim2real.gap.gap import Gap, two_figures
    from sim2real.gap.gap_config import GapConfig
    from sim2real.gap.measure import measure_gap
    from sim2real.gap.ranges import BAND, PRIOR_SHARES, STRONG, Correlation, Ranges
    from sim2real.gap.ranges_config import RangesConfig
    from sim2real.gap.reading_coverage import range_coverage
    from sim2real.gap.shown_segments import Overlay, SegmentErrors
    from sim2real.gap.thresholds import GapThresholds
else:
    __getattr__, __dir__ = attach(__name__, __file__)
