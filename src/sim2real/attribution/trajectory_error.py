"""Which dimensions of the gap make a twin predict a robot wrongly.

Recordings are replayed in short segments. In each replay some dimensions have values that were
identified, the others those of the twin as it was; all combinations are tried, and Shapley's shares
say what each dimension takes away from the error. Values come from draws of what was identified in
which dimensions may be right (`SparseCauses`), shares from each draw alone: where the recordings
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

from sim2real.arrays import Bools, Floats
from sim2real.attribution.attribution import (
    Attribution,
    Dimensions,
    Refit,
    Share,
    dimensions_of,
    ends_of,
    identified,
    interval_of,
)
from sim2real.attribution.confounded import confounded_dimensions
from sim2real.attribution.refits import refits
from sim2real.attribution.shapley import game
from sim2real.attribution.shares import shares_of
from sim2real.attribution.sparse_causes import SparseCauses, plausible
from sim2real.errors import Sim2RealError
from sim2real.identification import LeastSquares, tempered
from sim2real.logs import ControlLog
from sim2real.replay import best_guess, open_parameters
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
    logs: Sequence[ControlLog],
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
    problem = _problem(before, posterior.names, logs, horizon_s, threads).part(segments)
    who = dimensions_of(before, problem.names)
    base, middle = best_guess(before), best_guess(after)
    squares = Squares(problem, middle)
    inside, weights = game(len(who.names), seed=seed)
    drawn = plausible(before, posterior, who, draws=draws, seed=seed)
    excess = _Excess(squares, _errors(squares, who, base, drawn, inside, report))
    if not excess.clear:
        raise Sim2RealError(
            f"twin {before.name!r} predicts these recordings within the noise of their readings:"
            " there is no error to attribute"
        )
    # Less error is more worth.
    gained = np.tensordot(weights, -excess.errors, axes=1)
    gained[~drawn.off.T] = 0.0  # it is, but for the last digits
    values, resampled = resampled_shares(
        np.concatenate([gained, excess.errors[-1:]]), excess.nobody, seed
    )
    low, high = interval_of(resampled)
    return Attribution(
        of="trajectory",
        unit="%",
        whole=100.0,
        before=float(excess.nobody.sum() / excess.readings),
        after=max(0.0, float(excess.errors[-1].mean(axis=0).sum() / excess.readings)),
        shares=shares_of(
            before, who, drawn, values, (low, high),
            effects=_effects(problem, who, base, drawn, excess),
            refits=_refits(problem, who, problem.counted(middle), excess) if with_refits else {},
        ),
        unexplained=Share(
            name="unexplained", value=float(values[-1]), low=float(low[-1]), high=float(high[-1])
        ),
        samples=problem.segments,
        draws=draws,
        together=confounded_dimensions(
            who.names,
            values[:-1].tolist(),
            lambda group: ends_of(resampled[list(group)].sum(axis=0)),
        ),
    )  # fmt: skip


def _problem(
    twin: Twin, names: Sequence[str], logs: Sequence[ControlLog], horizon_s: float, threads: int
) -> LeastSquares:
    """The logs with those of the named parameters that predictions depend on."""
    fitted = tuple(p.name for p in open_parameters(twin) if p.name in names)
    if not fitted:
        raise Sim2RealError(f"no prediction of twin {twin.name!r} depends on what was identified")
    return LeastSquares(twin, logs, horizon_s, fitted=fitted, threads=threads)


def _errors(
    squares: Squares,
    who: Dimensions,
    base: Floats,
    drawn: SparseCauses,
    inside: Bools,
    report: Callable[[int, int], None],
) -> Floats:
    """(coalitions, draws, segments) errors where the dimensions `inside` have drawn values."""
    found = []
    for number, (row, off) in enumerate(zip(drawn.values, drawn.off, strict=True)):
        # Those that are right change nothing when they join.
        rows, place = np.unique(inside & off, axis=0, return_inverse=True)
        found.append(squares(who.moved(base, row, rows))[place.ravel()])
        report(number + 1, len(drawn.values))
    return np.stack(found, axis=1)


def _effects(
    problem: LeastSquares,
    who: Dimensions,
    base: Floats,
    drawn: SparseCauses,
    excess: _Excess,
) -> dict[int, float]:
    """By column, the error [%] that goes if a parameter alone is what it is where it is off."""
    columns = [column for mine in who.columns for column in mine]
    alone = np.repeat(base[None], len(columns), axis=0)
    alone[np.arange(len(columns)), columns] = drawn.ranges[1, columns]
    gone = drawn.moved[columns] * (100 - excess.left(problem.counted(alone)))
    return dict(zip(columns, gone.tolist(), strict=True))


class Squares:
    """Robust squares of whitened residuals, segment by segment; noise alone makes one a reading."""

    def __init__(self, problem: LeastSquares, middle: Floats) -> None:
        """Starts are estimated, and noise carried along, at values `middle` (parameters,)."""
        self._problem = problem
        x = problem.counted(middle)
        problem.prepare(x)
        problem.prepare_chance(x)
        problem.prepare(x)
        self.seen: Floats = problem.valid.reshape(problem.segments, -1).sum(axis=1)
        """(segments,) numbers that were measured."""

    def __call__(self, values: Floats) -> Floats:
        """(n, segments) sums for values (n, parameters)."""
        return self.of(self._problem.counted(values))

    def of(self, x: Floats) -> Floats:
        """(n, segments) sums for x (n, fitted) as the problem counts."""
        return np.asarray((tempered(self._problem.residuals(x)) ** 2).sum(axis=2))


class _Excess:
    """Errors beyond what noise makes of them, of every combination of dimensions."""

    def __init__(self, squares: Squares, errors: Floats) -> None:
        """From `errors` (coalitions, draws, segments) with their noise; the first are of nobody,
        the last of all."""
        self._squares = squares
        self.readings = int(squares.seen.sum())
        self._floor = min(1.0, float(errors[-1].mean(axis=0).sum()) / self.readings)
        self.errors: Floats = errors - self._floor * squares.seen
        """(coalitions, draws, segments)."""
        self.nobody: Floats = self.errors[0, 0]
        """(segments,) of the twin as it was."""

    @property
    def clear(self) -> bool:
        """Whether there is any that noise alone would not make."""
        return bool(self.nobody.sum() >= _SURE * math.sqrt(2 * self.readings))

    def left(self, x: Floats) -> Floats:
        """(n,) what is left of it [%] for x (n, fitted)."""
        total: Floats = self._squares.of(x).sum(axis=1) - self._floor * self.readings
        return np.asarray(100 * total / self.nobody.sum())


def resampled_shares(found: Floats, nobody: Floats, seed: int) -> tuple[Floats, Floats]:
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
    problem: LeastSquares,
    who: Dimensions,
    begin: Floats,
    excess: _Excess,
) -> dict[str, Refit]:
    """What refits of each combination of dimensions leave [%], by dimension."""
    inside, weights = game(len(who.names))
    names = [parameter.name for parameter in problem.twin.parameters]
    dimension = {column: k for k, columns in enumerate(who.columns) for column in columns}
    of = np.array([dimension[names.index(name)] for name in problem.names])
    errors = excess.left(refits(problem, inside[:, of], begin=begin))
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
