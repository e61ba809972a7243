"""Figures of an identification, each small enough for a phone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sim2real.arrays import Floats
from sim2real.params import Empirical, Parameter
from sim2real.replay import Replay, spread_evenly
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
    from sim2real.identification import Identification

FAR_STD = 3.0
"""Standard deviations of the prior beyond which a posterior lies outside it."""
_HEIGHT = 1.9
_SEGMENTS = 6
"""Segments of the held-back recordings that are drawn, one after the other."""
_SHARES = np.linspace(0.005, 0.995, 199)
_LEVELS = np.linspace(0.05, 0.95, 19)
"""Nominal probabilities of the bands in a calibration plot."""


def belief(found: Identification, k: int) -> Figure:
    """Prior and posterior density of the k-th parameter, with its unit and its bounds."""
    parameter, posterior = found.problem.parameters[k], found.posterior
    prior = quantiles_of(parameter)
    mean, std = float(posterior.mean[k]), max(float(posterior.std[k]), 1e-12)
    low, high = min(prior[0], mean - 4 * std), max(prior[-1], mean + 4 * std)
    values = np.linspace(low, high, 400)
    unit = unit_of(parameter.unit, parameter.operation)
    figure, axis = small_panel(parameter.name, unit, height=_HEIGHT)
    fill_prior(axis, prior, values)
    after = np.exp(-0.5 * ((values - mean) / std) ** 2)
    if isinstance(posterior.distribution, Empirical):
        after = _drawn_density(posterior.distribution, k, values)
    axis.fill_between(values, after, color=NEW, alpha=0.7, label="posterior")
    for bound in parameter.bounds:
        if low <= bound <= high:
            axis.axvline(bound, color=WARN, linewidth=1, linestyle="--", label="bound")
    axis.set_yticks([])
    axis.locator_params(axis="x", nbins=4)
    if k == 0:
        axis.legend(fontsize=TICK, frameon=False)
    return figure


def quantiles_of(parameter: Parameter) -> Floats:
    """(199,) evenly spaced quantiles of a prior's middle 99 %."""
    return parameter.prior.quantiles(_SHARES)


def fill_prior(axis: Axes, quantiles: Floats, values: Floats) -> None:
    """Fill a prior's density, given by its quantiles, at some values; its maximum is one."""
    slopes = np.gradient(_SHARES, quantiles)
    density = np.interp(values, quantiles, slopes, left=0, right=0)
    density /= max(density.max(), 1e-12)
    axis.fill_between(values, density, color=OLD, alpha=0.6, label="prior")


def shifts(found: Identification) -> Floats:
    """(fitted,) distance of each posterior from its prior's median, in standard deviations."""
    middle = [float(p.prior.quantiles(0.5)) for p in found.problem.parameters]
    return np.asarray((found.posterior.mean - middle) / _prior_stds(found))


def _prior_stds(found: Identification) -> Floats:
    """(fitted,) standard deviation of each prior."""
    return np.maximum([p.prior_std for p in found.problem.parameters], 1e-300)


def all_beliefs(found: Identification) -> Figure:
    """Posteriors of all parameters, one row each, in standard deviations of their priors."""
    names, mean = found.posterior.names, shifts(found)
    std = found.posterior.std / _prior_stds(found)
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


def singular_values(found: Identification) -> Figure:
    """Information about each direction of the parameters, relative to the prior's."""
    values = found.identifiability.singular
    figure, axis = small_panel(
        x="direction of the parameters", y="information (prior = 1)", height=_HEIGHT
    )
    axis.semilogy(range(1, len(values) + 1), values + 1e-6, "o-", color=NEW, markersize=3)
    axis.axhline(1.0, color=OLD, linestyle="--", linewidth=1)
    return figure


def calibration(replay: Replay, sensor: str) -> Figure:
    """Share of readings inside central bands of posterior draws, against the nominal share.

    Beside it the ranks of readings among the draws (probability integral transform): flat if the
    posterior is right, high at both ends if it is overconfident, in the middle if it is too wide.
    """
    ranks = ranks_of(replay, sensor)
    figure, ((left, right),) = grid(1, 2, width=SMALL[0], height=_HEIGHT)
    inside = [float((np.abs(ranks - 0.5) <= level / 2).mean()) for level in _LEVELS]
    left.plot([0, 1], [0, 1], color=OLD, linewidth=1, linestyle="--")
    left.plot(_LEVELS, inside, color=NEW, linewidth=1.5)
    label(left, x="nominal", y="inside", ticks=TICK)
    left.set_xlim(0, 1)
    left.set_ylim(0, 1)
    right.hist(ranks, bins=10, range=(0, 1), density=True, color=NEW, alpha=0.7)
    right.axhline(1.0, color=OLD, linewidth=1, linestyle="--")
    label(right, x="rank of readings", ticks=TICK)
    right.set_yticks([])
    figure.suptitle(sensor, fontsize=LABEL)
    return figure


