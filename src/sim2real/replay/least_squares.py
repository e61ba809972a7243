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
from functools import cached_property, partial
from typing import Self

import numpy as np

from sim2real.arrays import Floats, Ints
from sim2real.logs import ControlLog
from sim2real.replay.noise_model import BROKEN, NoiseModel
from sim2real.replay.randomness import moves_randomly
from sim2real.replay.replayer import Replayer
from sim2real.replay.segments import spread_evenly
from sim2real.replay.unknowns import Unknowns, around
from sim2real.twin import Twin

_STEP = 0.02
"""Half of a finite difference, in standard deviations of the prior."""
_MAX_START_SHIFT = 4.0
"""Farthest a starting state may be from its measurement, in standard deviations."""
_START_NOISE = 3.0
"""Noise of a measured start, relative to its readings: it is interpolated between them, and the
readings after it determine it better."""
_MIN_RELATIVE_NOISE = 0.1
"""Least noise of a reading, relative to what the twin declares."""
_TRIALS, _SLOPE_TRIALS, _ROUGH_TRIALS = 128, 48, 32
"""Random replays that estimate the effect of the twin's randomness on the readings, how it depends
on a delay, and the effect roughly."""
_REUSED_WITHIN = 0.1
"""Distance, in standard deviations of the prior, within which that estimate is reused."""
_MAX_CACHED = 4
"""Most predictions in the cache."""
_MAX_ROWS = 48
"""Most readings of one sensor per segment in the fit; more are thinned out."""


