"""Figures in the project's style: panels, grids of panels, and files of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sim2real.files import atomic_path

OLD, NEW, REAL, WARN = "#b0b0b0", "#1f5fa8", "#222222", "#c0392b"
"""Colours: before, after, measured, and what is wrong."""
LABEL, TICK = 8, 7
"""Font sizes."""
SMALL = (3.6, 2.2)
"""Size of a panel that fits on a phone [inch]."""


def panel(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure of one panel, in inches."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


def small_panel(
    title: str = "", x: str = "", y: str = "", *, height: float = SMALL[1]
) -> tuple[Figure, Axes]:
    """A panel for a phone, with its title and labels."""
    figure, axis = panel(SMALL[0], height)
    label(axis, title, x, y, ticks=TICK)
    return figure, axis


def grid(
    rows: int, columns: int, *, width: float, height: float, shared: bool = False
) -> tuple[Figure, list[list[Axes]]]:
    """A figure of rows and columns of panels, in inches; `shared` have one y axis per row."""
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharey="row" if shared else False)
    return figure, [list(row) for row in np.asarray(axes)]


def tiles(
    count: int, *, width: float, height: float, above: float = 0.0
) -> tuple[Figure, list[Axes]]:
    """A figure of `count` panels of one size, four in a row, with some space above."""
    columns = min(4, max(1, count))
    rows = max(1, -(-count // columns))
    figure, axes = grid(rows, columns, width=width * columns, height=height * rows + above)
    flat = [axis for row in axes for axis in row]
    for axis in flat[count:]:
        axis.set_visible(False)
    return figure, flat[:count]


def label(axis: Axes, title: str = "", x: str = "", y: str = "", *, ticks: float = 0) -> None:
    """Title and labels of a panel, and the size of its ticks."""
    axis.set_title(title, fontsize=LABEL)
    axis.set_xlabel(x, fontsize=TICK)
    axis.set_ylabel(y, fontsize=TICK)
    if ticks:
        axis.tick_params(labelsize=ticks)


def write_picture(path: Path, figure: Figure) -> None:
    """Write a figure to a file, in the format of its suffix."""
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=110, format=path.suffix.lstrip("."))
