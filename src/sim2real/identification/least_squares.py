"""The least-squares problem of a fit: residuals of logs, and their dependence on the parameters.

Parameters are measured in standard deviations of their priors from where the fit starts, so that
steps and precisions compare. Residuals are of many short segments at once (multiple shooting), each
whitened by the noise of its readings and by the noise of its measured starting state, propagated
through the dynamics: that is the same as estimating every starting state and marginalising it.
Randomness in the twin's motion (a jittering delay, a lost command) is whitened in the same way.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import partial

import numpy as np

from sim2real.arrays import Floats, Ints
from sim2real.logs import ControlLog
from sim2real.replay import Replayer, Unknowns, around, moves_randomly, spread_evenly
from sim2real.twin import Twin

BROKEN = 1e3
"""Whitened residual of a world that diverged: very large, but finite."""
_STEP = 0.02
"""Half of a finite difference, in standard deviations of the prior."""
_FARTHEST_START = 4.0
"""Farthest a starting state may be from its measurement, in standard deviations."""
_START_NOISE = 3.0
"""Noise of a measured start, relative to its readings: it is interpolated between them, and the
readings after it determine it better."""
_LEAST_NOISE = 0.1
"""Least noise of a reading, relative to what the twin declares."""
_TRIALS, _FEWER_TRIALS, _ROUGH_TRIALS = 128, 48, 32
"""Random replays that estimate the effect of the twin's randomness on the readings, how it depends
on a delay, and a first rough idea of it."""
_NEARLY = 0.1
"""Distance, in standard deviations of the prior, within which that estimate is reused."""
_REMEMBERED = 4
"""Predictions in the cache."""
_MOST_ROWS = 48
"""Most readings of one sensor per segment in the fit; more are thinned out."""


class LeastSquares(Unknowns):
    """A twin and logs of its robot; see the module."""

    def __init__(
        self,
        twin: Twin,
        logs: Sequence[ControlLog],
        horizon_s: float,
        fitted: Sequence[str] = (),
        *,
        threads: int = 0,
    ) -> None:
        """Logs in segments of `horizon_s`, end to end, for the parameters `fitted`."""
        super().__init__(twin, fitted)
        self.logs, self.horizon_s = logs, horizon_s
        make = partial(
            Replayer,
            twin,
            ControlLog.join(logs),
            horizon_s=horizon_s,
            values=self.whole(np.stack(self.bounds)),
            start_noise=_START_NOISE,
            threads=threads,
        )
        self._replayer = make()
        self._random = make(randomness="motion") if moves_randomly(twin) else None
        self.noise = self._replayer.noise.copy()
        """(numbers,) current estimate of the standard deviation of readings around predictions."""
        keep = spread_evenly(self._replayer.steps, _MOST_ROWS)
        self._rows = keep
        self.measured = self._replayer.measured[:, keep]
        self.valid = np.isfinite(self.measured)
        self._factor: tuple[Floats, Floats] | None = None
        self._moved = np.zeros((self.segments, self._replayer.coordinates))
        self._starts: Floats | None = None
        self._scatter: Floats | None = None
        self._offset = np.zeros(self.measured.shape)
        # Predictions have kinks where a delay is a whole number of steps: reach across them.
        across = 0.5 * self.twin.compile().model.opt.timestep
        delays = [across if p.name.endswith("/delay") else 0.0 for p in self.parameters]
        self._steps = np.maximum(_STEP, np.array(delays) / self.scales)
        self._delays = np.flatnonzero(delays)
        self._offset_slopes = np.zeros((len(self._delays), *self.measured.shape))
        self._random_at: Floats | None = None
        self._remembered: dict[bytes, Floats] = {}

    @property
    def least_noise(self) -> Floats:
        """(numbers,) lower bound of the readings' noise.

        A joint at rest seems to have none, but rounding remains.
        """
        declared, rounding = self._replayer.noise, self._replayer.rounding
        return np.maximum(_LEAST_NOISE * declared, rounding)

    def part(self, most: int) -> LeastSquares:
        """The same problem on at most `most` segments, spread evenly."""
        if self.segments <= most:
            return self
        chosen = spread_evenly(self.segments, most)
        found = copy.copy(self)
        found._replayer = self._replayer.part(chosen)
        found._random = self._random and self._random.part(chosen)
        found.measured, found.valid = self.measured[chosen], self.valid[chosen]
        found._moved, found._factor = self._moved[chosen], None
        found._starts = None if self._starts is None else self._starts[:, chosen]
        found._scatter = None if self._scatter is None else self._scatter[:, chosen]
        found._offset = self._offset[chosen]
        found._offset_slopes = self._offset_slopes[:, chosen]
        found.noise = self.noise.copy()
        found._remembered = {}
        return found

    @property
    def segments(self) -> int:
        """Segments of all logs."""
        return len(self.measured)

    @property
    def starts(self) -> Ints:
        """(segments,) row of the joined logs that each segment starts from."""
        return self._replayer.starts

    def errors(self, x: Floats) -> Floats:
        """(n, segments, rows, numbers) measured minus predicted at x (n, fitted); nan if unknown.

        Infinite where a world diverged.
        """
        predicted = self._predicted(x) + self._offset
        if self._random_at is not None:
            away = (x - self._random_at)[:, self._delays]
            predicted += np.einsum("nd,dskm->nskm", away, self._offset_slopes)
        error: Floats = self.measured - predicted
        broken = ~np.isfinite(predicted) & self.valid
        error[broken] = np.inf
        return error

    def _predicted(self, x: Floats) -> Floats:
        """(n, segments, rows, numbers) predictions without randomness; single ones are cached."""
        key = x.tobytes() + self._moved.tobytes()
        if key not in self._remembered:
            found = self._replayer(self.whole(x), moved=self._moved).predicted[:, :, self._rows]
            if len(x) > 1:
                return found
            if len(self._remembered) >= _REMEMBERED:
                del self._remembered[next(iter(self._remembered))]
            self._remembered[key] = found
        return self._remembered[key]

    def prepare(self, x: Floats, *, again: bool = False) -> None:
        """Estimate, at x (fitted,), the starting states and how their noise propagates.

        This is a Gauss-Newton step on the starting states alone; whitening and later predictions
        use them. With `again` their effects are reused from last time, which was close to x.
        """
        if self._scatter is None:
            self._scatter = np.zeros((0, *self.measured.shape))
        if again and self._starts is not None:
            predicted = self._predicted(x[None])[0]
            starts = self._starts[: self._moved.shape[1]]
        else:
            found = self._replayer(self.whole(x[None]), vary_starts=True, moved=self._moved)
            predicted = found.predicted[0][:, self._rows]
            starts = np.nan_to_num(found.start_effects[:, :, self._rows])
        effects = np.concatenate([starts, self._scatter])
        self._starts, self._factor = effects, None
        offset = self._offset
        if self._random_at is not None:
            away = (x - self._random_at)[self._delays]
            offset = offset + np.einsum("d,dskm->skm", away, self._offset_slopes)
        error = self.measured - predicted - offset
        seen = np.where(self.valid & np.isfinite(error), error / self.noise, 0.0)
        scaled = np.where(self.valid, effects / self.noise, 0.0)
        flat = np.clip(scaled, -BROKEN, BROKEN).reshape(len(effects), self.segments, -1)
        flat = flat.transpose(1, 0, 2)
        residual = np.clip(seen, -5.0, 5.0).reshape(self.segments, -1, 1)
        aimed = residual + np.matmul(flat[:, : len(starts)].mT, self._moved[..., None])
        normal = np.matmul(flat, flat.mT) + np.eye(len(effects))
        step = np.linalg.solve(normal, np.matmul(flat, aimed))[..., 0]
        self._moved = np.clip(step[:, : len(starts)], -_FARTHEST_START, _FARTHEST_START)

    def prepare_randomness(self, x: Floats, *, rough: bool = False) -> bool:
        """Estimate, at x (fitted,), scatter and bias of predictions by the twin's randomness.

        A jittering delay smooths the kinks that predictions have at whole time steps, so the bias
        is estimated as a function of the delays, except for a `rough` estimate. False if nothing
        random moves the twin, or if the estimate for a nearby x still holds.
        """
        known = self._random_at
        if self._random is None or (known is not None and np.abs(x - known).max() < _NEARLY):
            return False
        trials = _ROUGH_TRIALS if rough else _TRIALS
        found, plain = self.predicted_randomly(x, trials)
        mean = found.mean(axis=0)
        self._offset = np.nan_to_num(mean - plain)
        # Their mean is uncertain too.
        self._scatter = np.nan_to_num(found - mean) * np.sqrt((1 + 1 / trials) / (trials - 1))
        low, high = self.bounds
        self._random_at = x.copy()
        for row, k in enumerate(() if rough else self._delays):
            off = []
            for side in (-1.0, 1.0):
                there = x.copy()
                there[k] = np.clip(x[k] + side * self._steps[k], low[k], high[k])
                # The same random numbers on both sides, so that few replays are enough.
                found, plain = self.predicted_randomly(there, _FEWER_TRIALS)
                off.append((there[k], found.mean(axis=0) - plain))
            (first, before), (last, after) = off
            self._offset_slopes[row] = np.nan_to_num((after - before) / (last - first))
        return True

    def predicted_randomly(self, x: Floats, trials: int) -> tuple[Floats, Floats]:
        """(trials, segments, rows, numbers) random predictions, and one without randomness."""
        assert self._random is not None
        values = self.whole(x[None])
        plain = self._replayer(values, moved=self._moved).predicted[0]
        found = self._random(np.repeat(values, trials, axis=0), moved=self._moved)
        return found.predicted[:, :, self._rows], plain[:, self._rows]

    def whiten(self, error: Floats) -> Floats:
        """(n, segments, k) residuals, of unit variance if the model is right; 0 if unknown."""
        if self._starts is None:
            raise RuntimeError("prepare first")
        # Relative to the states as measured, whose noise is known.
        back = np.einsum("cskn,sc->skn", self._starts[: self._moved.shape[1]], self._moved)
        scaled = np.where(self.valid, (error + back) / self.noise, 0.0)
        broken = ~np.isfinite(scaled)
        return self._root(np.where(broken, BROKEN, np.clip(scaled, -BROKEN, BROKEN)))

    def whiten_slopes(self, slopes: Floats) -> Floats:
        """(fitted, segments, k) derivatives of whitened residuals from those of errors."""
        return self._root(np.where(self.valid, slopes / self.noise, 0.0))

    def _root(self, scaled: Floats) -> Floats:
        """(n, segments, k) errors in units of noise, whitened for the noise of the starts."""
        if self._starts is None:
            raise RuntimeError("prepare first")
        count, segments = scaled.shape[:2]
        flat = scaled.reshape(count, segments, -1)
        if self._factor is None:
            starts = np.where(self.valid, self._starts / self.noise, 0.0)
            starts = np.clip(starts, -BROKEN, BROKEN).reshape(len(starts), segments, -1)
            # The covariance is the identity plus a few directions; its root only affects those.
            along, sizes, _ = np.linalg.svd(starts.transpose(1, 2, 0), full_matrices=False)
            self._factor = (along, 1.0 - 1.0 / np.sqrt(1.0 + sizes**2))
        along, shares = self._factor
        parts = np.matmul(along.transpose(0, 2, 1), flat.transpose(1, 2, 0))
        white = flat - np.matmul(along, shares[:, :, None] * parts).transpose(2, 0, 1)
        return np.where(self.valid.reshape(segments, -1), white, 0.0)

    def residuals(self, x: Floats) -> Floats:
        """(n, segments, k) whitened residuals for x (n, fitted)."""
        return self.whiten(self.errors(np.atleast_2d(x)))

    def slopes(self, x: Floats, *, central: bool = False) -> tuple[Floats, Floats]:
        """(errors at x (1, segments, rows, numbers), their derivatives (fitted, …)).

        By one-sided differences, or at twice the cost by central ones, in one batch of worlds.
        Derivatives are zero where a world diverged.
        """
        points, spans = around(x, self._steps, self.bounds, central=central)
        different = (points != x).any(axis=1)
        different[0] = True
        error = np.empty((len(points), *self.measured.shape))
        error[different] = self.errors(points[different])
        error[~different] = error[0]
        with np.errstate(invalid="ignore"):
            found = (error[2::2] - error[1::2]) / spans[:, None, None, None]
        found[~np.isfinite(found)] = 0.0
        return error[:1], found

    def linearised(self, x: Floats, *, central: bool = True) -> tuple[Floats, Floats]:
        """Whitened residuals (segments, k) at x (fitted,), and slopes (fitted, segments, k)."""
        error, slopes = self.slopes(x, central=central)
        return self.whiten(error)[0], self.whiten_slopes(slopes)

    def information(self, x: Floats) -> Floats:
        """(fitted, fitted) information of the logs at x (fitted,), clipped to the bounds, per
        standard deviation of the prior squared."""
        x = np.clip(x, *self.bounds)
        self.prepare(x)
        _, slopes = self.linearised(x, central=False)
        flat = slopes.reshape(len(x), -1)
        return np.asarray(flat @ flat.T)

    def sensor_of(self) -> list[str]:
        """Name of the sensor of each number."""
        return [spec.name for spec in self.logs[0].contract.sensors for _ in range(spec.width)]
