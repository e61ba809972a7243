"""What parameters cannot explain, learned: a small force a joint, and only where it is worth it.

The weights of the bumps are fitted as parameters are, to residuals of many short segments with the
twin at its best guess, so nothing is differentiated; residuals are nearly linear in them. How hard
they are held to zero, and what they may depend on, is decided by recordings that took no part,
simulated over short and long horizons: each fold has weights and support of its own recordings
only. What does not predict those that were held back clearly better, and all their sensors no
worse, is none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sim2real.arrays import Floats
from sim2real.errors import Sim2RealError
from sim2real.identification.held_back_improvement import Improvement, improvement
from sim2real.identification.remainder_basis import TERMS, blank_remainder, columns, supported_by
from sim2real.identification.remainder_weights import BumpWeights
from sim2real.identification.thresholds import IDENTIFY_THRESHOLDS, IdentifyThresholds
from sim2real.logs import ControlLog
from sim2real.replay import Replayer, best_guess
from sim2real.twin import Remainder, Twin

Choice = tuple[tuple[str, ...], float]

_RIDGES = tuple(10.0**k for k in range(4, -2, -1))
"""How hard weights are held to zero."""
_CHOICES = tuple((tuple(TERMS)[: k + 1], ridge) for k in range(len(TERMS)) for ridge in _RIDGES)
"""What bumps may depend on and how hard they are held, from the simplest on."""
_FOLDS, _FEWEST = 12, 3
"""Groups that recordings are held back in, and recordings below which none can be."""


@dataclass(frozen=True, kw_only=True)
class LearnedRemainder:
    """What came of it; errors are of recordings that each fold did not see."""

    remainder: Remainder | None
    """None where it is not worth it."""
    why: str
    """Why there is none; '' if there is."""
    terms: tuple[str, ...]
    """What it depends on."""
    ridge: float
    ratio: float
    """Error with against without, over all sensors and horizons; below one is better."""
    horizons_s: tuple[float, ...]
    sensors: tuple[str, ...]
    before: Floats
    """(horizons, sensors) root mean square error without it, in the sensor's unit."""
    after: Floats
    """(horizons, sensors) with it."""

    def to_dict(self) -> dict[str, object]:
        """Plain data."""
        return {
            "kept": self.remainder is not None,
            "why": self.why,
            "terms": list(self.terms),
            "ridge": self.ridge,
            "ratio": self.ratio if np.isfinite(self.ratio) else None,
            "horizons": [
                {
                    "horizon_s": horizon_s,
                    "sensors": {
                        name: {"before": float(before), "after": float(after)}
                        for name, before, after in zip(self.sensors, *errors, strict=True)
                        if np.isfinite([before, after]).all()
                    },
                }
                for horizon_s, *errors in zip(self.horizons_s, self.before, self.after, strict=True)
            ],
        }


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

    Of fewer than three recordings nothing is learned, since some must be held back.
    """
    horizons_s, fitted = _horizons(twin, logs, thresholds.horizons_s)
    sensors = tuple(spec.name for spec in logs[0].contract.sensors) if logs else ()
    if len(fitted) < _FEWEST:
        return _too_few(len(fitted), horizons_s[-1], sensors)
    group = np.random.default_rng(seed).permutation(len(fitted)) % min(_FOLDS, len(fitted))
    everyone, folds = np.arange(len(fitted)), range(int(group.max()) + 1)
    steps = 2 * len(folds) + 2
    blank = blank_remainder(twin, fitted, seed=seed, threads=threads)
    seen = [[fitted[k] for k in everyone[group != fold]] for fold in folds]
    supports = [supported_by(blank, twin, some, seed=seed, threads=threads) for some in seen]
    weights = BumpWeights(twin, blank, fitted, horizons_s, threads=threads)
    report(1, steps)

    def judged(choices: Sequence[Choice], done: int) -> Improvement:
        """What recordings say that were held back, one fold after the other."""
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
        # Slopes taken again at what was found, if held-back recordings gain by that too.
        weights.linearise(x, free)
        again = judged([(terms, ridge)], len(folds) + 2)
        if not again.why and again.ratio < found.ratio:
            found, x = again, weights.solved(free, ridge, everyone)
    report(steps, steps)
    return LearnedRemainder(
        remainder=None if found.why else weights.remainder(x),
        why=found.why,
        terms=terms,
        ridge=ridge,
        ratio=found.ratio,
        horizons_s=horizons_s,
        sensors=sensors,
        before=found.before,
        after=found.after,
    )


def _too_few(recordings: int, horizon_s: float, sensors: tuple[str, ...]) -> LearnedRemainder:
    """Nothing learned, for want of recordings to hold back."""
    unknown = np.zeros((0, len(sensors)))
    return LearnedRemainder(
        remainder=None,
        why=f"it needs {_FEWEST} recordings with {horizon_s:g} s without gaps, to hold some back;"
        f" there are {recordings}",
        terms=(),
        ridge=0.0,
        ratio=float("nan"),
        horizons_s=(),
        sensors=sensors,
        before=unknown,
        after=unknown,
    )


def _horizons(
    twin: Twin, logs: Sequence[ControlLog], horizons_s: tuple[float, ...]
) -> tuple[tuple[float, ...], list[ControlLog]]:
    """(horizons that enough logs have room for, those logs)."""
    values = best_guess(twin)[None]
    fitted: list[ControlLog] = []
    for most in range(len(horizons_s), 0, -1):
        fitted = [log for log in logs if _fits(twin, log, horizons_s[most - 1], values)]
        if len(fitted) >= _FEWEST:
            break
    return horizons_s[:most], fitted


def _fits(twin: Twin, log: ControlLog, horizon_s: float, values: Floats) -> bool:
    try:
        Replayer(twin, log, horizon_s=horizon_s, values=values)
    except Sim2RealError:
        return False
    return True
