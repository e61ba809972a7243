"""How a trial went, in numbers that compare real and simulated ones.

A trial is cut into equal windows, and each window holds the mean and the spread of every reading
and command. Windows after the end repeat the last values, with a flag. Distances are root mean
squares over all numbers, each in units of its spread among simulated trials.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import mujoco
import numpy as np
import ruptures
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import cdist, squareform

from sim2real.arrays import Floats, Ints
from sim2real.attribution.failures import Phase
from sim2real.contract import SensorSpec
from sim2real.logs import ControlLog

_WINDOWS = 10
"""Windows of a trial of full length."""
_MIN_EXPLAINED_BY_PHASE = 0.08
"""Least share of a trial's variation that one more phase must explain."""
_PHASE_WINDOWS_PER_WINDOW = 6
"""Windows for phases, for each window of the comparison."""
_MAX_KINDS = 4
"""Most kinds of failures."""
_MIN_SILHOUETTE = 0.5
"""Mean silhouette above which failures are of several kinds."""


class Behaviours:
    """Makes trials of one task comparable."""

    def __init__(self, model: mujoco.MjModel, seconds: float) -> None:
        """Trials last at most `seconds`."""
        self._model = model
        self._seconds = seconds

    def of(self, logs: Sequence[ControlLog]) -> Floats:
        """(n, windows, numbers) mean and spread of each channel, and whether the trial is over."""
        return np.stack([self._windows(log, _WINDOWS) for log in logs])

    def phases(self, log: ControlLog) -> tuple[Phase, ...]:
        """The trial cut where it changes most, into as few phases as explain most of it."""
        fine = _WINDOWS * _PHASE_WINDOWS_PER_WINDOW
        cells = self._windows(log, fine)
        length_s = float(log.times[-1] - log.times[0])
        lasted = max(2, min(fine, int(np.ceil(fine * length_s / self._seconds))))
        cells = cells[:lasted, :-1]
        cells = (cells - cells.mean(axis=0)) / np.maximum(cells.std(axis=0), 1e-9)
        search = ruptures.Binseg(model="l2", min_size=2, jump=1).fit(cells)
        penalty = _MIN_EXPLAINED_BY_PHASE * max(float((cells**2).sum()), 1e-12)
        edges = [0, *search.predict(pen=penalty)]
        width = self._seconds / fine
        return tuple(
            Phase(a * width, min(b * width, length_s), self._words(log, a * width, b * width))
            for a, b in pairwise(edges)
        )

    def _windows(self, log: ControlLog, count: int) -> Floats:
        channels = _filled(np.concatenate([self._channels(log), log.command], axis=1))
        times = log.times - log.times[0]
        place = np.minimum((times / self._seconds * count).astype(int), count - 1)
        width = channels.shape[1]
        found = np.zeros((count, 2 * width + 1))
        for k in range(count):
            rows = channels[place == k]
            if len(rows):
                found[k] = [*rows.mean(axis=0), *rows.std(axis=0), 0.0]
            else:
                found[k] = [*(channels[-1] if k > place[-1] else found[k - 1, :width]),
                            *np.zeros(width), float(k > place[-1])]  # fmt: skip
        return found

    def _channels(self, log: ControlLog) -> Floats:
        """Readings, with freely turning angles as sine and cosine."""
        columns: list[Floats] = []
        for spec, place in log.columns():
            part = log.readings[:, place]
            columns += [np.sin(part), np.cos(part)] if self.turns(spec) else [part]
        return np.concatenate(columns, axis=1)

    def turns(self, spec: SensorSpec) -> bool:
        """Whether a sensor reads the angle of a joint that turns freely."""
        found = mujoco.mj_name2id(self._model, mujoco.mjtObj.mjOBJ_JOINT, spec.of)
        return (
            spec.kind == "jointpos"
            and found >= 0
            and not self._model.jnt_limited[found]
            and self._model.jnt_type[found] == mujoco.mjtJoint.mjJNT_HINGE
        )

    def _words(self, log: ControlLog, begin_s: float, end_s: float) -> str:
        """A phase in words: which reading moved most, over how much of its range, and commands."""
        times = log.times - log.times[0]
        rows = (times >= begin_s) & (times < end_s + 1e-9)
        readings = _filled(log.readings)
        whole = np.maximum(np.ptp(readings, axis=0), 1e-9)
        moved = np.ptp(readings[rows], axis=0) / whole
        names = [name for spec in log.contract.sensors for name in spec.numbers]
        most = int(np.argmax(moved))
        if moved[most] < 0.15:
            words = "nearly at rest"
        else:
            words = f"{names[most]} covers {moved[most]:.0%} of its range"
            turns = int((np.diff(np.sign(np.diff(readings[rows, most]))) != 0).sum())
            seconds = max(end_s - begin_s, 1e-9)
            if turns / seconds > 6:
                words += f", oscillating {turns / seconds / 2:.0f} times a second"
        low = np.array([spec.low for spec in log.contract.commands])
        high = np.array([spec.high for spec in log.contract.commands])
        room = np.maximum(high - low, 1e-9)
        sent = log.command[rows]
        limit = (sent <= low + 0.01 * room) | (sent >= high - 0.01 * room)
        share = float(limit.any(axis=1).mean()) if len(sent) else 0.0
        return words + (f", a command at its limit {share:.0%} of the time" if share > 0.2 else "")


