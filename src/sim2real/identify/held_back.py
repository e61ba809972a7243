"""Recordings that no fit sees: how well they are predicted, before and after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sim2real.errors import Sim2RealError
from sim2real.gap.log import Log
from sim2real.gap.replay import Replayer
from sim2real.gap.sensitivity import best_guess
from sim2real.twin import Twin

_SHARE = 0.25
"""Share of the recordings that is held back."""
_LARGEST = 10.0
"""Logarithm of the largest change of a squared error that counts."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """Error of predictions on recordings that were held back, before and after."""

    horizon_s: float
    recordings: tuple[str, ...]
    """Ids of the episodes that were held back."""
    by_time: bool
    """Whether the end of a recording was held back, for want of a second one."""
    sensors: tuple[str, ...]
    before: np.ndarray
    """(sensors,) root mean square error of the old twin, in the sensor's unit."""
    after: np.ndarray
    """(sensors,) of the new one."""
    ratio: float
    """Error after against before in a typical stretch, over all sensors; below one is better."""


def split(logs: list[Log], held_back: list[Log]) -> tuple[list[Log], list[Log], bool]:
    """(train, test, whether by time)."""
    if held_back:
        return logs, held_back, False
    if len(logs) > 1:
        every = max(2, round(1 / _SHARE))
        test = [log for k, log in enumerate(logs) if k % every == every - 1] or logs[-1:]
        return [log for log in logs if log not in test], test, False
    (log,) = logs
    cut = int((1 - _SHARE) * len(log.times))
    return [log.part(slice(None, cut))], [log.part(slice(cut, None))], True


class HeldBack:
    """Recordings that no fit sees, predicted over the longest horizon they have room for.

    Without horizons they are predicted whole, each from its first row.
    """

    def __init__(self, twin: Twin, logs: list[Log], horizons_s: Sequence[float] = ()) -> None:
        reach = np.array([p.bounds for p in twin.parameters]).T
        now = best_guess(twin)
        extremes = np.where(np.isfinite(reach), reach, now)
        self._replayer = _replayer(twin, logs, horizons_s, extremes)
        self._twin, self._logs = twin, logs
        self._sensors = [spec.name for spec in logs[0].contract.sensors]
        self._now = self._squares(now)

    def check(self, values: np.ndarray, ratio: float, *, by_time: bool) -> Check:
        """Errors of the twin as it is and with values (parameters,)."""
        return Check(
            horizon_s=self._replayer.steps * self._replayer.period_s,
            recordings=tuple(log.episode for log in self._logs),
            by_time=by_time,
            sensors=tuple(self._sensors),
            before=self.rms(best_guess(self._twin)),
            after=self.rms(values),
            ratio=ratio,
        )

    def rms(self, values: np.ndarray) -> np.ndarray:
        """(sensors,) root mean square error in the sensor's unit; infinite where one diverged."""
        squares, counts = self._squares(values)
        with np.errstate(invalid="ignore"):
            found: np.ndarray = np.sqrt(squares.sum(axis=0) / counts.sum(axis=0))
        return found

    def ratio(self, values: np.ndarray) -> float:
        """Error against that of the twin as it is: the geometric mean over stretches and sensors.

        A stretch where a small error grows out of all bounds counts as one of many. Errors below
        the noise of the readings are as good as none.
        """
        replayer = self._replayer
        noise = np.array(
            [(replayer.noise[replayer.log.column(n)] ** 2).mean() for n in self._sensors]
        )
        after, counts = self._squares(values)
        known = counts > 0
        with np.errstate(invalid="ignore", divide="ignore"):
            logs = np.log((after / counts + noise) / (self._now[0] / counts + noise))
        logs = np.clip(
            np.nan_to_num(logs[known], nan=0.0, posinf=_LARGEST, neginf=-_LARGEST),
            -_LARGEST,
            _LARGEST,
        )
        return float(np.exp(0.5 * logs.mean())) if logs.size else float("nan")

    def _squares(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(segments, sensors) sums of squared errors, and numbers of readings."""
        replay = self._replayer(values[None])
        squares, counts = [], []
        for name in self._sensors:
            seen = replay.valid[..., replay.column(name)]
            mine = replay.errors[0][..., replay.column(name)] ** 2
            mine = np.where(seen, np.where(np.isfinite(mine), mine, np.inf), 0.0)
            squares.append(mine.sum(axis=(1, 2)))
            counts.append(seen.sum(axis=(1, 2)))
        return np.stack(squares, axis=1), np.stack(counts, axis=1)


def _replayer(
    twin: Twin, logs: list[Log], horizons_s: Sequence[float], extremes: np.ndarray
) -> Replayer:
    joined = Log.join(logs)
    if not horizons_s:
        longest = max(float(np.ptp(log.times)) for log in logs)
        return Replayer(twin, joined, horizon_s=longest, values=extremes, recordings=True)
    for horizon_s in sorted(horizons_s)[:0:-1]:
        try:
            return Replayer(twin, joined, horizon_s=horizon_s, values=extremes)
        except Sim2RealError:
            continue
    return Replayer(twin, joined, horizon_s=min(horizons_s), values=extremes)
