"""Dimensions that recordings tell only together: a heavier pole is a weaker motor.

Each of them then has a share that may be nearly all or nearly nothing, while their sum is known.
The sum is what can be said, and that something else than these recordings has to tell the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

_NARROWER = 0.5
"""Width of the interval of a sum, against the widest of its parts, from which they go together."""
_WIDE = 5.0
"""Width [% of the error, or points of success] below which a share is known well enough."""

Group = tuple[int, ...]
"""Places of some dimensions."""


@dataclass(frozen=True, kw_only=True)
class ConfoundedDimensions:
    """What some dimensions make together, in the attribution's unit, with its 95 % interval."""

    names: tuple[str, ...]
    """The largest first."""
    value: float
    low: float
    high: float

    @property
    def title(self) -> str:
        """Their names in a row."""
        return " and ".join([", ".join(self.names[:-1]), self.names[-1]])


def confounded_dimensions(
    names: Sequence[str],
    values: Sequence[float],
    interval: Callable[[Group], tuple[float, float]],
) -> tuple[ConfoundedDimensions, ...]:
    """Groups of dimensions, as small as can be, whose sum is known far better than its parts.

    `values` (dimensions,) are their shares, and `interval` gives that of the sum of some. None of
    a group is known to within its own size, and their sum is, and is not zero.
    """

    def width(group: Group) -> float:
        low, high = interval(group)
        return high - low

    def total(group: Group) -> float:
        return float(sum(values[k] for k in group))

    widths = {k: width((k,)) for k in range(len(names))}
    unknown = [k for k in widths if widths[k] > max(_WIDE, abs(values[k]))]
    found: list[Group] = []
    for size in range(2, len(unknown) + 1):
        ratios = {
            group: width(group) / max(widths[k] for k in group)
            for group in combinations(unknown, size)
            if width(group) <= abs(total(group)) and _excludes_zero(*interval(group))
        }
        for group in sorted(ratios, key=lambda group: ratios[group]):
            taken = {k for other in found for k in other}
            if ratios[group] <= _NARROWER and not taken.intersection(group):
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


def _excludes_zero(low: float, high: float) -> bool:
    return low > 0 or high < 0