def ranks_of(replay: Replay, sensor: str) -> Floats:
    """(readings,) ranks in 0..1 of a sensor's readings among finite draws; ties in the middle."""
    part = replay.column(sensor)
    good = np.isfinite(replay.predicted).all(axis=(1, 2, 3))
    made = replay.predicted[good][..., part]
    real = replay.measured[..., part]
    below = (made < real).mean(axis=0) + 0.5 * (made == real).mean(axis=0)
    return np.asarray(below[replay.valid[..., part]])


def replayed(
    before: Replay, after: Replay, sensor: str, component: int, *, legend: bool = False
) -> Figure:
    """Segments of held-back recordings: measured, and predicted before and after."""
    spec = next(s for s in before.log.contract.sensors if s.name == sensor)
    column = before.column(sensor).start + component
    figure, axis = small_panel(
        spec.numbers[component],
        "time [s], each segment from a measured state",
        f"[{spec.unit or '1'}]",
        height=_HEIGHT,
    )
    steps = before.predicted.shape[2]
    chosen = spread_evenly(len(before.starts), _SEGMENTS)
    for place, segment in enumerate(chosen):
        times = place * steps * before.period_s + before.period_s * np.arange(1, steps + 1)
        first = place == 0
        for values, colour, words in (
            (before.predicted[0, segment, :, column], OLD, "before"),
            (before.measured[segment, :, column], REAL, "measured"),
            (after.predicted[0, segment, :, column], NEW, "after"),
        ):
            axis.plot(times, values, color=colour, linewidth=1, label=words if first else None)
    _within_reason(axis, before.measured[chosen][..., column])
    if legend:
        axis.legend(fontsize=TICK, frameon=False)
    return figure


def unit_of(unit: str, operation: str) -> str:
    """Label of a parameter's axis."""
    prefix = {"scale": "× the model's", "add": "+ the model's"}.get(operation, "")
    return " ".join(part for part in (prefix, f"[{unit}]" if unit else "") if part) or "[1]"


def numbers_shown(replay: Replay, most: int) -> Sequence[tuple[str, int]]:
    """(sensor, component) of at most `most` numbers; each sensor's liveliest come first."""
    order = []
    for spec, columns in replay.log.columns():
        part = replay.measured[..., columns].reshape(-1, spec.width)
        seen = np.any(np.isfinite(part), axis=0)
        spread = np.where(seen, np.nanstd(np.where(seen, part, 0.0), axis=0), -1.0)
        ranked = [int(c) for c in np.argsort(-spread) if seen[c]]
        order += [(place, spec.name, component) for place, component in enumerate(ranked)]
    return [(name, component) for _, name, component in sorted(order, key=lambda o: o[0])[:most]]


def _within_reason(axis: Axes, measured: Floats) -> None:
    """Limit the y axis, so that a diverging prediction does not flatten the readings."""
    known = measured[np.isfinite(measured)]
    if len(known):
        room = 0.75 * max(float(np.ptp(known)), 1e-9)
        low, high = axis.get_ylim()
        axis.set_ylim(max(low, known.min() - room), min(high, known.max() + room))


def _drawn_density(distribution: Empirical, k: int, at: Floats) -> Floats:
    """Smoothed density of draws at some values; its maximum is one."""
    values = np.array(distribution.samples)[:, k]
    weights = np.array(distribution.weights) / sum(distribution.weights)
    mean = weights @ values
    width = 1.06 * max(float(np.sqrt(weights @ (values - mean) ** 2)), 1e-12)
    width *= float(1.0 / (weights**2).sum()) ** -0.2
    density = np.exp(-0.5 * ((at[:, None] - values) / width) ** 2) @ weights
    return np.asarray(density / max(float(density.max()), 1e-300))
