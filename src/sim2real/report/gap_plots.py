"""Figures of a gap, each small enough for a phone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

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
    from sim2real.gap import ChannelGap, Hotspot, Overlay, SegmentErrors

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


def overlay(shown: Overlay) -> Figure:
    """Measured and predicted in the worst segment, a typical one and the best."""
    figure, (axes,) = grid(1, 3, width=SMALL[0], height=SMALL[1], shared=True)
    for place, axis in enumerate(axes):
        measured = shown.measured[place]
        known = np.isfinite(measured)
        if shown.low is not None and shown.high is not None:
            band = shown.low[place], shown.high[place]
            axis.fill_between(shown.times_s, *band, color=NEW, alpha=0.25, linewidth=0)
        axis.plot(shown.times_s[known], measured[known], color=REAL, linewidth=1, label="measured")
        axis.plot(shown.times_s, shown.predicted[place], color=NEW, linewidth=1, label="twin")
        axis.set_title(("worst", "typical", "best")[place], fontsize=TICK)
        axis.tick_params(labelsize=TICK - 1)
        axis.locator_params(axis="x", nbins=3)
    axes[0].set_ylabel(f"{shown.number} [{shown.unit or '1'}]", fontsize=TICK)
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


def over_time(errors: SegmentErrors) -> Figure:
    """The error of every segment, one recording after the other."""
    figure, axis = small_panel(
        f"{errors.channel}: error of each segment",
        "time, one recording after the other [s]",
        f"rms error [{errors.unit or '1'}]",
    )
    end = 0.0
    for place, recording in enumerate(np.unique(errors.recording)):
        mine = errors.recording == recording
        times = end + errors.since_s[mine]
        for values, colour, name in (
            (errors.floor, OLD, "its own noise"),
            (errors.twin, NEW, "twin"),
        ):
            label = "" if place else name
            axis.plot(times, values[mine], ".", color=colour, markersize=2, label=label)
        end = float(times.max()) + errors.horizon_s
        axis.axvline(end, color=OLD, linewidth=0.4)
    axis.set_xlim(0, end)
    axis.set_ylim(bottom=0)
    axis.legend(fontsize=LABEL - 1, frameon=False, loc="upper right")
    return figure
