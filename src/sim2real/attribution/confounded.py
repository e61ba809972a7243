"""Dimensions that recordings cannot separate: a heavier pole looks like a weaker motor.

Each of them may have nearly all of their joint share or nearly none, but the sum is known, so the
sum is reported; only other measurements can separate them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

_MAX_RELATIVE_WIDTH = 0.5
"""Largest width of a sum's interval in a group, relative to that of its widest part."""
_MAX_KNOWN_WIDTH = 5.0
"""Width of an interval up to which a share is known [% of the error, or points of success]."""

Group = tuple[int, ...]
"""Indices of some dimensions."""


@dataclass(frozen=True, kw_only=True)
class ConfoundedDimensions:
    """The joint share of some dimensions, in the attribution's unit, with its 95 % interval."""

    names: tuple[str, ...]
    """The largest first."""
    value: float
    low: float
    high: float

    @property
    def title(self) -> str:
        """Their names as a list in words."""
        return " and ".join([", ".join(self.names[:-1]), self.names[-1]])


def confounded_dimensions(
    names: Sequence[str],
    values: Sequence[float],
    interval: Callable[[Group], tuple[float, float]],
) -> tuple[ConfoundedDimensions, ...]:
    """The smallest groups of dimensions whose sum is known far better than its parts.

    `values` (dimensions,) are their shares; `interval` gives the interval of the sum of some. No
    member of a group is known to within its own size, but the sum is, and excludes zero.
    """

    def width(group: Group) -> float:
        low, high = interval(group)
        return high - low

    def total(group: Group) -> float:
        return float(sum(values[k] for k in group))

    widths = {k: width((k,)) for k in range(len(names))}
    unknown = [k for k in widths if widths[k] > max(_MAX_KNOWN_WIDTH, abs(values[k]))]
    found: list[Group] = []
    for size in range(2, len(unknown) + 1):
        ratios = {
            group: width(group) / max(widths[k] for k in group)
            for group in combinations(unknown, size)
            if width(group) <= abs(total(group)) and math.prod(interval(group)) > 0
        }
        for group in sorted(ratios, key=lambda group: ratios[group]):
            taken = {k for other in found for k in other}
            if ratios[group] <= _MAX_RELATIVE_WIDTH and not taken.intersection(group):
                found.append(group)
    groups = []
    for group in sorted(found, key=lambda group: -total(group)):
        low, high = interval(group)
        ordered = sorted(group, key=lambda k: -values[k])
        groups.append(
            ConfoundedDimensions(
                names=tuple(names[k] for k in ordered), value=total(group), low=low, high=high
            )
        )
    return tuple(groups)
