"""Weights of a remainder's bumps: fitted to some recordings, tested on others.

Residuals are nearly linear in the weights, so slopes are computed once for all recordings, and each
fold selects its own rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sim2real.arrays import Floats, Ints
from sim2real.identification.remainder_basis import weight_scales
from sim2real.identification.robust_loss import ROBUST
from sim2real.logs import ControlLog
from sim2real.params import Normal, Parameter, dimension_of
from sim2real.replay import LeastSquares, Replayer, log_of, spread_evenly
from sim2real.twin import Remainder, Twin

_MAX_SIMULATED_S = 48.0
"""Most time of all segments of one length; more are thinned out [s]."""
_STEP = 0.1
"""Finite-difference step, in scales of a weight."""
_PASSES = 6
"""Reweightings of the robust linear fit."""
_STRIDE = 0.7
"""Time from one test segment to the next, in segments: recordings may repeat one motion, and a fit
at some of its moments must hold at others."""


class BumpWeights:
    """The weights that explain logs of a twin's robot over several horizons."""

    def __init__(
        self,
        twin: Twin,
        blank: Remainder,
        logs: Sequence[ControlLog],
        horizons_s: Sequence[float],
        *,
        threads: int,
    ) -> None:
        self._blank, self._horizons_s, self._threads = blank, horizons_s, threads
        scales = np.repeat(weight_scales(twin, blank), blank.count)
        self._scales = np.maximum(scales, 1e-12)
        names = [f"joint/{n}/remainder[{k}]" for n in blank.names for k in range(blank.count)]
        weights = tuple(
            Parameter(
                name=name,
                dimension=dimension_of("joint", "remainder"),
                nominal=0.0,
                prior=Normal(mean=0.0, std=float(scale)),
            )
            for name, scale in zip(names, self._scales, strict=True)
        )
        self._twin = replace(twin, remainder=blank, parameters=(*twin.parameters, *weights))
        self.size = len(names)
        self._logs, self._joined = logs, ControlLog.join(logs)
        self._problems = []
        for horizon_s in horizons_s:
            problem = LeastSquares(
                self._twin, logs, horizon_s, fitted=tuple(names), threads=threads
            ).part(_most(horizon_s))
            noise = _noise(twin, logs, horizon_s, threads)
            self._problems.append(problem.with_noise(noise))
        self.linearise(np.zeros(self.size), np.arange(self.size))

    def linearise(self, x: Floats, free: Ints) -> None:
        """Compute residuals, and slopes of the bumps `free`, at weights x (bumps,)."""
        residuals, slopes, of = [], [], []
        self._problems = [problem.prepared(x) for problem in self._problems]
        for problem in self._problems:
            points = np.concatenate([x[None], x + _STEP * np.eye(self.size)[free]])
            white = problem.residuals(points)
            of.append(np.repeat(log_of(self._logs, problem.starts), white.shape[2]))
            white = white.reshape(len(points), -1)
            slope = np.zeros((self.size, white.shape[1]))
            slope[free] = (white[1:] - white[0]) / _STEP
            residuals.append(white[0] - x @ slope)
            slopes.append(slope)
        self._of = np.concatenate(of)
        self._residual, self._slopes = np.concatenate(residuals), np.concatenate(slopes, axis=1)

    def solved(self, free: Ints, ridge: float, recordings: Ints) -> Floats:
        """(bumps,) weights, in their scales, of the bumps `free` that fit some recordings best."""
        mine = np.isin(self._of, recordings)
        residual, slopes = self._residual[mine], self._slopes[np.ix_(free, mine)]
        found = np.zeros(len(free))
        for _ in range(_PASSES):
            weight = ROBUST / np.maximum(np.abs(residual + found @ slopes), ROBUST)
            normal = (slopes * weight) @ slopes.T + ridge * np.eye(len(free))
            found = -np.linalg.solve(normal, slopes @ (weight * residual))
        x = np.zeros(self.size)
        x[free] = found
        return x

    def squares(self, points: Floats, recordings: Ints, support: Remainder) -> Floats:
        """(n, recordings, horizons, sensors) mean squared errors with weights (n, bumps).

        Simulated from measured states, with the bumps acting inside `support`; infinite where a
        world diverged, nan where nothing was measured.
        """
        rows = np.repeat(self._twin.best_guess()[None], len(points), axis=0)
        rows[:, -self.size :] = points * self._scales
        sensors = self._joined.contract.sensors
        shape = (len(points), len(recordings), len(self._horizons_s), len(sensors))
        found = np.full(shape, np.nan)
        for k, horizon_s in enumerate(self._horizons_s):
            replayer = Replayer(
                replace(self._twin, remainder=support), self._joined, horizon_s=horizon_s,
                stride_s=_STRIDE * horizon_s, values=rows, threads=self._threads,
            )  # fmt: skip
            of = log_of(self._logs, replayer.starts)
            chosen = spread_evenly(len(of), _most(horizon_s))
            chosen = chosen[np.isin(of[chosen], recordings)]
            if not len(chosen):
                continue
            replay = replayer.part(chosen)(rows)
            errors, valid = replay.errors, replay.valid
            for row, recording in enumerate(recordings):
                here = of[chosen] == recording
                for column, (_, part) in enumerate(replay.log.columns()):
                    mine = errors[:, here][..., part][:, valid[here][..., part]]
                    if mine.size:
                        mine = np.nan_to_num(mine, nan=np.inf)
                        found[:, row, k, column] = (mine**2).mean(axis=1)
        return found

    def remainder(self, x: Floats) -> Remainder:
        """The remainder with weights x (bumps,)."""
        weights = (x * self._scales).reshape(len(self._blank.joints), -1)
        return Remainder(
            joints=tuple(
                replace(joint, weights=tuple(mine.tolist()))
                for joint, mine in zip(self._blank.joints, weights, strict=True)
            )
        )


def _most(horizon_s: float) -> int:
    """Most segments of one length."""
    return max(1, round(_MAX_SIMULATED_S / horizon_s))


def _noise(twin: Twin, logs: Sequence[ControlLog], horizon_s: float, threads: int) -> Floats:
    """(numbers,) scale of the twin's prediction errors, which a remainder may reduce."""
    problem = LeastSquares(twin, logs, horizon_s, threads=threads).part(_most(horizon_s))
    x = np.zeros(len(problem.names))
    names, noise = problem.sensor_of(), problem.noise.copy()
    for _ in range(3):
        problem = problem.prepared(x)
        white = problem.residuals(x[None])[0].reshape(problem.valid.shape)
        for sensor in set(names):
            mine = [k for k, name in enumerate(names) if name == sensor]
            seen = np.abs(white[..., mine][problem.valid[..., mine]])
            if seen.size:
                noise[mine] *= np.clip(float(np.median(seen)) / 0.6745, 0.2, 50.0)
        problem = problem.with_noise(noise.copy())
    return noise
