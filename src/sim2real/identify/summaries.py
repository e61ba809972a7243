"""What a recording comes to in a few numbers, for beliefs that need no derivative of it.

A summary is taken of stretches of the real recording and of the same stretches in simulated worlds:
the recorded commands are sent again from the measured states, with everything random in the twin
on. The mean over the stretches is what real and simulated are compared by.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from sim2real.gap.log import Log
from sim2real.gap.replay import Replayer
from sim2real.gap.sensitivity import best_guess
from sim2real.twin import Twin

Summary = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""(n, k) numbers of readings (n, periods, numbers), of commands (n, periods, commands) and of the
readings that the twin expected before, without anything random."""

_BANDS = 3
"""Parts of the spectrum, each an equal share of its octaves."""
_LAGS = 3
"""Periods by which a reading may trail the command, each of which is looked at."""
_AT_ONCE = 256
"""Parameter vectors that are replayed in one go, for memory's sake."""


def statistics(readings: np.ndarray, command: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """(n, k) the usual numbers of readings (n, periods, numbers); nan is a reading not taken.

    Of each number its mean, its standard deviation, its correlation with itself one period before
    and its amplitude in three bands; of what was not expected of it the mean, and the covariance
    with every command and every expected number 0 to 2 periods before.
    """
    mean, centered = _centered(readings)
    variance = (centered**2).mean(axis=1)
    tiny = 1e-12 + 1e-12 * mean**2
    turned = (centered[:, 1:] * centered[:, :-1]).mean(axis=1) / (variance + tiny)
    found = [mean, np.sqrt(variance), turned]
    power = np.abs(np.fft.rfft(centered, axis=1))[:, 1:] ** 2 / readings.shape[1] ** 2
    edges = np.geomspace(1, power.shape[1] + 1, _BANDS + 1).round().astype(int) - 1
    for low, high in pairwise(edges):
        found.append(np.sqrt(power[:, low:high].sum(axis=1)))
    off, surprise = _centered(readings - expected)
    found.append(off)
    _, causes = _centered(np.concatenate([command, expected], axis=2))
    periods = readings.shape[1]
    for lag in range(min(_LAGS, periods)):
        then = causes[:, : periods - lag]
        together = np.einsum("ntk,ntc->nkc", surprise[:, lag:], then) / periods
        found.append(together.reshape(len(readings), -1))
    return np.concatenate(found, axis=1)


def _centered(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean (n, numbers) of values (n, periods, numbers), and what is around it; 0 for nan."""
    seen = np.isfinite(values)
    mean = np.where(seen, values, 0.0).sum(axis=1) / np.maximum(seen.sum(axis=1), 1)
    return mean, np.where(seen, values - mean[:, None], 0.0)


class Summaries:
    """Logs, ready to be summed up in worlds of any parameters."""

    def __init__(
        self,
        twin: Twin,
        logs: Sequence[Log],
        *,
        horizon_s: float = 0.5,
        summary: Summary = statistics,
        seed: int = 0,
        threads: int = 0,
    ) -> None:
        """Cut the logs into stretches of `horizon_s`; see `Replayer`."""
        self._replayer = Replayer(
            twin, Log.join(logs), horizon_s=horizon_s, chance="all", threads=threads
        )
        quiet = Replayer(twin, Log.join(logs), horizon_s=horizon_s, threads=threads)
        self._expected = quiet(best_guess(twin)[None]).predicted[0]
        self._summary = summary
        self._rng = np.random.default_rng(seed)
        rows = self._replayer.starts[:, None] + np.arange(self._replayer.steps)
        self._command = np.nan_to_num(self._replayer.log.command[rows])
        self._seen = np.isfinite(self._replayer.measured)
        self.observed = self._mean(self._replayer.measured[None])[0]
        """(k,) of the real recordings."""

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """(n, k) of worlds with `values` (n, parameters); nan where a world diverged."""
        parts = []
        for first in range(0, len(values), _AT_ONCE):
            some = values[first : first + _AT_ONCE]
            # Where the robot really was is known only as well as its sensors measure.
            starts = (len(some), len(self._replayer.starts), self._replayer.coordinates)
            moved = self._rng.normal(size=starts)
            predicted = self._replayer(some, moved=moved).predicted
            broken = (~np.isfinite(predicted) & self._seen).any(axis=(1, 2, 3))
            found = self._mean(np.where(self._seen, predicted, np.nan))
            parts.append(np.where(broken[:, None], np.nan, found))
        return np.concatenate(parts)

    def _mean(self, readings: np.ndarray) -> np.ndarray:
        """(n, k) mean over the stretches of readings (n, stretches, periods, numbers)."""
        worlds, stretches = readings.shape[:2]
        known = (np.tile(part, (worlds, 1, 1)) for part in (self._command, self._expected))
        each = self._summary(readings.reshape(-1, *readings.shape[2:]), *known)
        found: np.ndarray = each.reshape(worlds, stretches, -1).mean(axis=1)
        return found
