"""Figures of a gap, each small enough for a phone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from sim2real.arrays import Floats
from sim2real.report.panels import (
    LABEL,
    NEW,
    OLD,
    REAL,
    SMALL,
    TICK,
    WARN,
    grid,
    small_panel,
)

if TYPE_CHECKING:
    from sim2real.gap import ChannelGap, Gap, Hotspot

_AHEAD = "time after a measured state [s]"


def over_horizon(channel: ChannelGap, *, legend: bool) -> Figure:
    """The error along the horizon, its floor, and the error of predicting no change."""
    figure, axis = small_panel(channel.name, _AHEAD, f"rms error [{channel.unit or '1'}]")
    times = channel.times_s
    axis.fill_between(times, channel.low, channel.high, color=NEW, alpha=0.3, linewidth=0)
    axis.plot(times, channel.rms, color=NEW, linewidth=1.5, label="twin")
    axis.plot(times, channel.floor, color=REAL, linewidth=1, label="its own noise")
    axis.plot(times, channel.stays, color=OLD, linewidth=1.2, linestyle="--", label="no change")
    top = 1.15 * max(*channel.high, *channel.floor)
    axis.set_ylim(0, max(min(max(channel.stays) * 1.05, 3 * top), top))
    axis.set_xlim(0, times[-1])
    if legend:
        axis.legend(fontsize=TICK, frameon=False)
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
    figure, (axes,) = grid(1, len(chosen), width=SMALL[0], height=SMALL[1], shared=True)
    for place, (axis, segment) in enumerate(zip(axes, chosen, strict=True)):
        measured = pairs.real.measured[segment, :, column]
        known = np.isfinite(measured)
        if bands is not None:
            low, high = np.nanquantile(bands[:, place], [0.025, 0.975], axis=0)
            axis.fill_between(times, low, high, color=NEW, alpha=0.25, linewidth=0)
        axis.plot(times[known], measured[known], color=REAL, linewidth=1, label="measured")
        twin = pairs.real.predicted[0, segment, :, column]
        axis.plot(times, twin, color=NEW, linewidth=1, label="twin")
        axis.set_title(("worst", "typical", "best")[place], fontsize=TICK)
        axis.tick_params(labelsize=TICK - 1)
        axis.locator_params(axis="x", nbins=3)
    axes[0].set_ylabel(f"{spec.numbers[component]} [{spec.unit or '1'}]", fontsize=TICK)
    axes[len(axes) // 2].set_xlabel(_AHEAD, fontsize=TICK)
    axes[-1].legend(fontsize=TICK - 1, frameon=False)
    return figure


def along(places: Sequence[Hotspot], worst: Sequence[Hotspot]) -> Figure:
    """The excess error of one channel in each range of a quantity; red if among the `worst`."""
    first = places[0]
    figure, axis = small_panel(
        f"{first.channel} along {first.along}, within {first.horizon_s:.2g} s",
        f"{first.along} [{first.unit}]" if first.unit else first.along,
        "error beyond noise\n[noise levels]",
    )
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
    return figure


def over_time(gap: Gap, sensor: str) -> Figure:
    """The error of every segment, one recording after the other."""
    pairs = gap.pairs
    part = pairs.real.column(sensor)
    unit = next(s.unit for s in pairs.real.log.contract.sensors if s.name == sensor)
    figure, axis = small_panel(
        f"{sensor}: error of each segment",
        "time, one recording after the other [s]",
        f"rms error [{unit or '1'}]",
    )
    end = 0.0
    for place, recording in enumerate(np.unique(pairs.recording)):
        mine = pairs.recording == recording
        times = end + pairs.since_s[mine]
        for replay, colour, name in (
            (pairs.simulated, OLD, "its own noise"),
            (pairs.real, NEW, "twin"),
        ):
            error = _each(replay.errors[0][mine][..., part])
            axis.plot(times, error, ".", color=colour, markersize=2, label="" if place else name)
        end = float(times.max()) + pairs.horizon_s
        axis.axvline(end, color=OLD, linewidth=0.4)
    axis.set_xlim(0, end)
    axis.set_ylim(bottom=0)
    axis.legend(fontsize=LABEL - 1, frameon=False, loc="upper right")
    return figure


def chosen_segments(gap: Gap, sensor: str) -> list[int]:
    """The worst, a typical and the best segment of a sensor."""
    order = np.argsort(_each(gap.pairs.real.errors[0][..., gap.pairs.real.column(sensor)]))
    return [int(order[-1]), int(order[len(order) // 2]), int(order[0])]


def liveliest(gap: Gap, sensor: str) -> int:
    """Index of the sensor's number with the largest error."""
    errors = gap.pairs.real.errors[0][..., gap.pairs.real.column(sensor)]
    return int(np.nansum(errors**2, axis=(0, 1)).argmax())


def _each(errors: Floats) -> Floats:
    """(segments,) root mean square of errors (segments, periods, numbers)."""
    count = np.maximum(np.isfinite(errors).sum(axis=(1, 2)), 1)
    return np.asarray(np.sqrt(np.nansum(errors**2, axis=(1, 2)) / count))
