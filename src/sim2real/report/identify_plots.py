"""Figures of an identification, each small enough for a phone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sim2real.arrays import Floats
from sim2real.gap import LEVELS, PRIOR_SHARES
from sim2real.report.panels import (
    LABEL,
    NEW,
    OLD,
    REAL,
    SMALL,
    TICK,
    WARN,
    grid,
    label,
    panel,
    small_panel,
)

if TYPE_CHECKING:
    from sim2real.gap import SensorCoverage
    from sim2real.identification import Identifiability, Identification, IdentifiedParameter
    from sim2real.replay import ReplayedNumber

FAR_STD = 3.0
"""Standard deviations of the prior beyond which a posterior lies outside it."""
_HEIGHT = 1.9


def belief(one: IdentifiedParameter, *, legend: bool) -> Figure:
    """Prior and posterior density of a parameter, with its unit and its bounds."""
    values = one.span
    figure, axis = small_panel(one.name, unit_of(one.unit, one.operation), height=_HEIGHT)
    fill_prior(axis, one.prior_curve, values)
    after = one.density
    if after is None:
        after = np.exp(-0.5 * ((values - one.value) / max(one.std, 1e-12)) ** 2)
    axis.fill_between(values, after, color=NEW, alpha=0.7, label="posterior")
    for bound in one.bounds:
        if values[0] <= bound <= values[-1]:
            axis.axvline(bound, color=WARN, linewidth=1, linestyle="--", label="bound")
    axis.set_yticks([])
    axis.locator_params(axis="x", nbins=4)
    if legend:
        axis.legend(fontsize=TICK, frameon=False)
    return figure


def fill_prior(axis: Axes, quantiles: Floats, values: Floats) -> None:
    """Fill a prior's density, given by its quantiles, at some values; its maximum is one."""
    slopes = np.gradient(PRIOR_SHARES, quantiles)
    density = np.interp(values, quantiles, slopes, left=0, right=0)
    density /= max(density.max(), 1e-12)
    axis.fill_between(values, density, color=OLD, alpha=0.6, label="prior")


def all_beliefs(found: Identification) -> Figure:
    """Posteriors of all parameters, one row each, in standard deviations of their priors."""
    names, mean = found.names, np.array([one.shift for one in found.estimates])
    std = np.array([one.std / max(one.prior_std, 1e-300) for one in found.estimates])
    figure, axis = panel(4.2, 0.8 + 0.2 * len(names))
    rows = np.arange(len(names))[::-1]
    axis.axvspan(-2, 2, color=OLD, alpha=0.35, linewidth=0)
    far = np.abs(mean) > FAR_STD
    axis.hlines(rows, mean - 1.96 * std, mean + 1.96 * std, color=NEW, linewidth=2)
    axis.scatter(mean, rows, s=16, c=[WARN if f else NEW for f in far], zorder=3)
    axis.set_yticks(rows, labels=names, fontsize=TICK)
    axis.tick_params(axis="x", labelsize=TICK)
    axis.set_ylim(-0.7, len(names) - 0.3)
    axis.set_xlabel("95 % interval, in standard deviations of the prior (grey: ± 2)", fontsize=TICK)
    return figure


def singular_values(known: Identifiability) -> Figure:
    """Information about each direction of the parameters, relative to the prior's."""
    values = known.singular
    figure, axis = small_panel(
        x="direction of the parameters", y="information (prior = 1)", height=_HEIGHT
    )
    axis.semilogy(range(1, len(values) + 1), values + 1e-6, "o-", color=NEW, markersize=3)
    axis.axhline(1.0, color=OLD, linestyle="--", linewidth=1)
    return figure


def calibration(sensor: SensorCoverage) -> Figure:
    """Share of readings inside central bands of posterior draws, against the nominal share.

    Beside it the ranks of readings among the draws: flat if the posterior is right, high at both
    ends if it is overconfident, in the middle if it is too wide.
    """
    ranks = sensor.ranks
    figure, ((left, right),) = grid(1, 2, width=SMALL[0], height=_HEIGHT)
    left.plot([0, 1], [0, 1], color=OLD, linewidth=1, linestyle="--")
    left.plot(LEVELS, ranks.inside, color=NEW, linewidth=1.5)
    label(left, x="nominal", y="inside", ticks=TICK)
    left.set_xlim(0, 1)
    left.set_ylim(0, 1)
    edges = np.linspace(0, 1, len(ranks.density) + 1)
    right.stairs(ranks.density, edges, fill=True, color=NEW, alpha=0.7)
    right.axhline(1.0, color=OLD, linewidth=1, linestyle="--")
    label(right, x="rank of readings", ticks=TICK)
    right.set_yticks([])
    figure.suptitle(sensor.name, fontsize=LABEL)
    return figure


def replayed(number: ReplayedNumber, *, legend: bool = False) -> Figure:
    """Segments of held-back recordings: measured, and predicted before and after."""
    figure, axis = small_panel(
        number.name,
        "time [s], each segment from a measured state",
        f"[{number.unit or '1'}]",
        height=_HEIGHT,
    )
    steps = number.measured.shape[1]
    for place in range(len(number.measured)):
        times = number.period_s * (place * steps + np.arange(1, steps + 1))
        first = place == 0
        for values, colour, words in (
            (number.before[place], OLD, "before"),
            (number.measured[place], REAL, "measured"),
            (number.after[place], NEW, "after"),
        ):
            axis.plot(times, values, color=colour, linewidth=1, label=words if first else None)
    _within_reason(axis, number.measured)
    if legend:
        axis.legend(fontsize=TICK, frameon=False)
    return figure


def unit_of(unit: str, operation: str) -> str:
    """Label of a parameter's axis."""
    prefix = {"scale": "× the model's", "add": "+ the model's"}.get(operation, "")
    return " ".join(part for part in (prefix, f"[{unit}]" if unit else "") if part) or "[1]"


def _within_reason(axis: Axes, measured: Floats) -> None:
    """Limit the y axis, so that a diverging prediction does not flatten the readings."""
    known = measured[np.isfinite(measured)]
    if len(known):
        room = 0.75 * max(float(np.ptp(known)), 1e-9)
        low, high = axis.get_ylim()
        axis.set_ylim(max(low, known.min() - room), min(high, known.max() + room))
