"""The page of a twin's ranges: what parameters episodes are given, and whether that is right."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sim2real.gap import BAND, STRONG, Ranges, RangesFound, posterior_bands
from sim2real.replay import spread_evenly
from sim2real.report.identify_plots import fill_prior, quantiles_of
from sim2real.report.page import NEW, OLD, REAL, picture, table, write_parts

if TYPE_CHECKING:
    from pathlib import Path

    from sim2real.gap import RangeCoverage

_PAIRS = 8
_SHOWN_WINDOWS = 5


def write_ranges(path: Path, found: RangesFound) -> None:
    """Write the page as one file that needs nothing else."""
    ranges, coverage = found.ranges, found.coverage
    parts = [
        f"<h1>Ranges of {html.escape(ranges.twin.name)}</h1>",
        f"<p>Version {ranges.twin.version}; episodes are given draws of"
        f" <b>{html.escape(ranges.source)}</b>. Grey is the prior, blue what is drawn, with its"
        " middle 95 % as a bar, and below it as a thin line that of the posterior; the dotted line"
        " is the nominal value.</p>",
        picture(beliefs(ranges), "prior and range of each parameter"),
        _table(ranges),
        "<h2>What goes together</h2>",
        *_together(ranges),
    ]
    if coverage is not None:
        parts += [
            "<h2>What the ranges cover</h2>",
            _covered(coverage),
            picture(_bands(coverage), "real readings among the simulated ones"),
        ]
    write_parts(path, f"ranges of {ranges.twin.name}", parts)


def _table(ranges: Ranges) -> str:
    rows = []
    for name, entry in ranges.to_dict()["parameters"].items():
        (low, _, high), (least, _, most) = entry["prior"], entry["range"]
        known = entry["posterior"]
        share = (most - least) / (high - low) if high > low else float("nan")
        rows.append(
            (
                name,
                f"{low:.4g} .. {high:.4g}",
                f"{known[0]:.4g} .. {known[2]:.4g}" if known else "",
                f"{least:.4g} .. {most:.4g}",
                entry["unit"] or "×",
                f"{100 * share:.3g} %" if np.isfinite(share) else "",
            )
        )
    columns = ("parameter", "prior, 95 %", "posterior, 95 %", "range, 95 %", "unit", "of the prior")
    return table(columns, rows)


def beliefs(ranges: Ranges) -> Figure:
    """Prior and draws of every parameter, side by side."""
    shown = ranges.moving
    columns = min(4, max(1, len(shown)))
    rows = max(1, -(-len(shown) // columns))
    figure = Figure(figsize=(3.0 * columns, 1.9 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis, k in zip(axes, shown, strict=False):
        _belief(axis, ranges, k)
    for axis in axes[len(shown) :]:
        axis.set_visible(False)
    return figure


def belief_of(ranges: Ranges, k: int) -> Figure:
    """Prior and draws of one parameter."""
    figure = Figure(figsize=(3.0, 1.9), layout="constrained")
    _belief(figure.subplots(), ranges, k)
    return figure


def _belief(axis: Axes, ranges: Ranges, k: int) -> None:
    posterior = posterior_bands(ranges.twin)
    parameter, mine = ranges.twin.parameters[k], ranges.draws[:, k]
    prior = quantiles_of(parameter)
    least, _, most = np.quantile(mine, BAND)
    edges = min(prior[0], mine.min()), max(prior[-1], mine.max())
    room = 0.05 * (edges[1] - edges[0]) + 1e-12
    grid = np.linspace(edges[0] - room, edges[1] + room, 400)
    if np.ptp(prior) > 0:
        fill_prior(axis, prior, grid)
    if np.ptp(mine) > 0:
        heights, places = np.histogram(mine, bins=24)
        axis.stairs(heights / heights.max(), places, fill=True, color=NEW, alpha=0.7)
    axis.plot([least, most], [-0.08, -0.08], color=NEW, linewidth=3, solid_capstyle="butt")
    if parameter.name in posterior:
        left, _, right = posterior[parameter.name]
        axis.plot([left, right], [-0.18, -0.18], color=REAL, linewidth=1.5)
    axis.axvline(parameter.nominal, color=REAL, linewidth=0.8, linestyle=":")
    axis.set_title(parameter.name, fontsize=7)
    axis.set_yticks([])
    axis.tick_params(labelsize=7)
    axis.locator_params(axis="x", nbins=4)


def _together(ranges: Ranges) -> list[str]:
    pairs = ranges.correlations()
    if not pairs:
        return [
            f"<p>No two parameters go together (correlations below {STRONG:g}): every one is drawn"
            " by itself.</p>"
        ]
    text = "; ".join(f"{one} and {other}: {value:+.2f}" for one, other, value in pairs[:_PAIRS])
    return [
        "<p>A draw keeps these correlations; the dashed box is what would be drawn if each"
        f" parameter went by itself.</p><p>{html.escape(text)}.</p>",
        picture(_pairs(ranges, pairs[:_PAIRS]), "draws of parameters that go together"),
    ]


def _pairs(ranges: Ranges, pairs: list[tuple[str, str, float]]) -> Figure:
    columns = min(4, len(pairs))
    rows = -(-len(pairs) // columns)
    figure = Figure(figsize=(3.0 * columns, 2.7 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis, (one, other, value) in zip(axes, pairs, strict=False):
        x, y = (ranges.draws[:, ranges.names.index(name)] for name in (one, other))
        axis.plot(x, y, ".", color=NEW, markersize=2, alpha=0.6)
        (left, _, right), (low, _, high) = np.quantile(x, BAND), np.quantile(y, BAND)
        axis.plot(
            [left, right, right, left, left], [low, low, high, high, low], "--", color=OLD,
            linewidth=1,
        )  # fmt: skip
        axis.set_xlabel(one, fontsize=7)
        axis.set_ylabel(other, fontsize=7)
        axis.set_title(f"{value:+.2f}", fontsize=8)
        axis.tick_params(labelsize=6)
        axis.locator_params(nbins=4)
    for axis in axes[len(pairs) :]:
        axis.set_visible(False)
    return figure


def _covered(coverage: RangeCoverage) -> str:
    words = {
        "too narrow": "The ranges are too narrow: the robot does what they do not make possible."
        " Widen them, or mend the twin.",
        "too wide": "The ranges are too wide: the logs know more. Identify the twin from them.",
        "fine": "The ranges make possible what the robot did.",
    }[coverage.verdict]
    style = "good" if coverage.verdict == "fine" else "bad"
    rows = [
        (
            f"{sensor.name} [{sensor.unit}]",
            str(sensor.inside),
            str(sensor.explained),
            f"{sensor.spread:.3g}",
            f"{sensor.error:.3g}",
            f"{sensor.width:.2f}",
            sensor.verdict,
        )
        for sensor in coverage.sensors
    ]
    columns = ("sensor", "readings inside", "windows explained", "spread", "error", "ratio", "")
    lost = f" {coverage.diverged} draws diverged." if coverage.diverged else ""
    several = "" if coverage.recordings == 1 else "s"
    return (
        f"<p class='{style}'>{words}</p>"
        f"<p>{coverage.windows} windows of {coverage.horizon_s:g} s from {coverage.recordings}"
        f" recording{several}, each replayed with {len(coverage.replay.values)} draws and all"
        f" noise. 95 % should be inside.{lost} Explained in all sensors together:"
        f" {coverage.explained} of the windows.</p>" + table(columns, rows)
    )


def _bands(coverage: RangeCoverage) -> Figure:
    """A few windows of each sensor: real readings and the simulated 95 %, less their middle."""
    replay = coverage.replay
    sensors = [spec for spec in replay.log.contract.sensors if spec.width == 1]
    known = {sensor.name for sensor in coverage.sensors}
    sensors = [spec for spec in sensors if spec.name in known][:8]
    figure = Figure(figsize=(9, 1.4 * max(1, len(sensors)) + 0.4), layout="constrained")
    axes = figure.subplots(max(1, len(sensors)), 1, squeeze=False).ravel()
    windows = spread_evenly(len(replay.starts), _SHOWN_WINDOWS)
    steps = replay.predicted.shape[2]
    for axis, spec in zip(axes, sensors, strict=False):
        column = replay.column(spec.name).start
        for place, window in enumerate(windows):
            times = replay.period_s * (place * (steps + 3) + np.arange(1, steps + 1))
            mine = replay.predicted[:, window, :, column]
            low, middle, high = np.nanquantile(mine, BAND, axis=0)
            real = replay.measured[window, :, column] - middle
            axis.fill_between(times, low - middle, high - middle, color=NEW, alpha=0.3, lw=0)
            axis.plot(times, real, ".", color=REAL, markersize=3)
        axis.axhline(0.0, color=NEW, linewidth=0.6)
        axis.set_ylabel(f"{spec.name}\n[{spec.unit}]", fontsize=7)
        axis.tick_params(labelsize=7)
    axes[-1].set_xlabel(
        f"time [s]; {len(windows)} of the windows, less the middle of what is simulated", fontsize=8
    )
    axes[0].plot([], [], ".", color=REAL, label="real")
    axes[0].fill_between([], [], color=NEW, alpha=0.3, label="95 % of the simulated")
    axes[0].legend(fontsize=7, ncols=2, loc="upper right")
    return figure
