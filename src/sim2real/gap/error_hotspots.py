"""Where in state space and in time a twin's error is largest.

In short segments an error lies near the state that caused it; in long ones a small error has time
to grow. The score of a segment is its error beyond that of its simulated counterpart, in noise
levels. Segments are sorted into ranges of each reading, of its speed, of each command, of the time
since the recording began, and into recordings; a hotspot is a range in which the score is larger
than elsewhere.

P-values are for the largest of all differences examined (wild bootstrap of the largest studentised
one), so many ranges do not make a hotspot by chance. Neighbouring segments, which are correlated,
are resampled together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from sim2real.arrays import Bools, Floats, Ints
from sim2real.plain import PlainData

if TYPE_CHECKING:
    from sim2real.gap.replayed_pairs import ReplayedPairs
    from sim2real.replay import Replay

_RANGES = 8
"""Ranges that a quantity is divided into, if there are enough segments."""
_MIN_SEGMENTS = 8
"""Fewest segments in a range."""
_BLOCK_S = 1.0
"""Shortest block of neighbouring segments [s]."""
_BLOCKS = 120
"""Approximate number of blocks in all recordings."""
_RESAMPLES = 1999
_MIN_BLOCKS = 6
"""Fewest blocks for a test."""
_MAX_RECORDINGS = 40
"""Most recordings that are compared with each other."""


@dataclass(frozen=True, kw_only=True)
class Hotspot(PlainData, also=("words",)):
    """The error of one channel in one range of something."""

    channel: str
    """Sensor whose error it is."""
    along: str
    """What the range is of: a reading, its speed, a command, 'time' or 'recording'."""
    unit: str
    low: float
    high: float
    """The range [unit]; for a recording its number, from 1."""
    segments: int
    horizon_s: float
    """Length of the segments [s]."""
    error: float
    """Root mean square error in the range [unit of the channel]."""
    floor: float
    """The same for the twin's own segments there."""
    excess: float
    """Mean error of a segment beyond that of its simulated counterpart [noise levels]."""
    excess_low: float
    excess_high: float
    """95 % interval, resampled in blocks of neighbours."""
    elsewhere: float
    """Excess outside the range [noise levels]."""
    p_value: float
    """Probability of so large a difference in any of the ranges if there is none."""

    @property
    def words(self) -> str:
        """The range in words."""
        if self.along == "recording":
            return f"in recording {self.low:.0f}"
        return f"at {self.along} {_range(self.low, self.high)}{' ' if self.unit else ''}{self.unit}"


@dataclass(frozen=True)
class _Variable:
    """A quantity that segments are sorted by."""

    name: str
    unit: str
    values: Floats
    """(segments,)."""
    each: bool = False
    """Whether every value is its own range."""


def find_hotspots(*lengths: ReplayedPairs, seed: int = 0) -> tuple[Hotspot, ...]:
    """All ranges examined, for pairs of one or several lengths; `ranked` picks the hotspots.

    P-values are corrected for the number of lengths.
    """
    return tuple(
        replace(place, p_value=min(1.0, len(lengths) * place.p_value))
        for pairs in lengths
        for place in _places(pairs, seed)
    )


def ranked(places: tuple[Hotspot, ...], *, level: float = 0.05) -> tuple[Hotspot, ...]:
    """The ranges whose error is significantly larger than elsewhere.

    Those of short segments, which locate the error best, come first; then by size.
    """
    sure = [place for place in places if place.p_value < level and place.excess > 0]
    return tuple(sorted(sure, key=lambda p: (p.horizon_s, p.elsewhere - p.excess)))


def _places(pairs: ReplayedPairs, seed: int) -> list[Hotspot]:
    real, made = _scores(pairs, pairs.real), _scores(pairs, pairs.simulated)
    excess = np.sqrt(real) - np.sqrt(made)
    blocks = neighbour_blocks(pairs)
    ranges = [
        (variable, low, high, inside)
        for variable in _variables(pairs)
        for low, high, inside in _cut(variable)
    ]
    if not ranges:
        return []
    member = np.stack([inside for _, _, _, inside in ranges]).astype(float)
    rng = np.random.default_rng(seed)
    differences, chances, within = _compared(excess, member, blocks, rng)
    found = []
    for c, (spec, column) in enumerate(pairs.sensors):
        noise = float(np.sqrt(np.mean(pairs.real.noise[column] ** 2)))
        for k, (variable, low, high, inside) in enumerate(ranges):
            mine, rest = float(excess[inside, c].mean()), float(excess[~inside, c].mean())
            found.append(
                Hotspot(
                    channel=spec.name,
                    along=variable.name,
                    unit=variable.unit,
                    low=low,
                    high=high,
                    segments=int(inside.sum()),
                    horizon_s=pairs.horizon_s,
                    error=noise * float(np.sqrt(real[inside, c].mean())),
                    floor=noise * float(np.sqrt(made[inside, c].mean())),
                    excess=mine,
                    excess_low=mine - 1.96 * float(within[k, c]),
                    excess_high=mine + 1.96 * float(within[k, c]),
                    elsewhere=rest,
                    p_value=float(chances[k, c]) if differences[k, c] > 0 else 1.0,
                )
            )
    return found


def _scores(pairs: ReplayedPairs, replay: Replay) -> Floats:
    """(segments, channels) mean square error, in noise variances."""
    squares = (replay.errors[0] / replay.noise) ** 2
    columns = []
    for _, part in pairs.sensors:
        mine = squares[..., part]
        known = np.isfinite(mine)
        total = np.where(known, mine, 0.0).sum(axis=(1, 2))
        columns.append(total / np.maximum(known.sum(axis=(1, 2)), 1))
    return np.stack(columns, axis=1)


