"""The page of a twin's ranges: the parameters that episodes get, and whether they are right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from sim2real.gap import BAND, STRONG, Ranges
from sim2real.report.identify_plots import fill_prior
from sim2real.report.page import Picture, picture, write_html
from sim2real.report.panels import NEW, OLD, REAL, TICK, grid, label, panel, tiles

if TYPE_CHECKING:
    from pathlib import Path

    from sim2real.gap import Correlation, ReadingBands

_MAX_PAIRS = 8
_SIZE = (3.0, 1.9)


def write_ranges(path: Path, ranges: Ranges) -> None:
    """Write the page as one self-contained file."""
    pairs = ranges.correlations()[:_MAX_PAIRS]
    found = ranges.coverage
    write_html(
        path,
        "ranges.html",
        ranges=ranges,
        beliefs=list(beliefs(ranges, ranges.moving)),
        strong=STRONG,
        pairs=pairs,
        correlated=pairs and picture(_pairs(ranges, pairs), "draws of correlated parameters"),
        bands=found and picture(_bands(found.bands), "real readings among the simulated ones"),
    )


def beliefs(ranges: Ranges, chosen: Iterable[int]) -> Iterable[Picture]:
    """Prior and draws of the `chosen` parameters, by their numbers."""
    for k in chosen:
        yield picture(_belief(ranges, k), f"prior and range of {ranges.names[k]}")


def _belief(ranges: Ranges, k: int) -> Figure:
    figure, axis = panel(*_SIZE)
    parameter, mine = ranges.all_parameters[k], ranges.draws[:, k]
    prior = parameter.prior_curve
    least, _, most = np.quantile(mine, BAND)
    edges = min(prior[0], mine.min()), max(prior[-1], mine.max())
    room = 0.05 * (edges[1] - edges[0]) + 1e-12
    grid_ = np.linspace(edges[0] - room, edges[1] + room, 400)
    if np.ptp(prior) > 0:
        fill_prior(axis, prior, grid_)
    if np.ptp(mine) > 0:
        heights, places = np.histogram(mine, bins=24)
        axis.stairs(heights / heights.max(), places, fill=True, color=NEW, alpha=0.7)
    axis.plot([least, most], [-0.08, -0.08], color=NEW, linewidth=3, solid_capstyle="butt")
    if parameter.posterior is not None:
        left, _, right = parameter.posterior
        axis.plot([left, right], [-0.18, -0.18], color=REAL, linewidth=1.5)
    axis.axvline(parameter.nominal, color=REAL, linewidth=0.8, linestyle=":")
    label(axis, parameter.name, ticks=TICK)
    axis.set_yticks([])
    axis.locator_params(axis="x", nbins=4)
    return figure


def _pairs(ranges: Ranges, pairs: Sequence[Correlation]) -> Figure:
    figure, axes = tiles(len(pairs), width=3.0, height=2.7)
    for axis, pair in zip(axes, pairs, strict=True):
        x, y = (ranges.draws[:, ranges.names.index(name)] for name in pair.parameters)
        axis.plot(x, y, ".", color=NEW, markersize=2, alpha=0.6)
        (left, _, right), (low, _, high) = np.quantile(x, BAND), np.quantile(y, BAND)
        axis.plot(
            [left, right, right, left, left], [low, low, high, high, low], "--", color=OLD,
            linewidth=1,
        )  # fmt: skip
        label(axis, f"{pair.correlation:+.2f}", *pair.parameters, ticks=TICK - 1)
        axis.locator_params(nbins=4)
    return figure


def _bands(bands: Sequence[ReadingBands]) -> Figure:
    """A few segments of each sensor: real readings and the simulated 95 %, minus the median."""
    count = max(1, len(bands))
    figure, rows = grid(count, 1, width=9, height=1.4 * count + 0.4)
    axes = [axis for (axis,) in rows]
    for axis, one in zip(axes, bands, strict=False):
        steps = one.real.shape[1]
        for place, (real, low, high) in enumerate(zip(one.real, one.low, one.high, strict=True)):
            times = one.period_s * (place * (steps + 3) + np.arange(1, steps + 1))
            axis.fill_between(times, low, high, color=NEW, alpha=0.3, lw=0)
            axis.plot(times, real, ".", color=REAL, markersize=3)
        axis.axhline(0.0, color=NEW, linewidth=0.6)
        label(axis, y=f"{one.sensor}\n[{one.unit}]", ticks=TICK)
    shown = max((len(one.real) for one in bands), default=0)
    axes[-1].set_xlabel(
        f"time [s]; {shown} of the segments, minus the simulated median", fontsize=8
    )
    axes[0].plot([], [], ".", color=REAL, label="real")
    axes[0].fill_between([], [], color=NEW, alpha=0.3, label="95 % of the simulated")
    axes[0].legend(fontsize=TICK, ncols=2, loc="upper right")
    return figure
