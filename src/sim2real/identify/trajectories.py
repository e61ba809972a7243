"""Whole recordings against the twin: what is searched where contact makes gradients mislead.

A recording is one trajectory, predicted from its first row to its end; one that is longer than a
few seconds is several, each from its own first row. A trajectory's cost is the mean over
sensors of the root of the mean squared error, in units of what is usual for the sensor: a
trajectory that went the other way at an impact counts as one that is far off, not as its square.
One trajectory is one observation, however many rows it has. Sensors of speed are left out where
others say where things are: at an impact a speed is off by all of itself for being a moment late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from sim2real.gap.log import Log
from sim2real.gap.replay import Replayer
from sim2real.gap.sensitivity import best_guess, chosen_parameters, prior_std
from sim2real.params import LogUniform, Parameter
from sim2real.twin import Twin

_LONGEST_S = 5.0
"""Length from which a recording becomes several trajectories [s]."""
_LONG = 0.9
"""Share of the trajectories that are followed to their end; longer ones are left there."""
_BATCH = 32
"""Trajectories that are predicted at a time."""
_PLACES = ("jointpos", "tendonpos", "ballquat", "framepos", "framequat")
"""Kinds of sensors that say where things are."""


@dataclass
class Trajectories:
    """A twin and recordings of its robot; see the module.

    Parameters are counted in standard deviations of their priors from the twin's best guess,
    those of a log-uniform prior by their logarithms.
    """

    twin: Twin
    logs: Sequence[Log]
    fitted: tuple[str, ...] = ()
    """Parameters to fit; all whose prior leaves them open by default."""
    threads: int = 0
    parameters: tuple[Parameter, ...] = field(init=False)
    horizon_s: float = field(init=False)
    """Longest time that a trajectory is followed [s]."""
    units: np.ndarray = field(init=False)
    """(sensors,) error that costs one."""

    def __post_init__(self) -> None:
        self.parameters = chosen_parameters(self.twin, self.fitted)
        names = [p.name for p in self.twin.parameters]
        self._columns = [names.index(p.name) for p in self.parameters]
        self._base = best_guess(self.twin)
        self._logs = np.array([isinstance(p.prior, LogUniform) for p in self.parameters])
        self._center = self._counted(self._base[self._columns])
        self._scales = np.array([_width(p) for p in self.parameters])
        edges = np.array([_reach(p) for p in self.parameters]).T
        low, high = (self._counted(edge) for edge in edges)
        self.bounds = (low - self._center) / self._scales, (high - self._center) / self._scales
        """(low, high) (fitted,) in standard deviations from the center."""
        pieces = [piece for log in self.logs for piece in _pieces(log)]
        self.horizon_s = float(np.quantile([np.ptp(piece.times) for piece in pieces], _LONG))
        count = max(1, round(len(pieces) / _BATCH))
        self._batches = [
            Replayer(
                self.twin,
                Log.join(pieces[first::count]),
                horizon_s=self.horizon_s,
                recordings=True,
                threads=self.threads,
            )
            for first in range(count)
        ]
        self.units = np.ones(len(self.logs[0].contract.sensors))
        self._counting = _counting(self.logs)
        self.settle(np.zeros(len(self.parameters)))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of what is fitted."""
        return tuple(p.name for p in self.parameters)

    @property
    def center(self) -> np.ndarray:
        """(fitted,) values where the count of standard deviations is zero."""
        return self.values(np.zeros(len(self.parameters)))

    @property
    def batches(self) -> int:
        """Parts that the trajectories are taken in."""
        return len(self._batches)

    @property
    def segments(self) -> int:
        """Trajectories."""
        return sum(len(batch.starts) for batch in self._batches)

    def values(self, x: np.ndarray) -> np.ndarray:
        """(…, fitted) values of parameters for (…, fitted) standard deviations."""
        counted = self._center + self._scales * np.clip(x, *self.bounds)
        found: np.ndarray = np.where(self._logs, np.exp(np.where(self._logs, counted, 0)), counted)
        return found

    def slopes(self, x: np.ndarray) -> np.ndarray:
        """(fitted,) change of each value with its standard deviations at x (fitted,)."""
        found: np.ndarray = self._scales * np.where(self._logs, self.values(x), 1.0)
        return found

    def settle(self, x: np.ndarray) -> None:
        """Make the middle error of each sensor at x (fitted,) the unit of its errors."""
        errors = np.concatenate([self._errors(x[None], k)[0] for k in range(self.batches)])
        errors[~np.isfinite(errors)] = np.nan
        known = np.isfinite(errors).any(axis=0)
        middle = np.nanmedian(np.where(known, errors, 0.0), axis=0)
        self.units = np.where(known & (middle > 0), middle, 1.0)

    def costs(self, x: np.ndarray, batch: int | None = None) -> np.ndarray:
        """(n, trajectories) cost of each trajectory of a batch, or of all, for x (n, fitted).

        Infinite where a world diverged.
        """
        chosen = range(self.batches) if batch is None else (batch % self.batches,)
        errors = np.concatenate([self._errors(np.atleast_2d(x), k) for k in chosen], axis=1)
        known = ~np.isnan(errors) & self._counting
        scaled = np.where(known, errors / self.units, 0.0)
        found: np.ndarray = scaled.sum(axis=2) / np.maximum(known.sum(axis=2), 1)
        return found

    def _errors(self, x: np.ndarray, batch: int) -> np.ndarray:
        """(n, trajectories, sensors) root mean square errors; nan where nothing was measured."""
        replayer = self._batches[batch]
        values = np.repeat(self._base[None], len(x), axis=0)
        values[:, self._columns] = self.values(x)
        replay = replayer(values)
        error = np.where(replay.valid, replay.errors, 0.0)
        error[~np.isfinite(error)] = np.inf
        found = []
        for spec in replay.log.contract.sensors:
            part = replay.column(spec.name)
            seen = replay.valid[..., part].any(axis=2).sum(axis=1)
            squares = (error[..., part] ** 2).sum(axis=(2, 3)) / np.maximum(seen, 1)
            found.append(np.where(seen > 0, np.sqrt(squares), np.nan))
        return np.stack(found, axis=2)

    def _counted(self, values: np.ndarray) -> np.ndarray:
        """(fitted,) values as they are counted: as they are, or by their logarithms."""
        logs = np.log(np.where(self._logs, np.maximum(values, 1e-300), 1.0))
        found: np.ndarray = np.where(self._logs, logs, values)
        return found


