"""The page of a gap: how far a twin is off, whether that shows, and where it is largest."""

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
from sim2real.report.page import picture, plots, sentence, table, write_parts

if TYPE_CHECKING:
    from pathlib import Path

    from sim2real.gap import ChannelGap, Gap, Hotspot

_MOST_CHANNELS = 12
_MOST_OVERLAYS = 6
_MOST_ALONG = 6
_MOST_PLACES = 10
_STYLE = """<style>
.verdict { font-size: 1.1rem; }
</style>"""


def write_gap(path: Path, gap: Gap) -> None:
    """Write the page as one file that needs nothing else."""
    several = "" if len(gap.recordings) == 1 else "s"
    style = "bad" if gap.found else "good" if gap.distances else ""
    parts = [
        _STYLE,
        f"<h1>The gap of {html.escape(gap.twin)}</h1>",
        f"<p class='verdict {style}'>{sentence(gap.verdict)}</p>",
        f"<p>Version {html.escape(gap.version)}; {gap.segments} segments of {gap.horizon_s:.2g} s"
        f" from {len(gap.recordings)} recording{several} of {gap.seconds:.0f} s in all.</p>",
        *(f"<p>{sentence(note)}</p>" for note in gap.notes),
        "<h2>Each channel over the horizon</h2>",
        _channels(gap),
        "<h2>Real and simulated told apart</h2>",
        _distances(gap),
        *_covered(gap),
        "<h2>Replayed</h2>",
        _overlays(gap),
        "<h2>Where it is largest</h2>",
        _where(gap),
    ]
    write_parts(path, f"gap of {gap.twin}", parts)


def _ordered(gap: Gap) -> list[ChannelGap]:
    """Channels, the farthest above its floor first."""
    return sorted(gap.channels, key=lambda channel: -channel.ratio)


def _channels(gap: Gap) -> str:
    rows = []
    for channel in _ordered(gap):
        lag = channel.lag
        rows.append(
            (
                f"{channel.name} [{channel.unit or '1'}]",
                f"{channel.error:.3g}",
                two_figures(channel.in_noise),
                channel.spread_words,
                f"{channel.ratio:.2f} ({channel.ratio_low:.2f} to {channel.ratio_high:.2f})",
                f"{channel.stays[-1]:.3g}",
                f"{1000 * lag.seconds:+.0f} ms" if lag is not None and lag.told else "",
            )
        )
    head = (
        "channel", "error", "in noise levels", "of its spread", "error / floor", "if it stayed",
        "late by",
    )  # fmt: skip
    figures = (
        picture(over_horizon(channel, legend=place == 0), f"error of {channel.name}")
        for place, channel in enumerate(_ordered(gap)[:_MOST_CHANNELS])
    )
    left = len(gap.channels) - _MOST_CHANNELS
    more = f"<p>{left} more channels are in the table only.</p>" if left > 0 else ""
    return (
        f"<p>Root mean square error {gap.horizon_s:.2g} s after a measured state. The floor is the"
        " error that is left if the twin is right: stretches that the twin itself made, with its"
        " noise, measured and predicted in the same way; the ratio is over the whole horizon."
        " Intervals and bands are of 95 %.</p>" + table(head, rows) + plots(figures) + more
    )


def _distances(gap: Gap) -> str:
    if not gap.distances:
        return "<p>Too few segments to test.</p>"
    rows = [
        (
            d.of,
            str(d.pairs),
            f"{d.mmd:.2g}",
            f"{d.mmd_p:.2g}",
            f"{d.accuracy:.2f} ({d.accuracy_low:.2f} to {d.accuracy_high:.2f})",
            f"{d.accuracy_p:.2g}",
        )
        for d in gap.distances
    ]
    head = ("", "segments", "MMD²", "p", "classifier is right", "p")
    return (
        "<p>Each real stretch beside one that the twin made from the same state with the same"
        " commands and its own noise. MMD² is around 0 and a classifier is right half of the time"
        " where nothing tells them apart. P-values are by exchanging whole pairs; corrected for the"
        f" number of looks, places among them, the smallest is {gap.p_value:.2g}.</p>"
        + table(head, rows)
    )


def _covered(gap: Gap) -> list[str]:
    if gap.coverage is None:
        return []
    rows = [
        (sensor.name, str(sensor.inside), str(sensor.explained), f"{sensor.width:.2f}")
        for sensor in gap.coverage.sensors
    ]
    head = ("channel", "readings inside 95 %", "segments explained", "spread / error")
    return [
        "<h2>What the posterior covers</h2>",
        "<p>Drawn from the twin's posterior, with all noise, instead of its best guess: 95 % of the"
        " readings should lie inside.</p>",
        table(head, rows),
    ]


def _overlays(gap: Gap) -> str:
    figures = (
        picture(
            overlay(gap, c.name, liveliest(gap, c.name), chosen_segments(gap, c.name)),
            f"{c.name}: measured and predicted",
        )
        for c in _ordered(gap)[:_MOST_OVERLAYS]
    )
    band = " The band is 95 % of the posterior's draws, without noise." if gap.coverage else ""
    return (
        f"<p>The segments with the largest, the middle and the smallest error.{band}</p>"
        + plots(figures)
    )


def _where(gap: Gap) -> str:
    worst = gap.worst_places
    overall = picture(over_time(gap, gap.worst.name), "error of each segment over time")
    head = (
        "channel",
        "where",
        "within",
        "segments",
        "error",
        "noise levels beyond",
        "elsewhere",
        "p",
    )
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
        for place in worst[:_MOST_PLACES]
    ]
    words = (
        f"Error of segments beyond what the twin's own noise makes, in {len(gap.places)} ranges;"
        " p-values count all of them. In short segments an error lies near the state that made it,"
        " in long ones a small one has time to grow."
    )
    if worst:
        more = len(worst) - len(rows)
        words += f" In {len(worst)} ranges it is larger than elsewhere beyond chance" + (
            f"; the largest {len(rows)} are listed." if more > 0 else "."
        )
    else:
        words += " Nowhere is it larger than elsewhere beyond chance."
    figures = [picture(along(places, worst), "error along a range") for places in _shown(gap)]
    return f"<p>{words}</p>" + (table(head, rows) if rows else "") + plots([*figures, overall])


def _shown(gap: Gap) -> Iterable[list[Hotspot]]:
    """Places by channel and by what they lie along: the worst, or those of the worst channel."""
    sure = gap.worst_places
    if not sure:
        mine = [place for place in gap.places if place.channel == gap.worst.name]
        sure = tuple(sorted(mine, key=lambda place: place.p_value))
    kinds = dict.fromkeys(map(_kind, sure))
    for kind in list(kinds)[:_MOST_ALONG]:
        yield [place for place in gap.places if _kind(place) == kind]


def _kind(place: Hotspot) -> tuple[str, str, float]:
    return place.channel, place.along, place.horizon_s
