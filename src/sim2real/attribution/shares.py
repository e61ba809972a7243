"""Shares of dimensions, with the parameters that cause them."""

from __future__ import annotations

from collections.abc import Mapping

from sim2real.arrays import Floats
from sim2real.attribution.attribution import Cause, Dimensions, Refit, Share
from sim2real.attribution.sparse_causes import SparseCauses
from sim2real.twin import Twin

EQUAL_DIGITS = 9
"""Digits to which shares that differ by rounding alone are equal, so that machines agree."""


def shares_of(
    before: Twin,
    who: Dimensions,
    drawn: SparseCauses,
    values: Floats,
    ends: tuple[Floats, Floats],
    *,
    effects: Mapping[int, float],
    refits: Mapping[str, Refit] | None = None,
) -> tuple[Share, ...]:
    """A share for each dimension, the largest first.

    `values` and `ends` (dimensions or more,) are shares and their intervals, `drawn` the values of
    parameters that are off, and `effects` those of some parameters, by column.
    """
    guess = before.best_guess()

    def cause(column: int) -> Cause:
        low, middle, high = drawn.ranges[:, column].tolist()
        parameter = before.parameters[column]
        return Cause(
            name=parameter.name,
            unit=parameter.unit,
            before=float(guess[column]),
            after=middle,
            low=low,
            high=high,
            chance=float(drawn.moved[column]),
            effect=effects.get(column),
        )

    def by_effect(column: int) -> tuple[float, float]:
        away = abs(drawn.ranges[1, column] - guess[column]) / before.parameters[column].prior_std
        return -abs(effects.get(column, 0.0)), -float(drawn.moved[column] * away)

    found = [
        Share(
            name=name,
            value=float(values[k]),
            low=float(ends[0][k]),
            high=float(ends[1][k]),
            causes=tuple(cause(column) for column in sorted(columns, key=by_effect)),
            refit=(refits or {}).get(name),
        )
        for k, (name, columns) in enumerate(zip(who.names, who.columns, strict=True))
    ]
    return tuple(sorted(found, key=lambda share: -round(share.value, EQUAL_DIGITS)))
