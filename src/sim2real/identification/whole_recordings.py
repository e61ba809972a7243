"""The problem of a search where contact makes gradients mislead: costs of whole recordings.

A recording is one segment, predicted from its first row to its end; a recording longer than a few
seconds is several. A segment's cost is the mean over sensors of the root mean square error, in
units of the sensor's median error: one that went the other way at an impact counts by its error,
not by the square. A segment is one observation, however many rows it has. Speed sensors are left
out if others measure positions: at an impact, a speed that is a moment late is completely wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from sim2real.arrays import Bools, Floats
from sim2real.logs import ControlLog
from sim2real.replay import Replayer, Unknowns
from sim2real.twin import Twin

_MAX_SEGMENT_S = 5.0
"""Length above which a recording becomes several segments [s]."""
_FOLLOWED_SHARE = 0.9
"""Share of the segments that are followed to their end; longer ones are cut there."""
_BATCH = 32
"""Segments per batch."""
_POSITION_KINDS = ("jointpos", "tendonpos", "ballquat", "framepos", "framequat")
"""Kinds of sensors that measure positions."""


class WholeRecordings(Unknowns):
    """A twin and recordings of its robot; see the module.

    Parameters with a log-uniform prior are fitted by their logarithms.
    """

    def __init__(
        self,
        twin: Twin,
        logs: Sequence[ControlLog],
        *,
        fitted: Sequence[str] = (),
        threads: int = 0,
    ) -> None:
        """Recordings `logs`, for the parameters `fitted`."""
        super().__init__(twin, fitted, logarithms=True)
        self.logs = logs
        parts = [part for log in logs for part in _parts(log)]
        self.horizon_s = float(np.quantile([np.ptp(part.times) for part in parts], _FOLLOWED_SHARE))
        """Longest time that a segment is followed [s]."""
        count = max(1, round(len(parts) / _BATCH))
        self._batches = [
            Replayer(
                twin,
                ControlLog.join(parts[first::count]),
                horizon_s=self.horizon_s,
                recordings=True,
                threads=threads,
            )
            for first in range(count)
        ]
        self.units = np.ones(len(logs[0].contract.sensors))
        """(sensors,) error that costs one."""
        self._counting = _counting(logs)
        self.settle(np.zeros(len(self.parameters)))

    @property
    def batches(self) -> int:
        """Number of batches."""
        return len(self._batches)

    @property
    def segments(self) -> int:
        """Number of segments."""
        return sum(len(batch.starts) for batch in self._batches)

    def slopes(self, x: Floats) -> Floats:
        """(fitted,) change of each value per standard deviation at x (fitted,)."""
        return self.scales * np.where(self._logs, self.values(x), 1.0)

    def settle(self, x: Floats) -> None:
        """Make the median error of each sensor at x (fitted,) the unit of its errors."""
        errors = np.concatenate([self._errors(x[None], k)[0] for k in range(self.batches)])
        errors[~np.isfinite(errors)] = np.nan
        known = np.isfinite(errors).any(axis=0)
        middle = np.nanmedian(np.where(known, errors, 0.0), axis=0)
        self.units = np.where(known & (middle > 0), middle, 1.0)

    def costs(self, x: Floats, batch: int | None = None) -> Floats:
        """(n, segments) cost of each segment of a batch, or of all, at x (n, fitted).

        Infinite where a world diverged.
        """
        chosen = range(self.batches) if batch is None else (batch % self.batches,)
        errors = np.concatenate([self._errors(np.atleast_2d(x), k) for k in chosen], axis=1)
        known = ~np.isnan(errors) & self._counting
        scaled = np.where(known, errors / self.units, 0.0)
        return np.asarray(scaled.sum(axis=2) / np.maximum(known.sum(axis=2), 1))

    def _errors(self, x: Floats, batch: int) -> Floats:
        """(n, segments, sensors) root mean square errors; nan where nothing was measured."""
        replayer = self._batches[batch]
        replay = replayer(self.whole(x))
        error = np.where(replay.valid, replay.errors, 0.0)
        error[~np.isfinite(error)] = np.inf
        found = []
        for _, part in replay.log.columns():
            seen = replay.valid[..., part].any(axis=2).sum(axis=1)
            squares = (error[..., part] ** 2).sum(axis=(2, 3)) / np.maximum(seen, 1)
            found.append(np.where(seen > 0, np.sqrt(squares), np.nan))
        return np.stack(found, axis=2)


def _parts(log: ControlLog) -> list[ControlLog]:
    """The log in parts of equal length that are short enough."""
    count = int(np.ceil(np.ptp(log.times) / _MAX_SEGMENT_S)) if len(log.times) else 0
    edges = np.linspace(0, len(log.times), max(1, count) + 1).round().astype(int)
    return [log.part(slice(a, b)) for a, b in pairwise(edges.tolist()) if b - a > 1]


def _counting(logs: Sequence[ControlLog]) -> Bools:
    """(sensors,) whether the errors of each sensor count."""
    sensors = logs[0].contract.sensors
    missing = set.intersection(*(set(log.missing) for log in logs))
    places = [spec.kind in _POSITION_KINDS and spec.name not in missing for spec in sensors]
    return np.array(places if any(places) else [True] * len(sensors))
