"""What parameters cannot explain, learned: a small force a joint, and only where it is worth it.

The weights of the bumps are fitted as parameters are, to residuals of many short segments with the
twin at its best guess, so nothing is differentiated; residuals are nearly linear in them. How hard
they are held to zero, and what they may depend on, is decided by recordings that took no part,
simulated: each fold lays bumps, support and weights over its own recordings only. A remainder that
does not predict those that were held back clearly better is none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sim2real.errors import Sim2RealError
from sim2real.gap.log import Log
from sim2real.gap.replay import Replayer
from sim2real.gap.sensitivity import best_guess
from sim2real.identify.bumps import TERMS, blank_remainder, columns, weight_scales
from sim2real.identify.problem import Problem
from sim2real.identify.robust import ROBUST, tempered
from sim2real.params import Normal, Parameter, dimension_of
from sim2real.twin import Remainder, Twin

HORIZONS_S = (2.0, 0.5)
"""Lengths of segments; the first that the logs have room for."""
_RIDGES = tuple(10.0 ** (k / 2) for k in range(-6, 10))
"""How hard weights are held to zero."""
_CHOICES = tuple((tuple(TERMS)[: k + 1], ridge) for k in range(len(TERMS)) for ridge in _RIDGES)
_FOLDS, _FEWEST = 4, 3
"""Groups that recordings are held back in, and recordings below which none can be."""
_WORTH = 0.97
"""Held-back error, against that without, above which a remainder is not kept."""
_STEP = 0.1
"""Finite difference, in scales of a weight."""
_PASSES = 6
"""Reweightings of a robust, linear fit."""
_ROUNDS = 3
"""Linearisations of the last fit."""


@dataclass(frozen=True, kw_only=True)
class Learned:
    """What came of it; errors are of recordings that each fold did not see."""

    remainder: Remainder | None
    """None where it is not worth it."""
    why: str
    """Why there is none; '' if there is."""
    terms: tuple[str, ...]
    """What it depends on."""
    ridge: float
    horizon_s: float
    sensors: tuple[str, ...]
    before: np.ndarray
    """(sensors,) root mean square error without it, in the sensor's unit."""
    after: np.ndarray
    """(sensors,) with it."""

    @property
    def ratio(self) -> float:
        """Error with against without, over all sensors; below one is better."""
        return _ratio(self.before, self.after)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "kept": self.remainder is not None,
            "why": self.why,
            "terms": list(self.terms),
            "ridge": self.ridge,
            "horizon_s": self.horizon_s,
            "ratio": self.ratio if np.isfinite(self.ratio) else None,
            "sensors": {
                name: {"before": float(before), "after": float(after)}
                for name, before, after in zip(self.sensors, self.before, self.after, strict=True)
            },
        }


