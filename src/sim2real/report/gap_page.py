"""The page of a gap: how far a twin is off, how significant that is, and where it is largest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sim2real.gap import two_figures
from sim2real.report.gap_plots import along, over_horizon, over_time, overlay
from sim2real.report.page import picture, write_html

if TYPE_CHECKING:
    from pathlib import Path

    from sim2real.gap import Gap, Hotspot

_MAX_CHANNELS = 12
_MAX_RANGES = 6
_MAX_HOTSPOTS = 10
"""Most figures and rows of each kind on the page."""


def write_gap(path: Path, gap: Gap) -> None:
    """Write the page as one self-contained file."""
    channels = sorted(gap.channels, key=lambda channel: -channel.ratio)[:_MAX_CHANNELS]
    worst = gap.worst_places
    along_range = [picture(along(places, worst), "error along a range") for places in _shown(gap)]
    in_time = picture(over_time(gap.along_time), "error of each segment over time")
    write_html(
        path,
        "gap.html",
        gap=gap,
        curves=[
            picture(over_horizon(channel, legend=place == 0), f"error of {channel.name}")
            for place, channel in enumerate(channels)
        ],
        overlays=[
            picture(overlay(one), f"{one.channel}: measured and predicted") for one in gap.overlays
        ],
        hotspots=[_row(place) for place in worst[:_MAX_HOTSPOTS]],
        ranges=[*along_range, in_time],
    )


def _row(place: Hotspot) -> tuple[str, ...]:
    low, high = two_figures(place.excess_low), two_figures(place.excess_high)
    return (
        place.channel,
        place.words,
        f"{place.horizon_s:.2g} s",
        str(place.segments),
        f"{place.error:.3g}",
        f"{two_figures(place.excess)} ({low} to {high})",
        two_figures(place.elsewhere),
        f"{place.p_value:.2g}",
    )


def _shown(gap: Gap) -> Iterable[list[Hotspot]]:
    """Ranges by channel and quantity: of the worst hotspots, or else of the worst channel."""
    sure = gap.worst_places
    if not sure:
        mine = [place for place in gap.places if place.channel == gap.worst.name]
        sure = tuple(sorted(mine, key=lambda place: place.p_value))
    kinds = dict.fromkeys(map(_kind, sure))
    for kind in list(kinds)[:_MAX_RANGES]:
        yield [place for place in gap.places if _kind(place) == kind]


def _kind(place: Hotspot) -> tuple[str, str, float]:
    return place.channel, place.along, place.horizon_s
