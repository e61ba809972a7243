"""Pages, figures and progress bars made of results.

A page is one HTML file with its style and pictures inside; nothing is fetched.

>>> import numpy as np
>>> from sim2real.report import curve
>>> curve(np.arange(5.0), np.array([0.0, 1.0, 2.0, 1.0, 0.0]), width=5, height=1)
['⡀⠂⠈⠐⢀']
"""

from typing import TYPE_CHECKING

from sim2real.lazy import attach

__all__ = [
    "FORMATS",
    "REPORT_FILE",
    "Live",
    "bar",
    "curve",
    "load_result",
    "plot_attribution",
    "plot_drift",
    "plot_episode",
    "plot_evaluation",
    "plot_motion",
    "plot_plan",
    "plot_run",
    "report_of",
    "write_attribution",
    "write_gap",
    "write_loop",
    "write_page",
    "write_ranges",
]

if TYPE_CHECKING:
    from sim2real.report.attribution_plots import plot_attribution, write_attribution
    from sim2real.report.gap_page import write_gap
    from sim2real.report.identification_page import write_page
    from sim2real.report.live_view import Live
    from sim2real.report.loop_page import REPORT_FILE, write_loop
    from sim2real.report.plots import (
        FORMATS,
        plot_drift,
        plot_episode,
        plot_evaluation,
        plot_motion,
        plot_plan,
        plot_run,
    )
    from sim2real.report.progress import bar
    from sim2real.report.ranges_page import write_ranges
    from sim2real.report.stored import load_result, report_of
    from sim2real.report.terminal import curve
else:
    __getattr__, __dir__ = attach(__name__, __file__)
