"""Held-back recordings: how well they are predicted before and after a fit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sim2real.arrays import Floats
from sim2real.errors import Sim2RealError
from sim2real.identification.identification import HeldBackCheck
from sim2real.identification.robust_loss import ROBUST, scale
from sim2real.logs import ControlLog
from sim2real.replay import Replayer
from sim2real.twin import Twin

_FEW_RECORDINGS = 8
"""Number of recordings below which the end of each is held back instead."""
_MIN_END_S = 1.0
"""Shortest end that is worth holding back [s]."""


def split(
    logs: list[ControlLog], held_back: list[ControlLog], *, share: float
) -> tuple[list[ControlLog], list[ControlLog], bool]:
    """(train, test, whether by time): holds back a `share` of the recordings, or the end of each if
    they are few, since each may show something that the others do not."""
    if held_back:
        return logs, held_back, False
    shortest = min(float(np.ptp(log.times)) for log in logs)
    if len(logs) == 1 or (len(logs) < _FEW_RECORDINGS and share * shortest > _MIN_END_S):
        cuts = [int((1 - share) * len(log.times)) for log in logs]
        train = [log.part(slice(None, cut)) for log, cut in zip(logs, cuts, strict=True)]
        return train, [log.part(slice(c, None)) for log, c in zip(logs, cuts, strict=True)], True
    every = round(1 / share)
    test = [log for k, log in enumerate(logs) if k % every == every - 1] or logs[-1:]
    return [log for log in logs if log not in test], test, False


class HeldBack:
    """Held-back recordings, predicted over the longest of the horizons that fits into them.

    Without horizons they are predicted whole, from their first row.
    """

    def __init__(
        self, twin: Twin, logs: list[ControlLog], horizons_s: Sequence[float] = ()
    ) -> None:
        reach = np.array([p.bounds for p in twin.parameters]).T
        now = twin.best_guess()
        extremes = np.where(np.isfinite(reach), reach, now)
        self._replayer = _replayer(twin, logs, horizons_s, extremes)
        self._twin, self._logs = twin, logs
        self._sensors = logs[0].contract.sensors
        self._now = self._errors(now)

    def check(self, values: Floats, *, by_time: bool) -> HeldBackCheck:
        """Errors of the old twin, and with values (parameters,)."""
        errors = self._errors(values)
        return HeldBackCheck(
            horizon_s=self._replayer.steps * self._replayer.period_s,
            recordings=tuple(log.episode for log in self._logs),
            by_time=by_time,
            sensors=tuple(spec.name for spec in self._sensors),
            units=tuple(spec.unit for spec in self._sensors),
            before=_rms(self._now),
            after=_rms(errors),
            ratio=self._ratio(errors),
        )

    def ratio(self, values: Floats) -> float:
        """Error with values (parameters,), relative to the old twin's, over all sensors."""
        return self._ratio(self._errors(values))

    def _ratio(self, found: list[Floats]) -> float:
        """Errors are clipped at three times the old twin's scale: from unstable states any small
        error grows without bound, and says nothing about a twin."""
        shares = []
        for now, errors in zip(self._now, found, strict=True):
            usual = scale(now)
            if now.size and usual > 0:
                most = ROBUST * usual
                before, after = (np.clip(e, -most, most) for e in (now, errors))
                shares.append(_mean_square(after) / _mean_square(before))
        return float(np.sqrt(np.mean(shares))) if shares else float("nan")

    def _errors(self, values: Floats) -> list[Floats]:
        """Errors of each sensor in all segments; infinite where a world diverged."""
        replay = self._replayer(values[None])
        found = []
        for _, part in replay.log.columns():
            mine = replay.errors[0][..., part][replay.valid[..., part]]
            found.append(np.where(np.isfinite(mine), mine, np.inf))
        return found


def _rms(found: list[Floats]) -> Floats:
    """(sensors,) root mean square error in the sensor's unit; infinite if a world diverged."""
    return np.array([_mean_square(errors) ** 0.5 for errors in found])


def _mean_square(errors: Floats) -> float:
    return float(np.mean(errors**2)) if errors.size else float("nan")


def _replayer(
    twin: Twin, logs: list[ControlLog], horizons_s: Sequence[float], extremes: Floats
) -> Replayer:
    joined = ControlLog.join(logs)
    if not horizons_s:
        longest = max(float(np.ptp(log.times)) for log in logs)
        return Replayer(twin, joined, horizon_s=longest, values=extremes, recordings=True)
    for horizon_s in sorted(horizons_s)[:0:-1]:
        try:
            return Replayer(twin, joined, horizon_s=horizon_s, values=extremes)
        except Sim2RealError:
            continue
    return Replayer(twin, joined, horizon_s=min(horizons_s), values=extremes)
