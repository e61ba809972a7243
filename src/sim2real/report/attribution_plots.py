"""The page and the figures of an attribution: the gap, its shares by dimension, the rest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from sim2real.report.page import picture, write_html
from sim2real.report.panels import panel, write_picture

if TYPE_CHECKING:
    from sim2real.attribution import Attribution, GapAttribution

_WHOLE, _PART, _FAINT, _AGAINST, _REST = "#555555", "#1f5fa8", "#a9c4e4", "#c0392b", "#b0b0b0"
"""Colours: the gap, a share, a share that may be zero, a negative share, the unexplained rest."""


def write_attribution(path: Path, found: GapAttribution) -> None:
    """Write the page as one self-contained file."""
    parts = [
        (part, picture(waterfall(part), f"shares of the {part.of} gap"), *part.table())
        for part in found.parts
    ]
    write_html(path, "attribution.html", found=found, parts=parts)


def plot_attribution(path: Path, found: Attribution) -> None:
    """Write the waterfall to a file."""
    figure = waterfall(found)
    figure.suptitle("; ".join(found.sentences()[:1]), fontsize=9, wrap=True)
    write_picture(path, figure)


def waterfall(found: Attribution) -> Figure:
    """A waterfall: each bar starts where the one before ended, with its 95 % interval.

    A negative share goes back up: without it the gap would be larger. Pale bars may be zero by
    their intervals.
    """
    rest = [] if found.unexplained is None else [found.unexplained]
    figure, axis = panel(6.4, 0.42 * (len(found.shares) + len(rest)) + 1.9)
    title = "error of the twin" if found.of == "trajectory" else "success lost"
    axis.barh(0, found.whole, color=_WHOLE, height=0.6)
    axis.text(found.whole, 0, f" {found.whole:.0f} {found.unit}", va="center", fontsize=8)
    left, ends = found.whole, [0.0, found.whole]
    for row, share in enumerate([*found.shares, *rest], start=1):
        unexplained = share.name == "unexplained"
        colour = _PART if share.clear else _FAINT
        if share.value < 0:
            colour = _AGAINST
        end, reach = left - share.value, (left - share.high, left - share.low)
        if unexplained:  # the rest is drawn from zero
            colour, left, end, reach = _REST, share.value, 0.0, (share.low, share.high)
        axis.barh(row, end - left, left=left, color=colour, height=0.6)
        axis.plot(reach, [row, row], color="0.2", linewidth=1)
        axis.plot([left, left], [row - 1.3, row + 0.3], color="0.6", linewidth=0.6)
        edge = max(left, end, *reach)
        value, low, high = share.tenths()
        axis.text(edge, row, f" {value} [{low}, {high}]", va="center", fontsize=8)
        ends += [edge, end, *reach]
        left = end
    names = [title, *(share.name for share in found.shares), *(share.name for share in rest)]
    axis.set_yticks(range(len(names)), names, fontsize=9)
    axis.invert_yaxis()
    width = max(ends) - min(ends) or 1.0
    axis.set_xlim(min(ends) - 0.03 * width, max(ends) + 0.25 * width)
    axis.axvline(0, color="0.2", linewidth=0.8)
    axis.set_xlabel(
        "excess error [% of that before identification]"
        if found.of == "trajectory"
        else "success lost since training [points]"
    )
    axis.spines[["top", "right"]].set_visible(False)
    return figure
