"""Which dimensions of the gap cause a twin's prediction error.

Recordings are replayed in short segments. In each replay some dimensions have identified values and
the others those of the old twin, in all combinations; Shapley values say how much error each
dimension removes. The identified values are draws in which dimensions may be right
(`sparse_causes`), and each draw gives its own shares: where the recordings cannot separate two
dimensions, some draws blame one and some the other, and both intervals are wide. A refit of each
combination would instead let a dimension that is right stand in for one that is wrong and held
fixed; refits are reported as evidence beside the shares (`refits`).

An error is the robust square of a whitened residual beyond the one that noise causes. The noise is
what the twin declares, not what the fit left: an effect that the twin cannot explain is not noise.
Where the identified twin leaves less than the declared noise, that is the floor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from sim2real.arrays import Bools, Floats
from sim2real.attribution.attribution import (
    Attribution,
    Dimensions,
    PartOfGap,
    Refit,
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
from sim2real.identification import tempered
from sim2real.logs import ControlLog
from sim2real.replay import LeastSquares, open_parameters
from sim2real.twin import Twin

_MIN_SIGNIFICANT_EXCESS = 3.0
"""Least excess error for a gap, in standard deviations of what noise alone would cause."""
_MIN_RESAMPLED_GAP = 0.25
"""Least share of the gap in a resample; a few segments may contain all of it."""
_RESAMPLES = 4000
"""Resamples of segments and draws for an interval."""


def attribute_trajectory(
    before: Twin,
    after: Twin,
    logs: Sequence[ControlLog],
    *,
    horizon_s: float = 0.5,
    draws: int = 32,
    segments: int = 32,
    with_refits: bool = False,
    seed: int = 0,
    threads: int = 0,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> Attribution:
    """Shares [%] of the excess error of `before` on logs, by dimension; see the module.

    `after` is the same twin, identified; `draws` values are drawn from its posterior. At most
    `segments` segments of `horizon_s` are replayed, spread over the logs. With `with_refits` each
    combination of dimensions is refitted too. A twin that predicts the logs within their noise has
    no error to attribute: a `Sim2RealError`.
    """
    posterior = identified(before, after)
    fitted = tuple(p.name for p in open_parameters(before) if p.name in posterior.names)
    if not fitted:
        raise Sim2RealError(
            f"no prediction of twin {before.name!r} depends on the identified parameters"
        )
    problem = LeastSquares(before, logs, horizon_s, fitted=fitted, threads=threads).part(segments)
    who = dimensions_of(before, problem.names)
    base, middle = before.best_guess(), after.best_guess()
    x = problem.counted(middle)
    problem = problem.prepared(x).with_randomness(x).prepared(x)
    inside, weights = game(len(who.names), seed=seed)
    drawn = plausible(before, posterior, who, draws=draws, seed=seed)
    excess = _Excess(problem, _errors(problem, who, base, drawn, inside, report))
    if not excess.clear:
        raise Sim2RealError(
            f"twin {before.name!r} predicts these recordings to within sensor noise: there is no"
            " error to attribute"
        )
    # A coalition is worth more the less error it leaves.
    gained = np.tensordot(weights, -excess.errors, axes=1)
    gained[~drawn.off.T] = 0.0  # up to rounding it already is
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
            refits=_refits(problem, who, x, excess) if with_refits else {},
        ),
        unexplained=PartOfGap(
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


def _errors(
    problem: LeastSquares,
    who: Dimensions,
    base: Floats,
    drawn: SparseCauses,
    inside: Bools,
    report: Callable[[int, int], None],
) -> Floats:
    """(coalitions, draws, segments) errors where the dimensions `inside` have drawn values."""
    found = []
    for number, (row, off) in enumerate(zip(drawn.values, drawn.off, strict=True)):
        # A dimension that is right changes nothing when it joins.
        rows, place = np.unique(inside & off, axis=0, return_inverse=True)
        x = problem.counted(who.moved(base, row, rows))
        found.append(_squares(problem, x)[place.ravel()])
        report(number + 1, len(drawn.values))
    return np.stack(found, axis=1)


def _effects(
    problem: LeastSquares,
    who: Dimensions,
    base: Floats,
    drawn: SparseCauses,
    excess: _Excess,
) -> dict[int, float]:
    """Error [%] that each parameter removes alone, times the probability that it is off."""
    columns = [column for mine in who.columns for column in mine]
    alone = np.repeat(base[None], len(columns), axis=0)
    alone[np.arange(len(columns)), columns] = drawn.ranges[1, columns]
    gone = drawn.moved[columns] * (100 - excess.left(problem.counted(alone)))
    return dict(zip(columns, gone.tolist(), strict=True))


def _squares(problem: LeastSquares, x: Floats) -> Floats:
    """(n, segments) robust squares of residuals at x (n, fitted); noise makes about 1 a reading."""
    return np.asarray((tempered(problem.residuals(x)) ** 2).sum(axis=2))


class _Excess:
    """Errors beyond noise, of every combination of dimensions."""

    def __init__(self, problem: LeastSquares, errors: Floats) -> None:
        """From `errors` (coalitions, draws, segments), noise included; the first coalition is
        empty, the last complete."""
        self._problem = problem
        seen = problem.valid.reshape(problem.segments, -1).sum(axis=1)
        self.readings = int(seen.sum())
        self._floor = min(1.0, float(errors[-1].mean(axis=0).sum()) / self.readings)
        self.errors: Floats = errors - self._floor * seen
        """(coalitions, draws, segments)."""
        self.nobody: Floats = self.errors[0, 0]
        """(segments,) of the old twin."""

    @property
    def clear(self) -> bool:
        """Whether there is more than noise alone would cause."""
        return bool(self.nobody.sum() >= _MIN_SIGNIFICANT_EXCESS * math.sqrt(2 * self.readings))

    def left(self, x: Floats) -> Floats:
        """(n,) share of the old twin's excess error that is left [%] at x (n, fitted)."""
        total: Floats = _squares(self._problem, x).sum(axis=1) - self._floor * self.readings
        return np.asarray(100 * total / self.nobody.sum())


def resampled_shares(found: Floats, nobody: Floats, seed: int) -> tuple[Floats, Floats]:
    """(parts,) values and (parts, resamples) resampled ones, in %, from `found` (parts, draws,
    segments) and the old twin's errors (segments,)."""
    _, draws, segments = found.shape
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(segments, np.full(segments, 1 / segments), size=_RESAMPLES)
    which = np.arange(_RESAMPLES) % draws
    whole = np.maximum(counts @ nobody, _MIN_RESAMPLED_GAP * nobody.sum())
    parts = np.einsum("pbs,bs->pb", found[:, which], counts) / whole
    return 100 * found.mean(axis=1).sum(axis=1) / nobody.sum(), 100 * parts


def _refits(
    problem: LeastSquares,
    who: Dimensions,
    begin: Floats,
    excess: _Excess,
) -> dict[str, Refit]:
    """Error left by refits of each combination of dimensions [%], by dimension."""
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
