"""Dimensions that recordings tell only together: a heavier pole is a weaker motor.

Each of them then has a share that may be nearly all or nearly nothing, while their sum is known.
The sum is what can be said, and that something else than these recordings has to tell the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

_NARROWER = 0.5
"""Width of the interval of a sum, against the widest of its parts, from which they go together."""
_WIDE = 5.0
"""Width [% of the error, or points of success] below which a share is known well enough."""


@dataclass(frozen=True, kw_only=True)
class Together:
    """What some dimensions make together, in the attribution's unit, with its 95 % interval."""

    names: tuple[str, ...]
    value: float
    low: float
    high: float


def told_together(
    names: Sequence[str], values: np.ndarray, resampled: np.ndarray, confidence: float
) -> tuple[Together, ...]:
    """Groups of dimensions whose sum is known far better than its parts, none of which is known to
    within its own size.

    `values` (dimensions,) are their shares, `resampled` (dimensions, n) what else they may be.
    """
    edges = 50 * (1 - confidence), 50 * (1 + confidence)
    groups: list[tuple[int, ...]] = [(k,) for k in range(len(names))]

    def interval(group: tuple[int, ...]) -> tuple[float, float]:
        low, high = np.percentile(resampled[list(group)].sum(axis=0), edges)
        return float(low), float(high)

    def width(group: tuple[int, ...]) -> float:
        low, high = interval(group)
        return high - low

    def unknown(group: tuple[int, ...]) -> bool:
        return width(group) > max(_WIDE, abs(float(values[list(group)].sum())))

    while pairs := [
        (width(one + other) / max(width(one), width(other)), one, other)
        for one, other in combinations(filter(unknown, groups), 2)
    ]:
        narrower, one, other = min(pairs)
        if narrower > _NARROWER:
            break
        groups = [group for group in groups if group not in (one, other)] + [one + other]
    found = []
    for group in groups:
        if len(group) > 1:
            ordered = sorted(group, key=lambda k: -values[k])
            low, high = interval(group)
            found.append(
                Together(
                    names=tuple(names[k] for k in ordered),
                    value=float(values[list(group)].sum()),
                    low=low,
                    high=high,
                )
            )
    return tuple(sorted(found, key=lambda group: -group.value))
