"""Which parameters explain that a robot's episodes have changed, and since when.

Each episode's parameter shift is a regularised estimate: if parameter j moved by d, the estimates
of all of them move by d times column j of the resolution matrix. The change of their mean is
explained by as few parameters as possible, each with an interval from the scatter between episodes;
parameters that would explain it equally well are named together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from sim2real.arrays import Floats, Reals
from sim2real.plain import PlainData
from sim2real.robot.drift.thresholds import DRIFT_THRESHOLDS, DriftThresholds


@dataclass(frozen=True, kw_only=True)
class DriftCause(PlainData):
    """One parameter that has moved, or a group of which one has."""

    name: str
    unit: str
    shift: float
    """How far it moved, in its unit, linearised around the twin."""
    low: float
    high: float
    """95 % interval of the shift, if it is this parameter that moved."""
    p_value: float
    """p-value of no shift, corrected for the number of parameters tested (Holm)."""
    explains: float
    """Share of the change it explains together with the causes before it, 0..1."""
    alike: tuple[str, ...] = ()
    """Other parameters that would explain it equally well."""


def change_point(scores: Floats, baseline: int) -> int:
    """First episode from which the scores (episodes, numbers) that raised the alarm differ.

    The split after the baseline that sets the two mean ranks farthest apart; ranks, so that one odd
    episode does not decide.
    """
    known = np.isfinite(scores).all(axis=0) & (np.ptp(scores, axis=0) > 0)
    count = len(scores)
    numbers = stats.norm.ppf((stats.rankdata(scores[:, known], axis=0) - 0.5) / count)
    total = np.cumsum(numbers, axis=0)
    splits = np.arange(baseline, count)
    before = total[splits - 1] / splits[:, None]
    after = (total[-1] - total[splits - 1]) / (count - splits)[:, None]
    weight = splits * (count - splits) / count
    return int(splits[np.argmax(weight * ((after - before) ** 2).sum(axis=1))])


def causes(
    shifts: Floats,
    information: Floats,
    *,
    change: int,
    names: tuple[str, ...],
    units: tuple[str, ...],
    scales: Floats,
    thresholds: DriftThresholds = DRIFT_THRESHOLDS,
) -> list[DriftCause]:
    """What moved between the episodes before and from `change` on, the best explanation first.

    `shifts` (episodes, parameters) are regularised estimates in `scales`, and `information`
    (parameters, parameters) is their mean information. The list is empty if no parameter explains
    the change.
    """
    before, after = shifts[:change], shifts[change:]
    moved = after.mean(axis=0) - before.mean(axis=0)
    freedom = max(1, len(shifts) - 2)
    metric = np.linalg.inv(_scatter(before, after, freedom) * (1 / len(before) + 1 / len(after)))
    width = len(names)
    resolution = np.linalg.solve(information + np.eye(width), information)
    felt = np.diag(resolution) > 0.05  # the data say hardly anything about the others
    whole = float(moved @ metric @ moved)
    chosen: list[int] = []
    found: list[DriftCause] = []
    while len(chosen) < min(thresholds.causes, int(felt.sum())):
        rest, _ = _without(moved, resolution[:, chosen], metric)
        gains = np.zeros(width)
        for j in np.flatnonzero(felt):
            column, _ = _without(resolution[:, j], resolution[:, chosen], metric)
            size = column @ metric @ column
            if size > 1e-9 * (resolution[:, j] @ metric @ resolution[:, j]):
                gains[j] = (column @ metric @ rest) ** 2 / size
        best = int(np.argmax(gains))
        p_value = float(2 * stats.t.sf(np.sqrt(gains[best]), freedom))
        p_value = min(1.0, p_value * (int(felt.sum()) - len(chosen)))
        if p_value > thresholds.level or gains[best] < thresholds.explained_least * whole:
            break
        chosen.append(best)
        column, _ = _without(resolution[:, best], resolution[:, chosen[:-1]], metric)
        length = float(column @ metric @ column)
        shift = float(column @ metric @ moved) / length
        error = float(stats.t.ppf(0.975, freedom)) / np.sqrt(length)
        _, spanned = _without(moved, resolution[:, chosen], metric)
        alike = [j for j in np.flatnonzero(gains > thresholds.alike * gains[best]) if j != best]
        found.append(
            DriftCause(
                name=names[best],
                unit=units[best],
                shift=float(shift * scales[best]),
                low=float((shift - error) * scales[best]),
                high=float((shift + error) * scales[best]),
                p_value=p_value,
                explains=float(spanned / whole) if whole > 0 else 0.0,
                alike=tuple(names[j] for j in alike),
            )
        )
    return found


def _scatter(before: Floats, after: Floats, freedom: int) -> Floats:
    """Covariance between episodes within each part, shrunk towards no correlation."""
    inside = np.concatenate([before - before.mean(axis=0), after - after.mean(axis=0)])
    covariance = inside.T @ inside / freedom
    width = covariance.shape[1]
    shrink = min(1.0, width / (width + freedom))
    alone = np.diag(np.diag(covariance))
    return np.array((1 - shrink) * covariance + shrink * alone + 1e-4 * np.eye(width))


def _without(vector: Reals, columns: Reals, metric: Reals) -> tuple[Reals, float]:
    """What columns leave of a vector, and the squared length they explain, in a metric."""
    if not columns.shape[1]:
        return vector, 0.0
    fit = np.linalg.lstsq(columns.T @ metric @ columns, columns.T @ metric @ vector, rcond=None)[0]
    part = columns @ fit
    return vector - part, float(part @ metric @ part)