def _variables(pairs: ReplayedPairs) -> Iterator[_Variable]:
    """What segments are sorted by: means of both of a pair, which treat the two alike."""
    log = pairs.real.log
    real, made = (_mean(r.measured, pairs.at_start(r)) for r in (pairs.real, pairs.simulated))
    middle = (real + made) / 2
    names = [(name, spec) for spec in log.contract.sensors for name in spec.numbers]
    for column, (name, spec) in enumerate(names):
        if not np.isfinite(middle[:, column]).all():
            continue
        yield _Variable(name, spec.unit, middle[:, column])
        if spec.kind in ("jointvel", "tendonvel", "gyro", "framelinvel"):
            yield _Variable(f"speed |{name}|", spec.unit, np.abs(middle[:, column]))
        elif spec.kind in ("jointpos", "tendonpos", "framepos"):
            speed = _speed(pairs, column)
            if speed is not None:
                yield _Variable(f"speed of {name}", f"{spec.unit}/s", speed)
    for column, command in enumerate(log.contract.commands):
        yield _Variable(
            f"command {command.name}", command.unit, pairs.command[..., column].mean(axis=1)
        )
    yield _Variable("time", "s", pairs.since_s)
    if 1 < len(np.unique(pairs.recording)) <= _MAX_RECORDINGS:
        yield _Variable("recording", "", 1.0 + pairs.recording.astype(float), each=True)


def _mean(measured: Floats, start: Floats) -> Floats:
    """(segments, numbers) mean reading; without any, the one at the start."""
    known = np.isfinite(measured)
    mean = np.where(known, measured, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    return np.where(known.any(axis=1), mean, start)


def _speed(pairs: ReplayedPairs, column: int) -> Floats | None:
    """(segments,) absolute mean speed of a number over the segment; None if unknown."""
    changes = []
    for replay in (pairs.real, pairs.simulated):
        last = replay.measured[:, -1, column]
        changes.append((last - pairs.at_start(replay)[:, column]) / pairs.horizon_s)
    found: Floats = np.abs(changes[0] + changes[1]) / 2
    return found if np.isfinite(found).all() else None


def _cut(variable: _Variable) -> Iterator[tuple[float, float, Bools]]:
    """(low, high, segments inside) of ranges with equally many segments, or of each value."""
    values = variable.values
    if variable.each:
        for value in np.unique(values):
            inside = values == value
            if _MIN_SEGMENTS <= inside.sum() < len(values):
                yield float(value), float(value), inside
        return
    count = min(_RANGES, len(values) // _MIN_SEGMENTS)
    if count < 2:
        return
    edges = np.unique(np.quantile(values, np.linspace(0, 1, count + 1)))
    for low, high in pairwise(edges):
        inside = (values >= low) & ((values < high) | (high == edges[-1]))
        if _MIN_SEGMENTS <= inside.sum() < len(values):
            yield float(low), float(high), inside


def neighbour_blocks(pairs: ReplayedPairs) -> Ints:
    """(segments,) index of the block of neighbours, within one recording, that each is in."""
    long = max(len(pairs.recording) // _BLOCKS, round(_BLOCK_S / pairs.horizon_s), 1)
    firsts = np.searchsorted(pairs.recording, pairs.recording)  # segments come in order
    place = (np.arange(len(pairs.recording)) - firsts) // long
    _, found = np.unique(np.stack([pairs.recording, place]), axis=1, return_inverse=True)
    return np.ravel(found)


def _compared(
    excess: Floats, member: Floats, blocks: Ints, rng: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """(ranges, channels) differences, their p-values over all ranges, and errors of the means.

    `excess` is (segments, channels), `member` (ranges, segments) one inside and zero outside.
    """
    inside = member / member.sum(axis=1, keepdims=True)
    outside = (1 - member) / (1 - member).sum(axis=1, keepdims=True)
    differences = (inside - outside) @ excess
    count = int(blocks.max()) + 1
    pick = np.zeros((count, len(blocks)))
    pick[blocks, np.arange(len(blocks))] = 1.0
    signs = rng.choice([-1.0, 1.0], size=(_RESAMPLES, count))
    largest = np.full(_RESAMPLES, -np.inf)
    sizes, errors = np.empty_like(differences), np.empty_like(differences)
    for c in range(excess.shape[1]):
        score = excess[:, c]
        left = inside * (score - (inside @ score)[:, None])
        # Around one mean, as if no range were special: that is conservative with few blocks.
        by_block = pick @ ((inside - outside) * (score - score.mean())).T  # (blocks, ranges)
        error = np.sqrt((by_block**2).sum(axis=0)) + 1e-12
        errors[:, c] = np.sqrt(((pick @ left.T) ** 2).sum(axis=0))
        sizes[:, c] = differences[:, c] / error
        largest = np.maximum(largest, (signs @ by_block / error).max(axis=1))
    if count < _MIN_BLOCKS:
        return differences, np.ones_like(differences), errors
    beyond = _RESAMPLES - np.searchsorted(np.sort(largest), sizes)
    return differences, (1 + beyond) / (1 + _RESAMPLES), errors


def _range(low: float, high: float) -> str:
    """Both ends, with enough figures to distinguish them."""
    for figures in range(3, 8):
        left, right = f"{low:.{figures}g}", f"{high:.{figures}g}"
        if left != right:
            break
    return f"{left} to {right}"
