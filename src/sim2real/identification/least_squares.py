"""What is fitted: residuals of logs against the twin, and how they answer to its parameters.

Parameters are counted in standard deviations of their priors from where the fit starts, so
that steps and precisions compare. Residuals are of many short segments at once (multiple shooting),
each whitened by the noise of its readings and by the noise of the measured state it starts from,
carried along by the dynamics: that is the same as estimating every segment's first state and
forgetting it again. What is random in the twin's motion (a delay that jitters, a lost command) is
whitened in the same way.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import partial

import numpy as np

from sim2real.arrays import Floats, Ints
from sim2real.logs import ControlLog
from sim2real.replay import Replayer, Unknowns, around, moves_by_chance, spread_evenly
from sim2real.twin import Twin

BROKEN = 1e3
"""Whitened residual of a world that diverged: as good as infinite, and finite."""
_STEP = 0.02
"""Half of a finite difference, in standard deviations of the prior."""
_FARTHEST_START = 4.0
"""Farthest a segment's first state may be from what was measured, in standard deviations."""
_START_NOISE = 3.0
"""Noise of a measured start against that of its readings: it is interpolated between them, and the
readings after it tell it better."""
_LEAST_NOISE = 0.1
"""Noise of a reading, at least, against what the twin declares."""
_TRIALS, _FEWER_TRIALS, _ROUGH_TRIALS = 128, 48, 32
"""Replays with the twin's chance on, from which its effect on the readings is known, how that
answers to a delay, and what is enough for a first idea."""
_NEARLY = 0.1
"""Distance, in standard deviations of the prior, within which the effect of chance is the same."""
_REMEMBERED = 4
"""Predictions that are kept, in case they are asked for again."""
_MOST_ROWS = 48
"""Readings of one sensor in a segment that enter the fit; more are thinned out."""


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
        self._chance = make(chance="motion") if moves_by_chance(twin) else None
        self.noise = self._replayer.noise.copy()
        """(numbers,) standard deviation of a reading around the prediction, as now believed."""
        keep = spread_evenly(self._replayer.steps, _MOST_ROWS)
        self._rows = keep
        self.measured = self._replayer.measured[:, keep]
        self.valid = np.isfinite(self.measured)
        self._factor: tuple[Floats, Floats] | None = None
        self._moved = np.zeros((self.segments, self._replayer.coordinates))
        self._starts: Floats | None = None
        self._scatter: Floats | None = None
        self._offset = np.zeros(self.measured.shape)
        # Delays have corners at whole time steps: a difference has to reach across them.
        across = 0.5 * self.twin.compile().model.opt.timestep
        delays = [across if p.name.endswith("/delay") else 0.0 for p in self.parameters]
        self._steps = np.maximum(_STEP, np.array(delays) / self.scales)
        self._delays = np.flatnonzero(delays)
        self._offset_slopes = np.zeros((len(self._delays), *self.measured.shape))
        self._chance_at: Floats | None = None
        self._remembered: dict[bytes, Floats] = {}

    @property
    def least_noise(self) -> Floats:
        """(numbers,) standard deviation below which a reading's noise is not believed to be.

        A joint that rests seems to have none; but what is rounded is not known better for it.
        """
        declared, rounding = self._replayer.noise, self._replayer.rounding
        return np.maximum(_LEAST_NOISE * declared, rounding)

    def part(self, most: int) -> LeastSquares:
        """The same problem on at most so many segments, spread over all of them."""
        if self.segments <= most:
            return self
        chosen = spread_evenly(self.segments, most)
        found = copy.copy(self)
        found._replayer = self._replayer.part(chosen)
        found._chance = self._chance and self._chance.part(chosen)
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
        """(n, segments, rows, numbers) measured less predicted for x (n, fitted); nan if unknown.

        A world that diverged has errors of infinity.
        """
        predicted = self._predicted(x) + self._offset
        if self._chance_at is not None:
            away = (x - self._chance_at)[:, self._delays]
            predicted += np.einsum("nd,dskm->nskm", away, self._offset_slopes)
        error: Floats = self.measured - predicted
        broken = ~np.isfinite(predicted) & self.valid
        error[broken] = np.inf
        return error

    def _predicted(self, x: Floats) -> Floats:
        """(n, segments, rows, numbers) without chance; the last few single ones are remembered."""
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
        """Learn, at x (fitted,), what each segment's first state was, and how its noise spreads.

        A Gauss-Newton step on the first states alone; whitening and further predictions use them.
        With `again` their effects are taken as known from last time, which was not far from x.
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
        if self._chance_at is not None:
            away = (x - self._chance_at)[self._delays]
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

    def prepare_chance(self, x: Floats, *, rough: bool = False) -> bool:
        """Learn, at x (fitted,), how predictions scatter, and lie off, by the twin's chance.

        A delay that jitters rounds off the corners that predictions have at whole time steps, so
        how far they lie off is learned as a function of the delays; but not where a `rough` idea
        will do. False where none of what is random in the twin moves it, and where it is known
        already for an x that is nearly this.
        """
        known = self._chance_at
        if self._chance is None or (known is not None and np.abs(x - known).max() < _NEARLY):
            return False
        trials = _ROUGH_TRIALS if rough else _TRIALS
        found, plain = self.predicted_by_chance(x, trials)
        mean = found.mean(axis=0)
        self._offset = np.nan_to_num(mean - plain)
        # Their mean is uncertain too.
        self._scatter = np.nan_to_num(found - mean) * np.sqrt((1 + 1 / trials) / (trials - 1))
        low, high = self.bounds
        self._chance_at = x.copy()
        for row, k in enumerate(() if rough else self._delays):
            off = []
            for side in (-1.0, 1.0):
                there = x.copy()
                there[k] = np.clip(x[k] + side * self._steps[k], low[k], high[k])
                # The same chance on both sides, so that few replays tell the difference.
                found, plain = self.predicted_by_chance(there, _FEWER_TRIALS)
                off.append((there[k], found.mean(axis=0) - plain))
            (first, before), (last, after) = off
            self._offset_slopes[row] = np.nan_to_num((after - before) / (last - first))
        return True

    def predicted_by_chance(self, x: Floats, trials: int) -> tuple[Floats, Floats]:
        """(trials, segments, rows, numbers) predictions with chance, and one without."""
        assert self._chance is not None
        values = self.whole(x[None])
        plain = self._replayer(values, moved=self._moved).predicted[0]
        found = self._chance(np.repeat(values, trials, axis=0), moved=self._moved)
        return found.predicted[:, :, self._rows], plain[:, self._rows]

    def whiten(self, error: Floats) -> Floats:
        """(n, segments, k) residuals of unit variance where the model is right; 0 if unknown."""
        if self._starts is None:
            raise RuntimeError("prepare first")
        # Seen from the states as measured, of which the noise is known.
        back = np.einsum("cskn,sc->skn", self._starts[: self._moved.shape[1]], self._moved)
        scaled = np.where(self.valid, (error + back) / self.noise, 0.0)
        broken = ~np.isfinite(scaled)
        return self._root(np.where(broken, BROKEN, np.clip(scaled, -BROKEN, BROKEN)))

    def whiten_slopes(self, slopes: Floats) -> Floats:
        """(fitted, segments, k) derivatives of whitened residuals from those of errors."""
        return self._root(np.where(self.valid, slopes / self.noise, 0.0))

    def _root(self, scaled: Floats) -> Floats:
        """(n, segments, k) errors in units of noise, with the noise of the starts taken out."""
        if self._starts is None:
            raise RuntimeError("prepare first")
        count, segments = scaled.shape[:2]
        flat = scaled.reshape(count, segments, -1)
        if self._factor is None:
            starts = np.where(self.valid, self._starts / self.noise, 0.0)
            starts = np.clip(starts, -BROKEN, BROKEN).reshape(len(starts), segments, -1)
            # The covariance is one plus a few directions: its root undoes those directions only.
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

        By one-sided differences, or at twice the price by central ones; all are one batch of
        worlds. A derivative where a world diverged is zero.
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

    def sensor_of(self) -> list[str]:
        """Name of the sensor of each number."""
        return [spec.name for spec in self.logs[0].contract.sensors for _ in range(spec.width)]
