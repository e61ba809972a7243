"""The page of a gap: how far a twin is off, how significant that is, and where it is largest."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import TYPE_CHECKING

from sim2real.gap import two_figures
from sim2real.report.gap_plots import (
    along,
    chosen_segments,
    liveliest,
    over_horizon,
    over_time,
    overlay,
)
from sim2real.report.page import (
    omitted,
    paragraph,
    picture,
    plots,
    sentence,
    table,
    write_parts,
)
from sim2real.units import counted

if TYPE_CHECKING:
    from pathlib import Path

    from sim2real.gap import ChannelGap, Gap, Hotspot

_MAX_CHANNELS = 12
_MAX_OVERLAYS = 6
_MAX_RANGES = 6
_MAX_HOTSPOTS = 10
"""Most figures and rows of each kind on the page."""


def write_gap(path: Path, gap: Gap) -> None:
    """Write the page as one self-contained file."""
    style = "bad" if gap.found else "good" if gap.distances else ""
    parts = [
        f"<h1>The gap of {html.escape(gap.twin)}</h1>",
        f"<p class='verdict {style}'>{sentence(gap.verdict)}</p>",
        paragraph(
            f"Version {gap.version}; {gap.segments} segments of {gap.horizon_s:.2g} s from"
            f" {counted(len(gap.recordings), 'recording')}, {gap.seconds:.0f} s in all."
        ),
        *(f"<p>{sentence(note)}</p>" for note in gap.notes),
        "<h2>Each channel over the horizon</h2>",
        _channels(gap),
        "<h2>Real against simulated motion</h2>",
        _distances(gap),
        *_covered(gap),
        "<h2>Replays</h2>",
        _overlays(gap),
        "<h2>Hotspots</h2>",
        _where(gap),
    ]
    write_parts(path, f"gap of {gap.twin}", parts)


def _ordered(gap: Gap) -> list[ChannelGap]:
    """Channels, the farthest above its floor first."""
    return sorted(gap.channels, key=lambda channel: -channel.ratio)


def _channels(gap: Gap) -> str:
    figures = (
        picture(over_horizon(channel, legend=place == 0), f"error of {channel.name}")
        for place, channel in enumerate(_ordered(gap)[:_MAX_CHANNELS])
    )
    words = paragraph(
        f"Root mean square error {gap.horizon_s:.2g} s after a measured state. The floor is the"
        " error that remains if the twin is right: the error of its own noisy segments, measured"
        " and predicted in the same way. The ratio is over the whole horizon. Intervals and bands"
        " are 95 %."
    )
    more = omitted(len(gap.channels) - _MAX_CHANNELS, "channel")
    return words + table(*gap.channel_table()) + plots(figures) + more


def _distances(gap: Gap) -> str:
    if not gap.distances:
        return paragraph("Too few segments to test.")
    return paragraph(
        "Each real segment is compared with one that the twin made from the same state, with the"
        " same commands and its own noise. If the two do not differ, MMD² is around 0 and the"
        " accuracy around 0.5. P-values come from permutations of whole pairs. Corrected for the"
        f" number of tests, hotspots included, the smallest is {gap.p_value:.2g}."
    ) + table(*gap.distance_table())


def _covered(gap: Gap) -> list[str]:
    if gap.coverage is None:
        return []
    return [
        "<h2>Coverage of the posterior</h2>",
        paragraph(
            "The predictions use draws of the twin's posterior, with all noise, instead of its best"
            " guess: 95 % of the readings should lie inside."
        ),
        table(*gap.coverage.table()),
    ]


def _overlays(gap: Gap) -> str:
    figures = (
        picture(
            overlay(gap, c.name, liveliest(gap, c.name), chosen_segments(gap, c.name)),
            f"{c.name}: measured and predicted",
        )
        for c in _ordered(gap)[:_MAX_OVERLAYS]
    )
    band = " The band is 95 % of the posterior's draws, without noise." if gap.coverage else ""
    words = f"The segments with the largest, the median and the smallest error.{band}"
    return paragraph(words) + plots(figures)


def _where(gap: Gap) -> str:
    worst = gap.worst_places
    overall = picture(over_time(gap, gap.worst.name), "error of each segment over time")
    head = (
        "channel", "where", "within", "segments", "error", "noise levels beyond", "elsewhere", "p",
    )  # fmt: skip
    rows = [
        (
            place.channel,
            place.words,
            f"{place.horizon_s:.2g} s",
            str(place.segments),
            f"{place.error:.3g}",
            f"{two_figures(place.excess)} ({two_figures(place.excess_low)} to"
            f" {two_figures(place.excess_high)})",
            two_figures(place.elsewhere),
            f"{place.p_value:.2g}",
        )
        for place in worst[:_MAX_HOTSPOTS]
    ]
    words = (
        "Error of segments beyond that of the twin's own noise, in"
        f" {counted(len(gap.places), 'range')}; p-values are corrected for all of them. In short"
        " segments an error lies near the state that caused it, in long ones a small error has time"
        " to grow."
    )
    if not worst:
        words += " In no range is the error significantly larger than elsewhere."
    else:
        words += f" In {len(worst)} of them it is significantly larger than elsewhere" + (
            f"; the largest {len(rows)} are listed." if len(worst) > len(rows) else "."
        )
    figures = [picture(along(places, worst), "error along a range") for places in _shown(gap)]
    return paragraph(words) + (table(head, rows) if rows else "") + plots([*figures, overall])


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
