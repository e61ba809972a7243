"""The page of a twin's ranges: the parameters that episodes get, and whether they are right."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from sim2real.gap import BAND, STRONG, Ranges, posterior_bands
from sim2real.replay import spread_evenly
from sim2real.report.identify_plots import fill_prior, quantiles_of
from sim2real.report.page import paragraph, picture, sentence, table, write_parts
from sim2real.report.panels import NEW, OLD, REAL, TICK, grid, label, panel, tiles
from sim2real.units import counted

if TYPE_CHECKING:
    from pathlib import Path

    from sim2real.gap import Correlation, RangeCoverage

_MAX_PAIRS = 8
_SHOWN_SEGMENTS = 5
_SIZE = (3.0, 1.9)


def write_ranges(path: Path, ranges: Ranges) -> None:
    """Write the page as one self-contained file."""
    coverage = ranges.coverage
    parts = [
        f"<h1>Ranges of {html.escape(ranges.twin.name)}</h1>",
        f"<p>Version {ranges.twin.version}; episodes draw from"
        f" <b>{html.escape(ranges.source)}</b>. Grey: the prior. Blue: the draws; the bar is their"
        " middle 95 %, the thin line below it that of the posterior. Dotted: the nominal value."
        "</p>",
        beliefs(ranges, ranges.moving),
        table(*ranges.table()),
        "<h2>Correlations</h2>",
        *_correlated(ranges),
    ]
    if coverage is not None:
        parts += [
            "<h2>Coverage</h2>",
            _covered(coverage),
            picture(_bands(coverage), "real readings among the simulated ones"),
        ]
    write_parts(path, f"ranges of {ranges.twin.name}", parts)


def beliefs(ranges: Ranges, chosen: Iterable[int]) -> str:
    """Prior and draws of the `chosen` parameters, by their numbers, side by side."""
    names = ranges.names
    panels = (picture(_belief(ranges, k), f"prior and range of {names[k]}") for k in chosen)
    return f"<div class='plots small'>{''.join(panels)}</div>"


def _belief(ranges: Ranges, k: int) -> Figure:
    figure, axis = panel(*_SIZE)
    posterior = posterior_bands(ranges.twin)
    parameter, mine = ranges.twin.parameters[k], ranges.draws[:, k]
    prior = quantiles_of(parameter)
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
    if parameter.name in posterior:
        left, _, right = posterior[parameter.name]
        axis.plot([left, right], [-0.18, -0.18], color=REAL, linewidth=1.5)
    axis.axvline(parameter.nominal, color=REAL, linewidth=0.8, linestyle=":")
    label(axis, parameter.name, ticks=TICK)
    axis.set_yticks([])
    axis.locator_params(axis="x", nbins=4)
    return figure


def _correlated(ranges: Ranges) -> list[str]:
    pairs = ranges.correlations()
    if not pairs:
        words = f"No two parameters have a correlation above {STRONG:g}: each is drawn separately."
        return [paragraph(words)]
    text = "; ".join(
        f"{' and '.join(pair.parameters)}: {pair.correlation:+.2f}" for pair in pairs[:_MAX_PAIRS]
    )
    return [
        paragraph("Draws keep these correlations; separate draws would fill the dashed box."),
        paragraph(f"{text}."),
        picture(_pairs(ranges, pairs[:_MAX_PAIRS]), "draws of correlated parameters"),
    ]


def _pairs(ranges: Ranges, pairs: list[Correlation]) -> Figure:
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


def _covered(coverage: RangeCoverage) -> str:
    lost = f" {counted(coverage.diverged, 'draw')} diverged." if coverage.diverged else ""
    more = (
        f"{coverage.windows} segments of {coverage.horizon_s:g} s from"
        f" {counted(coverage.recordings, 'recording')}, each replayed with"
        f" {len(coverage.replay.values)} draws and all noise. 95 % should be inside.{lost}"
        f" All sensors together are explained in {coverage.explained} of the segments."
    )
    style = "good" if coverage.verdict == "fine" else "bad"
    words = f"<p class='{style}'>{sentence(coverage.sentence)}</p>"
    return words + paragraph(more) + table(*coverage.table())


def _bands(coverage: RangeCoverage) -> Figure:
    """A few segments of each sensor: real readings and the simulated 95 %, minus the median."""
    replay = coverage.replay
    known = {sensor.name for sensor in coverage.sensors}
    specs = replay.log.contract.sensors
    sensors = [spec for spec in specs if spec.width == 1 and spec.name in known][:8]
    count = max(1, len(sensors))
    figure, rows = grid(count, 1, width=9, height=1.4 * count + 0.4)
    axes = [axis for (axis,) in rows]
    segments = spread_evenly(len(replay.starts), _SHOWN_SEGMENTS)
    steps = replay.predicted.shape[2]
    for axis, spec in zip(axes, sensors, strict=False):
        column = replay.column(spec.name).start
        for place, segment in enumerate(segments):
            times = replay.period_s * (place * (steps + 3) + np.arange(1, steps + 1))
            mine = replay.predicted[:, segment, :, column]
            low, middle, high = np.nanquantile(mine, BAND, axis=0)
            real = replay.measured[segment, :, column] - middle
            axis.fill_between(times, low - middle, high - middle, color=NEW, alpha=0.3, lw=0)
            axis.plot(times, real, ".", color=REAL, markersize=3)
        axis.axhline(0.0, color=NEW, linewidth=0.6)
        label(axis, y=f"{spec.name}\n[{spec.unit}]", ticks=TICK)
    axes[-1].set_xlabel(
        f"time [s]; {len(segments)} of the segments, minus the simulated median", fontsize=8
    )
    axes[0].plot([], [], ".", color=REAL, label="real")
    axes[0].fill_between([], [], color=NEW, alpha=0.3, label="95 % of the simulated")
    axes[0].legend(fontsize=TICK, ncols=2, loc="upper right")
    return figure