class LeastSquares(Unknowns):
    """A twin and logs of its robot; see the module.

    It is immutable: `prepared`, `with_randomness` and `with_noise` give the problem with better
    estimates of what is noise. Without them starts are as measured, and noise is as declared.
    """

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
        self.noise = self._replayer.noise
        """(numbers,) current estimate of the standard deviation of readings around predictions."""
        # Predictions have kinks where a delay is a whole number of steps: reach across them.
        across = 0.5 * self.twin.compile().model.opt.timestep
        delays = [across if p.name.endswith("/delay") else 0.0 for p in self.parameters]
        self._steps = np.maximum(_STEP, np.array(delays) / self.scales)
        self._delays = np.flatnonzero(delays)
        self._rows = spread_evenly(self._replayer.steps, _MAX_ROWS)
        self.measured = self._replayer.measured[:, self._rows]
        self.valid = np.isfinite(self.measured)
        self._moved = np.zeros((self.segments, self._replayer.coordinates))
        self._starts = self._scatter = np.zeros((0, *self.measured.shape))
        self._offset = np.zeros(self.measured.shape)
        self._offset_slopes = np.zeros((len(self._delays), *self.measured.shape))
        self._random_at: Floats | None = None
        self._cached: dict[bytes, Floats] = {}

    def _changed(self, **fields: object) -> Self:
        """The problem with other values of some of its fields."""
        found = copy.copy(self)
        vars(found).pop("_noise_model", None)
        vars(found).update(fields)
        return found

    @property
    def least_noise(self) -> Floats:
        """(numbers,) lower bound of the readings' noise.

        A joint at rest seems to have none, but rounding remains.
        """
        declared, rounding = self._replayer.noise, self._replayer.rounding
        return np.maximum(_MIN_RELATIVE_NOISE * declared, rounding)

    def with_noise(self, noise: Floats) -> Self:
        """The problem with another noise (numbers,) of the readings."""
        return self._changed(noise=noise)

    def part(self, most: int) -> Self:
        """The problem on at most `most` segments, spread evenly."""
        if self.segments <= most:
            return self
        chosen = spread_evenly(self.segments, most)
        return self._changed(
            _replayer=self._replayer.part(chosen),
            _random=self._random and self._random.part(chosen),
            measured=self.measured[chosen],
            valid=self.valid[chosen],
            _moved=self._moved[chosen],
            _starts=self._starts[:, chosen],
            _scatter=self._scatter[:, chosen],
            _offset=self._offset[chosen],
            _offset_slopes=self._offset_slopes[:, chosen],
            _cached={},
        )

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
        return self._errors(x, self._predicted(x))

    def _errors(self, x: Floats, predicted: Floats) -> Floats:
        """The same, from predictions without randomness."""
        predicted = predicted + self._offset
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
        if key not in self._cached:
            found = self._replayer(self.whole(x), moved=self._moved).predicted[:, :, self._rows]
            if len(x) > 1:
                return found
            if len(self._cached) >= _MAX_CACHED:
                del self._cached[next(iter(self._cached))]
            self._cached[key] = found
        return self._cached[key]

    def prepared(self, x: Floats, *, again: bool = False) -> Self:
        """The problem with the starting states estimated at x (fitted,), and the effects of their
        noise.

        This is a Gauss-Newton step on the starting states alone; whitening and later predictions
        use them. With `again` the effects are those of last time, which was close to x.
        """
        coordinates = self._moved.shape[1]
        if again and len(self._starts):
            predicted, starts = self._predicted(x[None]), self._starts[:coordinates]
        else:
            found = self._replayer(self.whole(x[None]), vary_starts=True, moved=self._moved)
            predicted = found.predicted[:, :, self._rows]
            starts = np.nan_to_num(found.start_effects[:, :, self._rows])
        effects = np.concatenate([starts, self._scatter])
        seen = np.nan_to_num(self._errors(x[None], predicted)[0] / self.noise, posinf=0.0)
        scaled = np.where(self.valid, effects / self.noise, 0.0)
        flat = np.clip(scaled, -BROKEN, BROKEN).reshape(len(effects), self.segments, -1)
        flat = flat.transpose(1, 0, 2)
        residual = np.clip(seen, -5.0, 5.0).reshape(self.segments, -1, 1)
        aimed = residual + np.matmul(flat[:, :coordinates].mT, self._moved[..., None])
        normal = np.matmul(flat, flat.mT) + np.eye(len(effects))
        step = np.linalg.solve(normal, np.matmul(flat, aimed))[:, :coordinates, 0]
        moved = np.clip(step, -_MAX_START_SHIFT, _MAX_START_SHIFT)
        return self._changed(_starts=effects, _moved=moved)

    def with_randomness(self, x: Floats, *, rough: bool = False) -> Self:
        """The problem with the scatter and bias of predictions by the twin's randomness, estimated
        at x (fitted,).

        A jittering delay smooths the kinks that predictions have at whole time steps, so the bias
        is estimated as a function of the delays, except for a `rough` estimate. The same problem if
        nothing random moves the twin, or if the estimate for a nearby x still holds.
        """
        known = self._random_at
        if self._random is None or (known is not None and np.abs(x - known).max() < _REUSED_WITHIN):
            return self
        trials = _ROUGH_TRIALS if rough else _TRIALS
        found, plain = self.predicted_randomly(x, trials)
        mean = found.mean(axis=0)
        low, high = self.bounds
        slopes = self._offset_slopes.copy()
        for row, k in enumerate(() if rough else self._delays):
            off = []
            for side in (-1.0, 1.0):
                there = x.copy()
                there[k] = np.clip(x[k] + side * self._steps[k], low[k], high[k])
                # The same random numbers on both sides, so that few replays are enough.
                some, exact = self.predicted_randomly(there, _SLOPE_TRIALS)
                off.append((there[k], some.mean(axis=0) - exact))
            (first, before), (last, after) = off
            slopes[row] = np.nan_to_num((after - before) / (last - first))
        return self._changed(
            _offset=np.nan_to_num(mean - plain),
            # Their mean is uncertain too.
            _scatter=np.nan_to_num(found - mean) * np.sqrt((1 + 1 / trials) / (trials - 1)),
            _offset_slopes=slopes,
            _random_at=x.copy(),
        )

    def predicted_randomly(self, x: Floats, trials: int) -> tuple[Floats, Floats]:
        """(trials, segments, rows, numbers) random predictions, and one without randomness."""
        assert self._random is not None
        values = self.whole(x[None])
        plain = self._replayer(values, moved=self._moved).predicted[0]
        found = self._random(np.repeat(values, trials, axis=0), moved=self._moved)
        return found.predicted[:, :, self._rows], plain[:, self._rows]

    @cached_property
    def _noise_model(self) -> NoiseModel:
        return NoiseModel(readings=self.noise, effects=self._starts, valid=self.valid)

    def whiten(self, error: Floats) -> Floats:
        """(n, segments, k) residuals, of unit variance if the model is right; 0 if unknown."""
        # Relative to the states as measured, whose noise is known.
        starts = self._starts[: self._moved.shape[1]]
        error = error + np.einsum("cskn,sc->skn", starts, self._moved[:, : len(starts)])
        most = BROKEN * self.noise
        error = np.where(np.isfinite(error), np.clip(error, -most, most), most)
        return self._noise_model.whitened(error)

    def whiten_slopes(self, slopes: Floats) -> Floats:
        """(fitted, segments, k) derivatives of whitened residuals from those of errors."""
        return self._noise_model.whitened(slopes)

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

    def linearised(self, x: Floats) -> tuple[Floats, Floats]:
        """Whitened residuals (segments, k) at x (fitted,), and slopes (fitted, segments, k).

        A problem that was never `prepared` is prepared at x.
        """
        known = self if len(self._starts) else self.prepared(x)
        error, slopes = known.slopes(x)
        return known.whiten(error)[0], known.whiten_slopes(slopes)

    def information(self, x: Floats) -> Floats:
        """(fitted, fitted) information of the logs at x (fitted,), per standard deviation of the
        prior squared."""
        _, slopes = self.linearised(x)
        flat = slopes.reshape(len(x), -1)
        return np.asarray(flat @ flat.T)

    def sensor_of(self) -> list[str]:
        """Name of the sensor of each number."""
        return [spec.name for spec in self.logs[0].contract.sensors for _ in range(spec.width)]
