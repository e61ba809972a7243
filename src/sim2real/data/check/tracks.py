"""Single-number series with clean clocks: what the detectors look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sim2real.data.check.names import Quantity, Role, role
from sim2real.data.episode import Episode

MOST_COMPONENTS = 64
"""A wider sample is a picture or a map: only its times are checked."""
FEWEST_SAMPLES = 20
"""A shorter series tells nothing about its statistics."""


@dataclass(frozen=True, eq=False)
class Track:
    """One component of a channel, with bad samples bridged and time stamps that grow."""

    channel: str
    component: int | None
    """Index into the flattened sample; None for a channel of single numbers."""
    times: np.ndarray
    """Strictly growing time stamps [s]."""
    values: np.ndarray
    """float64, finite; full turns taken out of wrapped angles."""
    index: np.ndarray
    """Place of each sample in the channel."""
    role: Role
    unit: str
    stated_hz: float
    scale: float
    """Largest magnitude in the whole channel."""
    bad: np.ndarray
    """Samples that were bridged, because they were absurd or no numbers."""

    @cached_property
    def step_s(self) -> float:
        """Median time step [s]."""
        return float(np.median(np.diff(self.times)))

    @cached_property
    def steps(self) -> np.ndarray:
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

        Rounding of the floating point itself is left out.
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
        """Channel and component, as a message names them."""
        return self.channel if self.component is None else f"{self.channel}[{self.component}]"


def growing(times: np.ndarray) -> np.ndarray:
    """Indices of a strictly growing subset of the finite time stamps.

    One stamp far ahead of the rest must not hide all that follow, so a stamp is also left out
    where it is ahead of most of the next ones.
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


def tracks(episode: Episode, bad: Mapping[str, np.ndarray]) -> list[Track]:
    """Tracks of all numeric channels; `bad` marks samples (samples, components) to bridge."""
    found = []
    for name, signal in episode.signals.items():
        width = int(np.prod(signal.shape)) if signal.shape else 1
        index = growing(signal.times)
        if signal.values.dtype.kind == "b" or not 0 < width <= MOST_COMPONENTS:
            continue
        if len(index) < FEWEST_SAMPLES:
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
                Track(
                    channel=name,
                    component=component if signal.shape else None,
                    times=times,
                    values=_unwrapped(column, holds),
                    index=index,
                    role=holds,
                    unit=signal.unit,
                    stated_hz=signal.stated_hz,
                    scale=scale,
                    bad=wrong,
                )
            )
    return found


def _continuous_quaternion(values: np.ndarray) -> np.ndarray:
    """Unit quaternions without sign flips, which mean nothing; other values as they are."""
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.sum(values * values, axis=1)
        if not (np.abs(lengths - 1.0) < 1e-2).all():
            return values
    flips = np.sum(values[1:] * values[:-1], axis=1) < 0
    return np.asarray(values * np.where(np.r_[0, np.cumsum(flips)] % 2, -1.0, 1.0)[:, None])


def _unwrapped(values: np.ndarray, holds: Role) -> np.ndarray:
    """Angles without their jumps by a full turn, where there are such jumps."""
    if holds.quantity not in (Quantity.POSITION, Quantity.OTHER):
        return values
    steps = np.abs(np.diff(values))
    largest = float(steps.max(initial=0.0))
    for turn in (2 * np.pi, 360.0):
        reach = np.ptp(values)
        # Wrapped values stay within one turn, and a wrap is a step of nearly all of it.
        if 0.9 * turn < largest <= reach <= 1.001 * turn:
            return np.asarray(np.unwrap(values, period=turn))
    return values