def learn_remainder(
    twin: Twin,
    logs: Sequence[Log],
    *,
    seed: int = 0,
    threads: int = 0,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> Learned:
    """Learn what the twin, at its best guess, leaves unexplained in logs of its robot.

    Of fewer than three recordings nothing is learned, since some must be held back.
    """
    horizon_s, fitted = _horizon(twin, logs)
    if len(fitted) < _FEWEST:
        why = (
            f"it needs {_FEWEST} recordings with {horizon_s:g} s without gaps, to hold some back;"
            f" there are {len(fitted)}"
        )
        unknown = np.zeros(0)
        return Learned(
            remainder=None, why=why, terms=(), ridge=0.0, horizon_s=horizon_s, sensors=(),
            before=unknown, after=unknown,
        )  # fmt: skip
    group = np.random.default_rng(seed).permutation(len(fitted)) % min(_FOLDS, len(fitted))
    rounds = int(group.max()) + 1
    noise = _noise(twin, fitted, horizon_s, threads)
    sums, counts = np.zeros(()), np.zeros(())
    for fold in range(rounds):
        train = [log for log, mine in zip(fitted, group, strict=True) if mine != fold]
        test = [log for log, mine in zip(fitted, group, strict=True) if mine == fold]
        blank = blank_remainder(twin, train, seed=seed, threads=threads)
        problem = _Linear(twin, blank, train, horizon_s, noise, threads)
        tried = [problem.solved(columns(blank, terms), ridge) for terms, ridge in _CHOICES]
        found, seen = problem.squares(np.stack([np.zeros(problem.size), *tried]), test)
        sums, counts = sums + found, counts + seen
        report(fold + 1, rounds + 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        errors = np.sqrt(sums / counts)
    ratios = [_ratio(errors[0], after) for after in errors[1:]]
    best = int(np.nanargmin(ratios)) if np.isfinite(ratios).any() else 0
    terms, ridge = _CHOICES[best]
    learned = Learned(
        remainder=None,
        why="",
        terms=terms,
        ridge=ridge,
        horizon_s=horizon_s,
        sensors=tuple(spec.name for spec in fitted[0].contract.sensors),
        before=errors[0],
        after=errors[1 + best],
    )
    if not learned.ratio <= _WORTH:
        why = (
            f"recordings that were held back are predicted {learned.ratio:.2f} times as far off"
            f" with it, which is not below {_WORTH:g}: what is left is no force that these"
            " recordings tell alike"
        )
        return replace(learned, why=why)
    blank = blank_remainder(twin, fitted, seed=seed, threads=threads)
    whole = _Linear(twin, blank, fitted, horizon_s, noise, threads)
    weights = whole.refined(columns(blank, terms), ridge)
    report(rounds + 1, rounds + 1)
    return replace(learned, remainder=whole.remainder(weights))


class _Linear:
    """Whitened residuals of logs, linear in the weights of a remainder's bumps."""

    def __init__(
        self,
        twin: Twin,
        blank: Remainder,
        logs: Sequence[Log],
        horizon_s: float,
        noise: np.ndarray,
        threads: int,
    ) -> None:
        self._blank, self._horizon_s, self._threads = blank, horizon_s, threads
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
        self._problem = Problem(self._twin, logs, horizon_s, fitted=tuple(names), threads=threads)
        self._problem.noise[:] = noise
        self._problem.prepare(np.zeros(self.size))
        self._residual, self._slopes = self._at(np.zeros(self.size))

    def solved(self, free: np.ndarray, ridge: float) -> np.ndarray:
        """(bumps,) weights of the bumps `free` that fit best, in their scales; others are zero."""
        x = np.zeros(self.size)
        slopes = self._slopes[free]
        for _ in range(_PASSES):
            left = np.abs(self._residual + x @ self._slopes)
            weight = ROBUST / np.maximum(left, ROBUST)
            normal = (slopes * weight) @ slopes.T + ridge * np.eye(len(free))
            x[free] = -np.linalg.solve(normal, slopes @ (weight * self._residual))
        return x

    def refined(self, free: np.ndarray, ridge: float) -> np.ndarray:
        """The same with slopes taken again at what was found, as long as that is better."""
        x, best = np.zeros(self.size), np.inf
        for _ in range(_ROUNDS):
            tried = self.solved(free, ridge)
            residual, slopes = self._at(tried)
            cost = float((tempered(residual) ** 2).sum()) + ridge * float(tried @ tried)
            if cost >= best:
                break
            x, best = tried, cost
            self._residual, self._slopes = residual - tried @ slopes, slopes
        return x

    def squares(self, points: np.ndarray, logs: Sequence[Log]) -> tuple[np.ndarray, np.ndarray]:
        """((n, sensors) sums of squared errors of logs with weights (n, bumps); their numbers).

        Simulated, and from states as measured.
        """
        rows = np.repeat(best_guess(self._twin)[None], len(points), axis=0)
        rows[:, -self.size :] = points * self._scales
        replay = Replayer(
            self._twin, Log.join(logs), horizon_s=self._horizon_s, values=rows,
            threads=self._threads,
        )(rows)  # fmt: skip
        sums, counts = [], []
        for spec in logs[0].contract.sensors:
            part = replay.column(spec.name)
            error = replay.errors[..., part][:, replay.valid[..., part]]
            sums.append((np.nan_to_num(error, nan=np.inf) ** 2).sum(axis=1))
            counts.append(error.shape[1])
        return np.array(sums).T, np.array(counts)

    def remainder(self, x: np.ndarray) -> Remainder:
        """The remainder with weights x (bumps,)."""
        weights = (x * self._scales).reshape(len(self._blank.joints), -1)
        return Remainder(
            joints=tuple(
                replace(joint, weights=tuple(mine.tolist()))
                for joint, mine in zip(self._blank.joints, weights, strict=True)
            )
        )

    def _at(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Residuals (k,) at x, and slopes (bumps, k)."""
        points = np.concatenate([x[None], x + _STEP * np.eye(self.size)])
        white = self._problem.residuals(points).reshape(len(points), -1)
        return white[0], (white[1:] - white[0]) / _STEP


def _ratio(before: np.ndarray, after: np.ndarray) -> float:
    """Error after against before, over all sensors that have any."""
    known = np.isfinite(before) & (before > 0)
    if not known.any():
        return float("nan")
    return float(np.sqrt(np.mean((after[known] / before[known]) ** 2)))


def _horizon(twin: Twin, logs: Sequence[Log]) -> tuple[float, list[Log]]:
    """The longest horizon that enough logs have room for, and those logs."""
    values = best_guess(twin)[None]
    fitted: list[Log] = []
    for horizon_s in HORIZONS_S:
        fitted = []
        for log in logs:
            try:
                Replayer(twin, log, horizon_s=horizon_s, values=values)
            except Sim2RealError:
                continue
            fitted.append(log)
        if len(fitted) >= _FEWEST:
            break
    return horizon_s, fitted


def _noise(twin: Twin, logs: Sequence[Log], horizon_s: float, threads: int) -> np.ndarray:
    """(numbers,) how far the twin's predictions are off: what a remainder can do about."""
    problem = Problem(twin, logs, horizon_s, threads=threads)
    x = np.zeros(len(problem.names))
    names = problem.sensor_of()
    for _ in range(3):
        problem.prepare(x)
        white = problem.residuals(x[None])[0].reshape(problem.valid.shape)
        for sensor in set(names):
            mine = [k for k, name in enumerate(names) if name == sensor]
            seen = np.abs(white[..., mine][problem.valid[..., mine]])
            if seen.size:
                problem.noise[mine] *= np.clip(float(np.median(seen)) / 0.6745, 0.2, 50.0)
    return problem.noise.copy()
