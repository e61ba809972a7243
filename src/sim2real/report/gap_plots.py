"""Pictures of a gap, each small enough for a telephone; the page sets them in a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sim2real.arrays import Floats
from sim2real.report.page import NEW, OLD, REAL, WARN

if TYPE_CHECKING:
    from sim2real.gap import ChannelGap, Gap, Hotspot

_SIZE = (3.6, 2.2)
_LABEL, _TICK = 8, 7


def over_horizon(channel: ChannelGap, *, legend: bool) -> Figure:
    """The error along the horizon, its floor, and that of the guess that nothing changes."""
    figure = Figure(figsize=_SIZE, layout="constrained")
    axis = figure.subplots()
    times = channel.times_s
    axis.fill_between(times, channel.low, channel.high, color=NEW, alpha=0.3, linewidth=0)
    axis.plot(times, channel.rms, color=NEW, linewidth=1.5, label="twin")
    axis.plot(times, channel.floor, color=REAL, linewidth=1, label="its own noise")
    axis.plot(times, channel.stays, color=OLD, linewidth=1.2, linestyle="--", label="it stays")
    top = 1.15 * max(*channel.high, *channel.floor)
    axis.set_ylim(0, max(min(max(channel.stays) * 1.05, 3 * top), top))
    axis.set_xlim(0, times[-1])
    axis.set_title(channel.name, fontsize=_LABEL)
    axis.set_xlabel("time after a measured state [s]", fontsize=_TICK)
    axis.set_ylabel(f"rms error [{channel.unit or '1'}]", fontsize=_TICK)
    axis.tick_params(labelsize=_TICK)
    if legend:
        axis.legend(fontsize=_TICK, frameon=False)
    return figure


def overlay(gap: Gap, sensor: str, component: int, chosen: Sequence[int]) -> Figure:
    """Measured and predicted in the segments `chosen`: the worst, a typical one and the best."""
    pairs = gap.pairs
    spec = next(s for s in pairs.real.log.contract.sensors if s.name == sensor)
    column = pairs.real.column(sensor).start + component
    times = pairs.real.period_s * np.arange(1, pairs.steps + 1)
    bands = None
    if gap.draws is not None:
        bands = pairs.replayer.part(np.array(chosen))(gap.draws).predicted[..., column]
    figure = Figure(figsize=_SIZE, layout="constrained")
    axes: list[Axes] = list(figure.subplots(1, len(chosen), sharey=True, squeeze=False)[0])
    for place, (axis, segment) in enumerate(zip(axes, chosen, strict=True)):
        measured = pairs.real.measured[segment, :, column]
        known = np.isfinite(measured)
        if bands is not None:
            low, high = np.nanquantile(bands[:, place], [0.025, 0.975], axis=0)
            axis.fill_between(times, low, high, color=NEW, alpha=0.25, linewidth=0)
        axis.plot(times[known], measured[known], color=REAL, linewidth=1, label="measured")
        axis.plot(
            times, pairs.real.predicted[0, segment, :, column], color=NEW, linewidth=1, label="twin"
        )
        axis.set_title(("worst", "typical", "best")[place], fontsize=_TICK)
        axis.tick_params(labelsize=_TICK - 1)
        axis.locator_params(axis="x", nbins=3)
    name = sensor if spec.width == 1 else f"{sensor}[{component}]"
    axes[0].set_ylabel(f"{name} [{spec.unit or '1'}]", fontsize=_TICK)
    axes[len(axes) // 2].set_xlabel("time after a measured state [s]", fontsize=_TICK)
    axes[-1].legend(fontsize=_TICK - 1, frameon=False)
    return figure


def along(places: Sequence[Hotspot], worst: Sequence[Hotspot]) -> Figure:
    """The excess of one channel in each range of one thing; red where it is among the `worst`."""
    figure = Figure(figsize=_SIZE, layout="constrained")
    axis = figure.subplots()
    first = places[0]
    each = first.low == first.high
    for place in places:
        colour = WARN if place in worst else NEW
        width = 0.7 if each else place.high - place.low
        left = place.low - 0.35 if each else place.low
        axis.bar(left, place.excess, width=width, align="edge", color=colour, alpha=0.5)
        axis.plot(
            [left + width / 2] * 2, [place.excess_low, place.excess_high], color=colour, linewidth=1
        )
    axis.axhline(0.0, color=REAL, linewidth=0.6)
    if each:
        axis.set_xticks([place.low for place in places][:: max(1, len(places) // 8)])
    axis.set_title(
        f"{first.channel} along {first.along}, within {first.horizon_s:.2g} s", fontsize=_LABEL
    )
    axis.set_xlabel(f"{first.along} [{first.unit}]" if first.unit else first.along, fontsize=_TICK)
    axis.set_ylabel("error beyond noise\n[noise levels]", fontsize=_TICK)
    axis.tick_params(labelsize=_TICK)
    return figure


def over_time(gap: Gap, sensor: str) -> Figure:
    """The error of every segment, recording after recording."""
    pairs = gap.pairs
    part = pairs.real.column(sensor)
    unit = next(s.unit for s in pairs.real.log.contract.sensors if s.name == sensor)
    figure = Figure(figsize=_SIZE, layout="constrained")
    axis = figure.subplots()
    end = 0.0
    for place, recording in enumerate(np.unique(pairs.recording)):
        mine = pairs.recording == recording
        times = end + pairs.since_s[mine]
        real = _each(pairs.real.errors[0][mine][..., part])
        made = _each(pairs.made.errors[0][mine][..., part])
        axis.plot(times, made, ".", color=OLD, markersize=2, label="" if place else "its own noise")
        axis.plot(times, real, ".", color=NEW, markersize=2, label="" if place else "twin")
        end = float(times.max()) + pairs.horizon_s
        axis.axvline(end, color=OLD, linewidth=0.4)
    axis.set_xlim(0, end)
    axis.set_ylim(bottom=0)
    axis.set_title(f"{sensor}: error of each segment", fontsize=_LABEL)
    axis.set_xlabel("time, recording after recording [s]", fontsize=_TICK)
    axis.set_ylabel(f"rms error [{unit or '1'}]", fontsize=_TICK)
    axis.tick_params(labelsize=_TICK)
    axis.legend(fontsize=_TICK, frameon=False, loc="upper right")
    return figure


def chosen_segments(gap: Gap, sensor: str) -> list[int]:
    """The worst, a typical and the best segment of a sensor."""
    order = np.argsort(_each(gap.pairs.real.errors[0][..., gap.pairs.real.column(sensor)]))
    return [int(order[-1]), int(order[len(order) // 2]), int(order[0])]


def liveliest(gap: Gap, sensor: str) -> int:
    """Which of a sensor's numbers is farthest off."""
    errors = gap.pairs.real.errors[0][..., gap.pairs.real.column(sensor)]
    known = np.isfinite(errors)
    squares = np.where(known, errors, 0.0) ** 2
    return int(squares.sum(axis=(0, 1)).argmax())


def _each(errors: Floats) -> Floats:
    """(segments,) root mean square of errors (segments, periods, numbers)."""
    known = np.isfinite(errors)
    squares = np.where(known, errors, 0.0) ** 2
    count = np.maximum(known.sum(axis=(1, 2)), 1)
    return np.asarray(np.sqrt(squares.sum(axis=(1, 2)) / count))
