"""The remainder: a small learned force per joint for what no parameter explains.

The weights of its Gaussian bumps are fitted like parameters, to residuals of many short segments
with the twin at its best guess; the simulator is not differentiated, and residuals are nearly
linear in the weights. Held-back recordings, simulated over short and long horizons, decide how
strongly the weights are regularised and what the bumps may depend on: in cross-validation each fold
gets weights and support from its own recordings only. A remainder that does not predict held-back
recordings clearly better, and every sensor no worse, is dropped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from sim2real.arrays import Floats
from sim2real.errors import Sim2RealError
from sim2real.identification.held_back_improvement import Improvement, improvement
from sim2real.identification.identification import LearnedRemainder
from sim2real.identification.remainder_basis import TERMS, blank_remainder, columns, supported_by
from sim2real.identification.remainder_weights import BumpWeights
from sim2real.identification.thresholds import IDENTIFY_THRESHOLDS, IdentifyThresholds
from sim2real.logs import ControlLog
from sim2real.replay import Replayer
from sim2real.twin import Twin

Choice = tuple[tuple[str, ...], float]

_RIDGES = tuple(10.0**k for k in range(4, -2, -1))
"""Regularisation strengths to try, the strongest first."""
_CHOICES = tuple((tuple(TERMS)[: k + 1], ridge) for k in range(len(TERMS)) for ridge in _RIDGES)
"""Terms and regularisations to try, the simplest first."""
_MAX_FOLDS, _MIN_RECORDINGS = 12, 3
"""Most folds of the cross-validation, and fewest recordings for it."""


def learn_remainder(
    twin: Twin,
    logs: Sequence[ControlLog],
    *,
    thresholds: IdentifyThresholds = IDENTIFY_THRESHOLDS,
    seed: int = 0,
    threads: int = 0,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> LearnedRemainder:
    """Learn what the twin, at its best guess, leaves unexplained in logs of its robot.

    This takes at least three recordings, since some must be held back.
    """
    horizons_s, fitted = _horizons(twin, logs, thresholds.horizons_s)
    sensors = tuple(spec.name for spec in logs[0].contract.sensors) if logs else ()
    if len(fitted) < _MIN_RECORDINGS:
        return _too_few(len(fitted), horizons_s[-1], sensors)
    group = np.random.default_rng(seed).permutation(len(fitted)) % min(_MAX_FOLDS, len(fitted))
    everyone, folds = np.arange(len(fitted)), range(int(group.max()) + 1)
    steps = 2 * len(folds) + 2
    blank = blank_remainder(twin, fitted, seed=seed, threads=threads)
    seen = [[fitted[k] for k in everyone[group != fold]] for fold in folds]
    supports = [supported_by(blank, twin, some, seed=seed, threads=threads) for some in seen]
    weights = BumpWeights(twin, blank, fitted, horizons_s, threads=threads)
    report(1, steps)

    def judged(choices: Sequence[Choice], done: int) -> Improvement:
        """The verdict of cross-validation on some choices."""
        shape = (1 + len(choices), len(fitted), len(horizons_s), len(sensors))
        squares = np.full(shape, np.nan)
        for fold, support in zip(folds, supports, strict=True):
            others, mine = everyone[group != fold], everyone[group == fold]
            tried = [weights.solved(columns(blank, t), ridge, others) for t, ridge in choices]
            points = np.stack([np.zeros(weights.size), *tried])
            squares[:, mine] = weights.squares(points, mine, support)
            report(done + fold + 1, steps)
        return improvement(squares, horizons_s, sensors, thresholds)

    found = judged(_CHOICES, 1)
    terms, ridge = _CHOICES[found.choice]
    free = columns(blank, terms)
    x = weights.solved(free, ridge, everyone)
    if not found.why:
        # Take the slopes again at the result, if that helps held-back recordings, too.
        weights.linearise(x, free)
        again = judged([(terms, ridge)], len(folds) + 2)
        if not again.why and again.ratio < found.ratio:
            found, x = again, weights.solved(free, ridge, everyone)
    report(steps, steps)
    return LearnedRemainder(
        **vars(found),
        remainder=None if found.why else weights.remainder(x),
        terms=terms,
        ridge=ridge,
        horizons_s=horizons_s,
        sensors=sensors,
    )


def _too_few(recordings: int, horizon_s: float, sensors: tuple[str, ...]) -> LearnedRemainder:
    """No remainder, because there are too few recordings to hold some back."""
    why = (
        f"it needs {_MIN_RECORDINGS} recordings with {horizon_s:g} s without gaps, to hold some"
        f" back; there are {recordings}"
    )
    unknown = np.zeros((0, len(sensors)))
    return LearnedRemainder(
        choice=0, ratio=math.nan, why=why, before=unknown, after=unknown,
        remainder=None, terms=(), ridge=0.0, horizons_s=(), sensors=sensors,
    )  # fmt: skip


def _horizons(
    twin: Twin, logs: Sequence[ControlLog], horizons_s: tuple[float, ...]
) -> tuple[tuple[float, ...], list[ControlLog]]:
    """(horizons that are short enough for enough logs, those logs)."""
    values = twin.best_guess()[None]
    fitted: list[ControlLog] = []
    for most in range(len(horizons_s), 0, -1):
        fitted = [log for log in logs if _fits(twin, log, horizons_s[most - 1], values)]
        if len(fitted) >= _MIN_RECORDINGS:
            break
    return horizons_s[:most], fitted


def _fits(twin: Twin, log: ControlLog, horizon_s: float, values: Floats) -> bool:
    try:
        Replayer(twin, log, horizon_s=horizon_s, values=values)
    except Sim2RealError:
        return False
    return True
