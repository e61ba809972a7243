"""The gap between a simulated robot and the real one: measured, and its causes named."""

from typing import TYPE_CHECKING

from sim2real.lazy import attach

__all__ = [
    "BAND",
    "DOCTOR_THRESHOLDS",
    "STRONG",
    "ChannelGap",
    "DoctorThresholds",
    "Gap",
    "GapConfig",
    "GapThresholds",
    "Hotspot",
    "RangeCoverage",
    "Ranges",
    "RangesConfig",
    "RangesFound",
    "SensorCoverage",
    "look_at_ranges",
    "measure_gap",
    "posterior_bands",
    "range_coverage",
    "two_figures",
]

if TYPE_CHECKING:
    from sim2real.gap.error_hotspots import Hotspot
    from sim2real.gap.gap_config import GapConfig
    from sim2real.gap.horizon_errors import ChannelGap
    from sim2real.gap.measure import Gap, measure_gap, two_figures
    from sim2real.gap.ranges import (
        BAND,
        STRONG,
        Ranges,
        RangesFound,
        look_at_ranges,
        posterior_bands,
    )
    from sim2real.gap.ranges_config import RangesConfig
    from sim2real.gap.reading_coverage import RangeCoverage, SensorCoverage, range_coverage
    from sim2real.gap.thresholds import DOCTOR_THRESHOLDS, DoctorThresholds, GapThresholds
else:
    __getattr__, __dir__ = attach(__name__, __file__)