def distances(one: Floats, other: Floats, scale: Floats) -> Floats:
    """(m, n) root mean square distances between trials (m | n, windows, numbers)."""
    a, b = ((x / scale).reshape(len(x), -1) for x in (one, other))
    return np.asarray(cdist(a, b) / np.sqrt(a.shape[1]))


def scale_of(attempts: Floats) -> Floats:
    """(numbers,) how much each number varies among trials (n, windows, numbers)."""
    spread = attempts.std(axis=(0, 1))
    return np.asarray(np.maximum(spread, 1e-3 * max(float(spread.max()), 1e-9)))


def nearest_distance(between: Floats, *, itself: bool = False) -> Floats:
    """(m,) mean distance to the five nearest in (m, n); `itself` leaves out the diagonal."""
    few = 5
    ordered = np.sort(between, axis=1)[:, 1:] if itself else np.sort(between, axis=1)
    return np.asarray(ordered[:, :few].mean(axis=1))


def kinds(between: Floats) -> list[Ints]:
    """Groups of failures by their distances (n, n), the largest first; one if none stands out."""
    count = len(between)
    if count < 4:
        return [np.arange(count)]
    tree = linkage(squareform(between, checks=False), method="average")
    best, labels = _MIN_SILHOUETTE, np.zeros(count, dtype=int)
    for groups in range(2, min(_MAX_KINDS, count - 1) + 1):
        found = fcluster(tree, groups, criterion="maxclust")
        value = _silhouette(between, found)
        if value > best:
            best, labels = value, found
    groups_ = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    return sorted(groups_, key=len, reverse=True)


def _silhouette(between: Floats, labels: Ints) -> float:
    """Mean silhouette of the points; one that is alone in its group counts 0."""
    member = labels[:, None] == np.unique(labels)
    if member.shape[1] < 2:
        return -1.0
    sizes, sums = member.sum(axis=0), between @ member
    others = (member @ sizes) - 1
    inside = (sums * member).sum(axis=1) / np.maximum(others, 1)
    outside = np.where(member, np.inf, sums / sizes).min(axis=1)
    values = (outside - inside) / np.maximum(np.maximum(outside, inside), 1e-12)
    return float(np.where(others > 0, values, 0.0).mean())


def _filled(values: Floats) -> Floats:
    """Rows with unknown numbers held from the row before, or zero."""
    known = np.isfinite(values)
    rows = np.maximum.accumulate(np.where(known, np.arange(len(values))[:, None], 0), axis=0)
    return np.nan_to_num(np.take_along_axis(values, rows, axis=0))
