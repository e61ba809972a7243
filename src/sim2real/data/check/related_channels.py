"""Channels that belong together: a position and its velocity, a command and its effect.

Names, units and shapes suggest a pair; only the values confirm it. Nothing is concluded from a pair
that does not move together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sim2real.arrays import Floats
from sim2real.data.check.channel_roles import ChannelQuantity
from sim2real.data.check.lags import (
    BestLag,
    best_lag,
    changes,
    on_one_grid,
    shifted,
    slope_of,
    travelled,
)
from sim2real.data.check.scalar_series import ScalarSeries, by_channel

MIN_CORRELATION = 0.9
"""Correlation above which two series move together."""
MIN_CERTAIN = 0.98
"""Correlation above which they do where no name suggests the pair."""
MIN_WINDOW_S = 0.1
"""Rates are compared over windows at least this long [s], so that quantisation averages out."""
MAX_COMMAND_LAG_S = 0.5
"""Longest lag that is tested [s]: a servo under position control is faster."""
MIN_REST = 8
"""Samples without change that count as rest."""
COMMAND_WINDOWS_S = (0.02, 0.3)
"""Windows over which a command and its position are compared [s]."""
MIN_SAMPLES = 60
"""Fewest samples that two series are compared over."""


class _Pair:
    """Two series on one grid."""

    @property
    def grid(self) -> tuple[Floats, Floats, Floats]:
        """Times, and the two series at these times."""
        raise NotImplementedError

    @cached_property
    def step_s(self) -> float:
        """Step of the grid [s]."""
        times = self.grid[0]
        return float(times[1] - times[0]) if len(times) > 1 else 1.0


@dataclass(frozen=True, eq=False)
class PositionVelocityPair(_Pair):
    """A position and its velocity, compared by travel over windows: exact for any motion."""

    position: ScalarSeries
    velocity: ScalarSeries
    named: bool
    """Whether the names alone make it a pair."""

    @cached_property
    def grid(self) -> tuple[Floats, Floats, Floats]:
        """Times, positions and velocities on one grid."""
        return on_one_grid(self.position, self.velocity)

    @cached_property
    def half(self) -> int:
        """Half of the comparison window in samples."""
        return max(2, int(np.ceil(0.5 * MIN_WINDOW_S / self.step_s)))

    @cached_property
    def lag(self) -> BestLag | None:
        """Lag of the velocity behind the position; None where there is too little of them."""
        times, position, velocity = self.grid
        if len(times) < max(MIN_SAMPLES, 8 * self.half):
            return None
        moved = changes(position, self.half)
        expected = travelled(velocity, self.step_s, self.half)
        if moved.std() == 0 or expected.std() == 0:
            return None
        return best_lag(moved, expected, self.step_s, 0.25)

    @cached_property
    def travel(self) -> tuple[Floats, Floats, Floats, float]:
        """Centres of short windows [s], and travel in them by the velocity and by the position.

        The velocity is moved by its lag. The last number is the length of a window [s].
        """
        times, position, velocity = self.grid
        half = max(2, self.half // 2)
        if len(times) < 8 * half:
            empty = np.zeros(0)
            return empty, empty, empty, 0.0
        late = self.lag.lag_s if self.lag is not None and self.lag.correlation > 0.5 else 0.0
        told = travelled(shifted(velocity, -late / self.step_s), self.step_s, half)
        return times[half:-half], told, changes(position, half), 2 * half * self.step_s

    @property
    def confirmed(self) -> bool:
        """Whether the two move together."""
        return self.lag is not None and self.lag.correlation > MIN_CORRELATION

    @property
    def certain(self) -> bool:
        """Whether the two match so well that they are a pair whatever their names."""
        lag = self.lag
        return lag is not None and lag.correlation > MIN_CERTAIN and abs(lag.lag_s) < 0.1

    def slope(self, widen: int = 1) -> tuple[float, float]:
        """Travel of the position per travel of the velocity, in stated units, and correlation."""
        if self.lag is None:
            return 0.0, 0.0
        _, position, velocity = self.grid
        half = min(self.half * widen, len(position) // 4)
        late = shifted(velocity, -self.lag.lag_s / self.step_s)
        return slope_of(travelled(late, self.step_s, half), changes(position, half))

    @cached_property
    def awake(self) -> tuple[float, float]:
        """Slope and correlation over the windows in which neither of the two rests.

        A frozen span spoils the correlation of a whole log; the other windows still show
        whether the two are a pair.
        """
        centre, told, moved, window_s = self.travel
        if self.lag is None or len(centre) < MIN_SAMPLES:
            return 0.0, 0.0
        around = max(1, int(1.5 * window_s / self.step_s))
        asleep = np.zeros(len(centre), dtype=bool)
        for values in self.grid[1:]:
            still = changes(values, 1)[: len(centre)] == 0
            repeats = np.convolve(still, np.ones(MIN_REST), "same")
            asleep[: len(still)] |= repeats >= MIN_REST - 0.5
        asleep = np.convolve(asleep, np.ones(2 * around + 1), "same") > 0.5
        if np.mean(asleep) > 0.9:
            return 0.0, 0.0
        return slope_of(told[~asleep], moved[~asleep])

    def slope_of_filtered(self) -> float:
        """The slope if the velocity went through a first-order filter, in stated units.

        The position's rate is v + T dv/dt. Fitting T takes the filter's loss of amplitude out
        of the slope; a mere delay would leave it there.
        """
        _, position, velocity = self.grid
        half = min(self.half, len(position) // 4)
        told = travelled(velocity, self.step_s, half)
        grown = changes(velocity, half)
        moved = changes(position, half)
        a, b, c = (series - series.mean() for series in (told, grown, moved))
        aa, ab, bb = float((a * a).sum()), float((a * b).sum()), float((b * b).sum())
        ac, bc = float((a * c).sum()), float((b * c).sum())
        free = aa * bb - ab * ab
        return (bb * ac - ab * bc) / free if free > 1e-12 * aa * bb else 0.0

    @property
    def si(self) -> float:
        """Factor that makes the slope a ratio of SI units."""
        return self.position.role.si / self.velocity.role.si

    @property
    def units_known(self) -> bool:
        """Whether both units are stated and belong together."""
        dimension = self.position.role.dimension
        return bool(dimension) and dimension == self.velocity.role.dimension


@dataclass(frozen=True, eq=False)
class CommandPositionPair(_Pair):
    """A commanded position, and the measured one that should follow it."""

    command: ScalarSeries
    position: ScalarSeries

    @cached_property
    def grid(self) -> tuple[Floats, Floats, Floats]:
        """Times, commands and positions on one grid."""
        return on_one_grid(self.command, self.position)

    @cached_property
    def lag(self) -> BestLag | None:
        """Lag of the position behind the command, from their changes.

        Short windows suit curves and long ones steps; those that correlate better count.
        """
        times, command, position = self.grid
        found: list[BestLag] = []
        for window_s in COMMAND_WINDOWS_S:
            half = max(1, int(0.5 * window_s / self.step_s))
            if len(times) < max(MIN_SAMPLES, 6 * half):
                continue
            asked, moved = changes(command, half), changes(position, half)
            if asked.std() > 0 and moved.std() > 0:
                found.append(best_lag(asked, moved, self.step_s, MAX_COMMAND_LAG_S))
        return max(found, key=lambda lag: lag.correlation) if found else None

    def slope(self) -> tuple[float, float]:
        """Range of the position per range of the command, in stated units, and correlation."""
        if self.lag is None:
            return 0.0, 0.0
        _, command, position = self.grid
        return slope_of(shifted(command, self.lag.lag_s / self.step_s), position)


def position_velocity_pairs(all_series: list[ScalarSeries]) -> list[PositionVelocityPair]:
    """Positions with their velocities."""
    positions = _channels(all_series, ChannelQuantity.POSITION)
    velocities = _channels(all_series, ChannelQuantity.VELOCITY)
    found: list[PositionVelocityPair] = []
    for ones in positions.values():
        if ones[0].role.command:
            continue  # a commanded position need not agree with a commanded velocity
        same = [
            others
            for others in velocities.values()
            if not others[0].role.command and _compatible(ones[0], others[0])
        ]
        named = [others for others in same if others[0].role.stem == ones[0].role.stem]
        same = [others for others in same if len(others) == len(ones)]
        alone = len(same) == 1 and sum(len(o) == len(ones) for o in positions.values()) == 1
        for others in named or (same if alone else []):
            # Where one has more joints, such as a gripper's, the first ones may still be pairs.
            sure = bool(named) and len(others) == len(ones)
            for one, other in zip(ones, others, strict=False):
                if one.component == other.component or sure:
                    found.append(PositionVelocityPair(one, other, sure))
    return found + list(_columns(all_series))


def _compatible(one: ScalarSeries, other: ScalarSeries) -> bool:
    dimensions = {one.role.dimension, other.role.dimension} - {""}
    return len(dimensions) <= 1


def _columns(all_series: list[ScalarSeries]) -> Iterator[PositionVelocityPair]:
    """Positions and velocities in the two halves of a state vector without a unit."""
    for ones in _channels(all_series, ChannelQuantity.OTHER).values():
        half = len(ones) // 2
        words = ones[0].channel.lower()
        if len(ones) % 2 or ones[0].role.command or not ("state" in words or "obs" in words):
            continue
        pairs = [PositionVelocityPair(ones[i], ones[i + half], False) for i in range(half)]
        # All of them must match: two columns that happen to correlate are no state vector.
        if pairs and all(pair.certain for pair in pairs):
            yield from pairs


def command_position_pairs(all_series: list[ScalarSeries]) -> list[CommandPositionPair]:
    """Commands with the positions that follow them."""
    # Channels that are positions by name come first.
    some = _channels(all_series, ChannelQuantity.POSITION)
    some |= _channels(all_series, ChannelQuantity.OTHER)
    measured = [ones for ones in some.values() if not ones[0].role.command]
    found = []
    for asked in some.values():
        if not asked[0].role.command:
            continue
        same = [
            ones for ones in measured if len(ones) == len(asked) and _compatible(asked[0], ones[0])
        ]
        named = [ones for ones in same if ones[0].role.joint == asked[0].role.joint]
        for ones in named or (same if len(same) == 1 else []):
            pairs = [CommandPositionPair(c, p) for c, p in zip(asked, ones, strict=True)]
            found += [pair for pair in pairs if pair.lag is not None]
    return found


def _channels(
    all_series: list[ScalarSeries], quantity: ChannelQuantity
) -> dict[str, list[ScalarSeries]]:
    return by_channel(series for series in all_series if series.role.quantity == quantity)
