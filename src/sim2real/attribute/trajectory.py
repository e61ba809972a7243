"""Which dimensions of the gap make a twin predict a robot wrongly.

Recordings are replayed in short segments. In each replay some dimensions have values that were
identified, the others those of the twin as it was; all combinations are tried, and Shapley's shares
say what each dimension takes away from the error. Values come from draws of what was identified in
which dimensions may be right (`parsimony`), shares from each draw alone: where the recordings
cannot tell two dimensions apart the draws give the error now to one, now to the other, and both
intervals are wide. A refit with each combination would instead let a dimension that is right stand
in for one that is wrong and is left out, and never give it nothing; refits are kept as evidence
beside the shares (`refits`).

An error is what a whitened residual's robust square is above the one that noise makes. The noise is
what the twin declares, not what the fit left: what the twin cannot explain is no noise. Only where
the identified twin leaves less than the declared noise, that is the floor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from sim2real.attribute.attribution import (
    Attribution,
    Dimensions,
    Refit,
    Share,
    causes_of,
    dimensions_of,
    identified,
    interval_of,
)
from sim2real.attribute.parsimony import plausible
from sim2real.attribute.refits import refits
from sim2real.attribute.shapley import game
from sim2real.attribute.together import told_together
from sim2real.errors import Sim2RealError
from sim2real.gap.log import Log
from sim2real.gap.unknowns import best_guess, open_parameters
from sim2real.identify.problem import Problem
from sim2real.identify.robust import tempered
from sim2real.twin import Twin

HORIZON_S = 0.5
_SURE = 3.0
"""Excess error, in standard deviations of what noise alone would make, to speak of a gap."""
_LEAST_WHOLE = 0.25
"""Share of the gap that a resample must have at least: few stretches may hold all of it."""
_RESAMPLED = 4000
"""Resamples of segments and draws behind an interval."""


def attribute_trajectory(
    before: Twin,
    after: Twin,
    logs: Sequence[Log],
    *,
    horizon_s: float = HORIZON_S,
    draws: int = 32,
    segments: int = 32,
    with_refits: bool = False,
    seed: int = 0,
    threads: int = 0,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> Attribution:
    """Shares [%] of the excess error of `before` on logs, by dimension; see the module.

    `after` is the same twin, identified: its posterior is drawn from `draws` times. At most
    `segments` stretches of `horizon_s` are replayed, spread over the logs. With `with_refits` each
    combination of dimensions is refitted too. A twin that predicts the logs within their noise has
    nothing to attribute: a `Sim2RealError`.
    """
    posterior = identified(before, after)
    fitted = tuple(p.name for p in open_parameters(before) if p.name in posterior.names)
    if not fitted:
        raise Sim2RealError(f"no prediction of twin {before.name!r} depends on what was identified")
    problem = Problem(before, logs, horizon_s, fitted=fitted, threads=threads).part(segments)
    who = dimensions_of(before, fitted)
    base, middle = best_guess(before), best_guess(after)
    squares = Squares(problem, middle)
    inside, weights = game(len(who.names), seed=seed)
    drawn = plausible(before, posterior, who, draws=draws, seed=seed)
    worth = np.empty((len(inside), draws, problem.segments))
    for number, (row, off) in enumerate(zip(drawn.values, drawn.off, strict=True)):
        # Those that are right change nothing when they join.
        rows, place = np.unique(inside & off, axis=0, return_inverse=True)
        worth[:, number] = squares(who.moved(base, row, rows))[place.ravel()]
        report(number + 1, draws)
    readings = int(squares.seen.sum())
    floor = min(1.0, float(worth[-1].mean(axis=0).sum()) / readings)
    worth -= floor * squares.seen
    nobody = worth[0, 0]
    if nobody.sum() < _SURE * math.sqrt(2 * readings):
        raise Sim2RealError(
            f"twin {before.name!r} predicts these recordings within the noise of their readings:"
            " there is no error to attribute"
        )

    def left(x: np.ndarray) -> np.ndarray:
        """(n,) excess error [%] for x (n, fitted)."""
        total: np.ndarray = squares.of(x).sum(axis=1) - floor * readings
        found: np.ndarray = 100 * total / nobody.sum()
        return found

    # Less error is more worth.
    gained = np.tensordot(weights, -worth, axes=1)
    gained[~drawn.off.T] = 0.0  # it is, but for the last digits
    values, resampled = _shares(np.concatenate([gained, worth[-1:]]), nobody, seed)
    low, high = interval_of(resampled)
    open_ = [column for columns in who.columns for column in columns]
    alone = np.repeat(base[None], len(open_), axis=0)
    alone[np.arange(len(open_)), open_] = drawn.ranges[1, open_]
    gone = drawn.moved[open_] * (100 - left(problem.counted(alone)))
    effects = dict(zip(open_, gone.tolist(), strict=True))
    tried = _refits(problem, who, problem.counted(middle), left) if with_refits else {}
    shares = [
        Share(
            name=name,
            value=float(values[k]),
            low=float(low[k]),
            high=float(high[k]),
            causes=causes_of(
                before,
                columns,
                [effects[column] for column in columns],
                ranges=drawn.ranges,
                chances=drawn.moved,
            ),
            refit=tried.get(name),
        )
        for k, (name, columns) in enumerate(zip(who.names, who.columns, strict=True))
    ]
    return Attribution(
        of="trajectory",
        unit="%",
        whole=100.0,
        before=float(nobody.sum() / readings),
        after=max(0.0, float(worth[-1].mean(axis=0).sum() / readings)),
        shares=tuple(sorted(shares, key=lambda share: -share.value)),
        unexplained=Share(
            name="unexplained", value=float(values[-1]), low=float(low[-1]), high=float(high[-1])
        ),
        samples=problem.segments,
        draws=draws,
        together=told_together(
            who.names,
            values[:-1].tolist(),
            lambda group: interval_of(resampled[list(group)].sum(axis=0)),
        ),
    )


class Squares:
    """Robust squares of whitened residuals, segment by segment; noise alone makes one a reading."""

    def __init__(self, problem: Problem, middle: np.ndarray) -> None:
        """Starts are estimated, and noise carried along, at values `middle` (parameters,)."""
        self._problem = problem
        x = problem.counted(middle)
        problem.prepare(x)
        problem.prepare_chance(x)
        problem.prepare(x)
        self.seen: np.ndarray = problem.valid.reshape(problem.segments, -1).sum(axis=1)
        """(segments,) numbers that were measured."""

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """(n, segments) sums for values (n, parameters)."""
        return self.of(self._problem.counted(values))

    def of(self, x: np.ndarray) -> np.ndarray:
        """(n, segments) sums for x (n, fitted) as the problem counts."""
        found: np.ndarray = (tempered(self._problem.residuals(x)) ** 2).sum(axis=2)
        return found


def _shares(found: np.ndarray, nobody: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(parts,) values and (parts, resamples) what else they may be, in %, from found (parts, draws,
    segments) and errors (segments,)."""
    _, draws, segments = found.shape
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(segments, np.full(segments, 1 / segments), size=_RESAMPLED)
    which = np.arange(_RESAMPLED) % draws
    whole = np.maximum(counts @ nobody, _LEAST_WHOLE * nobody.sum())
    parts = np.einsum("pbs,bs->pb", found[:, which], counts) / whole
    return 100 * found.mean(axis=1).sum(axis=1) / nobody.sum(), 100 * parts


def _refits(
    problem: Problem,
    who: Dimensions,
    begin: np.ndarray,
    left: Callable[[np.ndarray], np.ndarray],
) -> dict[str, Refit]:
    """What refits of each combination of dimensions leave [%], by dimension."""
    inside, weights = game(len(who.names))
    names = [parameter.name for parameter in problem.twin.parameters]
    dimension = {column: k for k, columns in enumerate(who.columns) for column in columns}
    of = np.array([dimension[names.index(name)] for name in problem.names])
    errors = left(refits(problem, inside[:, of], begin=begin))
    shares = weights @ -errors
    sizes = inside.sum(axis=1)
    result = {}
    for k, name in enumerate(who.names):
        alone = errors[(sizes == 1) & inside[:, k]]
        without = errors[(sizes == len(who.names) - 1) & ~inside[:, k]]
        result[name] = Refit(
            alone=float(alone[0]) if len(alone) else math.nan,
            without=float(without[0]) if len(without) else math.nan,
            share=float(shares[k]),
        )
    return result