def _pieces(log: Log) -> list[Log]:
    """The log in parts of equal length that are short enough."""
    count = int(np.ceil(np.ptp(log.times) / _LONGEST_S)) if len(log.times) else 0
    edges = np.linspace(0, len(log.times), max(1, count) + 1).round().astype(int)
    return [log.part(slice(a, b)) for a, b in pairwise(edges.tolist()) if b - a > 1]


def _counting(logs: Sequence[Log]) -> np.ndarray:
    """(sensors,) whether the errors of each sensor count."""
    sensors = logs[0].contract.sensors
    missing = set.intersection(*(set(log.missing) for log in logs))
    places = [spec.kind in _PLACES and spec.name not in missing for spec in sensors]
    return np.array(places if any(places) else [True] * len(sensors))


def _width(parameter: Parameter) -> float:
    """Standard deviation of the prior, as the parameter is counted."""
    if not isinstance(parameter.prior, LogUniform):
        return prior_std(parameter)
    low, high = np.log(parameter.prior.support)
    return float(0.6826 * (high - low) / 2)


def _reach(parameter: Parameter) -> tuple[float, float]:
    """Values a search may take: the bounds, or where there are none, ten priors' widths around."""
    low, high = parameter.bounds
    if isinstance(parameter.prior, LogUniform):
        least, most = parameter.prior.support
        return low if low > 0 else least, high if np.isfinite(high) else most
    wide = 10.0 * prior_std(parameter)
    return max(low, parameter.nominal - wide), min(high, parameter.nominal + wide)
