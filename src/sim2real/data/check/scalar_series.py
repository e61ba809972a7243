"""Series of single numbers with clean time stamps: what the checks look at."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sim2real.arrays import Bools, Floats, Ints
from sim2real.data.check.channel_roles import ChannelQuantity, ChannelRole, role
from sim2real.data.check.log_fault import FaultSpan
from sim2real.data.episode import Episode

MAX_COMPONENTS = 64
"""A wider sample is an image or a map: only its time stamps are checked."""
MIN_SAMPLES = 20
"""A shorter series has no statistics worth looking at."""


@dataclass(frozen=True, eq=False)
class ScalarSeries:
    """One component of a channel, with increasing time stamps and bad samples interpolated."""

    channel: str
    component: int | None
    """Index into the flattened sample; None for a channel of single numbers."""
    times: Floats
    """Strictly increasing time stamps [s]."""
    values: Floats
    """Finite values; angles are unwrapped."""
    index: Ints
    """Index of each sample in the channel."""
    role: ChannelRole
    unit: str
    scale: float
    """Largest magnitude in the whole channel."""
    bad: Bools
    """Which samples were interpolated, because they were not finite or impossible."""

    @cached_property
    def step_s(self) -> float:
        """Median time step [s]."""
        return float(np.median(np.diff(self.times)))

    @cached_property
    def steps(self) -> Floats:
        """Differences of neighbouring values."""
        return np.diff(self.values)

    @cached_property
    def span(self) -> float:
        """Range of the values, without the outermost thousandth."""
        low, high = np.quantile(self.values, [0.001, 0.999])
        return float(high - low)

    @cached_property
    def quantum(self) -> float:
        """Smallest change that occurs: the resolution of a quantised channel, else about 0.

        Floating-point rounding does not count.
        """
        moves = np.abs(self.steps)
        moves = moves[moves > 1e-6 * max(self.span, 1e-300)]
        return float(moves.min()) if len(moves) else 0.0

    @cached_property
    def still(self) -> float:
        """Share of steps that repeat the value exactly."""
        return float(np.mean(self.steps == 0)) if len(self.steps) else 1.0

    @property
    def label(self) -> str:
        """Channel and component, as messages name them."""
        return labelled(self.channel, self.component)

    def span_of(
        self, component: int | None, first: int = 0, last: int = -1, count: int = 0
    ) -> FaultSpan:
        """The samples `first` to `last` as the span of a fault; by default the whole series."""
        return FaultSpan(
            component=component,
            start_s=float(self.times[first]),
            end_s=float(self.times[last]),
            first=int(self.index[first]),
            last=int(self.index[last]),
            count=count or len(self.times),
        )


def by_channel(all_series: Iterable[ScalarSeries]) -> dict[str, list[ScalarSeries]]:
    """The series of each channel."""
    found: dict[str, list[ScalarSeries]] = {}
    for series in all_series:
        found.setdefault(series.channel, []).append(series)
    return found


def labelled(channel: str, component: int | None) -> str:
    """Name of a channel or of one of its components, as messages name them."""
    return channel if component is None else f"{channel}[{component}]"


def increasing(times: Floats) -> Ints:
    """Indices of a strictly increasing subset of the finite time stamps.

    A single stamp ahead of those that follow it is left out too, so that it does not hide them.
    """
    index = np.flatnonzero(np.isfinite(times))
    kept = times[index]
    if len(kept) > 2 and not (np.diff(kept) > 0).all():
        ahead = np.r_[kept[:-1] > kept[1:], False]
        after = np.r_[kept[2:], np.inf, np.inf]
        before = np.r_[-np.inf, kept[:-1]]
        # A single stamp ahead of its two followers, which go on from the one before it.
        spike = ahead & (kept > after) & (np.r_[kept[1:], np.inf] > before)
        index, kept = index[~spike], kept[~spike]
    if not len(kept):
        return index
    highest = np.maximum.accumulate(kept)
    return index[np.r_[True, kept[1:] > highest[:-1]]]


def scalar_series(episode: Episode, bad: Mapping[str, Bools]) -> list[ScalarSeries]:
    """Series of all numeric channels; `bad` marks what to interpolate (samples, components)."""
    found = []
    for name, signal in episode.signals.items():
        width = math.prod(signal.shape)
        index = increasing(signal.times)
        if signal.values.dtype.kind == "b" or not 0 < width <= MAX_COMPONENTS:
            continue
        if len(index) < MIN_SAMPLES:
            continue
        holds, times = role(name, signal.unit), signal.times[index]
        values = signal.values.reshape(len(signal.values), width)[index].astype(np.float64)
        if width == 4:
            values = _continuous_quaternion(values)
        marks = bad[name][index] if name in bad else np.zeros(values.shape, dtype=bool)
        scale = float(np.abs(values[~marks]).max(initial=0.0))
        for component in range(width):
            column, wrong = np.ascontiguousarray(values[:, component]), marks[:, component]
            if wrong.all():
                continue
            if wrong.any():
                column[wrong] = np.interp(times[wrong], times[~wrong], column[~wrong])
            found.append(
                ScalarSeries(
                    channel=name,
                    component=component if signal.shape else None,
                    times=times,
                    values=_unwrapped(column, holds),
                    index=index,
                    role=holds,
                    unit=signal.unit,
                    scale=scale,
                    bad=wrong,
                )
            )
    return found


def _continuous_quaternion(values: Floats) -> Floats:
    """Unit quaternions without sign flips, which have no meaning; other values unchanged."""
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.sum(values * values, axis=1)
        if not (np.abs(lengths - 1.0) < 1e-2).all():
            return values
    flips = np.sum(values[1:] * values[:-1], axis=1) < 0
    return np.asarray(values * np.where(np.r_[0, np.cumsum(flips)] % 2, -1.0, 1.0)[:, None])


def _unwrapped(values: Floats, holds: ChannelRole) -> Floats:
    """Angles without jumps by a full turn; other values unchanged."""
    if holds.quantity not in (ChannelQuantity.POSITION, ChannelQuantity.OTHER):
        return values
    steps = np.abs(np.diff(values))
    largest = float(steps.max(initial=0.0))
    for turn in (2 * np.pi, 360.0):
        reach = np.ptp(values)
        # Wrapped values stay within one turn, and a wrap is a step of nearly all of it.
        if 0.9 * turn < largest <= reach <= 1.001 * turn:
            return np.asarray(np.unwrap(values, period=turn))
    return values
