"""The gap between a twin and its robot, measured by replaying the real actions in the twin.

It says how far predictions are off, by channel and over the horizon; whether real and simulated
states and transitions can be told apart; and where in state space and in time the gap is largest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from sim2real.arrays import Floats, Table
from sim2real.data import ChannelMap, Logs
from sim2real.errors import Sim2RealError
from sim2real.gap.error_hotspots import Hotspot, find_hotspots, ranked
from sim2real.gap.horizon_errors import ChannelGap, channel_gaps
from sim2real.gap.reading_coverage import RangeCoverage, range_coverage
from sim2real.gap.replayed_pairs import ReplayedPairs, make_pairs
from sim2real.gap.thresholds import GAP_THRESHOLDS, GapThresholds
from sim2real.gap.two_sample import EXCHANGES, MIN_PAIRS, Distance, distances
from sim2real.intervals import holm
from sim2real.logs import ControlLog, aligned_logs
from sim2real.phases import Report, phase
from sim2real.plain import PlainData
from sim2real.policy import open_twin
from sim2real.randomize import drawn
from sim2real.replay import seconds_of
from sim2real.twin import Twin

_FEW_SEGMENTS = 20
"""Number of segments below which shorter segments are tested, too."""
_SHORTER = 5
"""How many times shorter those are than the horizon."""
_MIN_STEPS = 3
"""Fewest periods of a segment."""
_MAX_LISTED = 20
"""Most hotspots in the written result."""


@dataclass(frozen=True, kw_only=True)
class Gap(
    PlainData,
    also=(
        "verdict", "found", "p_value", "places_looked_at", "channels=by_channel",
        "places=listed_places",
    ),
    without=("pairs", "draws", "level"),
):  # fmt: skip
    """How a twin and its robot differ, as far as the logs show."""

    twin: str
    version: str
    horizon_s: float
    recordings: tuple[str, ...]
    """Ids of the episodes, in the order of their numbers."""
    seconds: float
    """Total time of the logs [s]."""
    segments: int
    diverged: int
    """Segments left out because the twin diverged."""
    channels: tuple[ChannelGap, ...]
    distances: tuple[Distance, ...]
    places: tuple[Hotspot, ...]
    """All ranges examined; see `worst_places`."""
    coverage: RangeCoverage | None
    """Share of the readings that the posterior's draws cover, if the twin has a posterior."""
    notes: tuple[str, ...]
    pairs: ReplayedPairs
    """The replayed segments."""
    draws: Floats | None
    """(draws, parameters) of the posterior, if the twin has one."""
    level: float = GAP_THRESHOLDS.level
    """Significance level."""

    @property
    def p_value(self) -> float:
        """The smallest p-value of distances and hotspots, corrected for their number."""
        place = min((p.p_value for p in self.places if p.excess > 0), default=1.0)
        return min(holm([self._distance_p, place]))

    @property
    def found(self) -> bool:
        """Whether twin and robot differ significantly."""
        return self.p_value < self.level

    @property
    def worst(self) -> ChannelGap:
        """The channel that is farthest above its floor."""
        return max(self.channels, key=lambda channel: channel.ratio)

    @property
    def worst_places(self) -> tuple[Hotspot, ...]:
        """Hotspots: ranges whose error is significantly larger than elsewhere; see `ranked`."""
        # Holm: if the distances are significant at half of the level, hotspots get all of it.
        sure = self._distance_p < self.level / 2
        return ranked(self.places, level=self.level if sure else self.level / 2)

    @property
    def verdict(self) -> str:
        """The gap in one sentence."""
        worst, seconds = self.worst, f"{self.seconds:.0f} s"
        size = (
            f"{two_figures(worst.in_noise)} noise levels ({worst.error:.2g} {worst.unit or '1'})"
            f" after {worst.times_s[-1]:.2g} s on {worst.name} (over the horizon,"
            f" {two_figures(worst.ratio)} times what its own noise causes)"
        )
        if self.found:
            late = ""
            if worst.lag is not None and worst.lag.dominates:
                side = "later" if worst.lag.seconds > 0 else "earlier"
                ms = 1000 * abs(worst.lag.seconds)
                late = f", mainly because the robot is {ms:.0f} ms {side}"
            return f"the twin is off by {size}{self._largest()}{late}{self._apart()}"
        if not self.distances:
            return (
                f"too few segments to tell ({MIN_PAIRS} are needed: record for longer, or choose a"
                f" shorter --horizon-s): errors are {size}"
            )
        if worst.ratio_low > 1:
            return f"a gap is not shown in {seconds}: errors are {size}{self._apart()}"
        return f"no gap is found in {seconds}: errors are {size}{self._apart()}"

    @property
    def by_channel(self) -> dict[str, ChannelGap]:
        """Errors by the channel's name."""
        return {channel.name: channel for channel in self.channels}

    @property
    def listed_places(self) -> tuple[Hotspot, ...]:
        """The worst hotspots, as many as are written."""
        return self.worst_places[:_MAX_LISTED]

    @property
    def places_looked_at(self) -> int:
        """How many ranges were examined."""
        return len(self.places)

    def channel_table(self) -> Table:
        """The error of each channel, the farthest above its floor first."""
        head = (
            "channel", "error", "in noise levels", "of its spread", "error / floor",
            "error of assuming no change", "late by",
        )  # fmt: skip
        return head, [
            (
                f"{c.name} [{c.unit or '1'}]",
                f"{c.error:.3g}",
                two_figures(c.in_noise),
                c.spread_words,
                f"{c.ratio:.2f} ({c.ratio_low:.2f} to {c.ratio_high:.2f})",
                f"{c.stays[-1]:.3g}",
                f"{1000 * c.lag.seconds:+.0f} ms" if c.lag is not None and c.lag.told else "",
            )
            for c in sorted(self.channels, key=lambda channel: -channel.ratio)
        ]

    def distance_table(self) -> Table:
        """The tests of real against simulated motion."""
        return ("test of", "segments", "MMD²", "p", "accuracy of a classifier", "p"), [
            (
                d.of,
                str(d.pairs),
                f"{d.mmd:.2g}",
                f"{d.mmd_p:.2g}",
                f"{d.accuracy:.2f} ({d.accuracy_low:.2f} to {d.accuracy_high:.2f})",
                f"{d.accuracy_p:.2g}",
            )
            for d in self.distances
        ]

    @property
    def _distance_p(self) -> float:
        """The smallest p-value of the distances, corrected for their number."""
        return min(holm([p for d in self.distances for p in (d.mmd_p, d.accuracy_p)]), default=1)

    def _largest(self) -> str:
        """The worst channel's hotspot; without a significant distance, any channel's."""
        apart = self._distance_p < self.level
        mine = [place for place in self.worst_places if place.channel == self.worst.name]
        if mine and apart:
            return f"; largest {mine[0].words}"
        if apart:
            return ""
        place = (*mine, *self.worst_places)[0]
        return f"; {place.channel} is worse {place.words} than elsewhere (p = {place.p_value:.2g})"

    def _apart(self) -> str:
        """How real and simulated motion differ, by the more significant of the two tests."""
        if not self.distances or (self.found and self._distance_p >= self.level):
            return ""
        best = max(self.distances, key=lambda d: (-d.accuracy_p, d.accuracy))
        other = min(self.distances, key=lambda d: d.mmd_p)
        if self.found and other.mmd_p < best.accuracy_p:
            return (
                f"; the MMD² of real and simulated {other.of} is {other.mmd:.2g}"
                f" ({_chance(other.mmd_p)})"
            )
        return (
            f"; a classifier separates real from simulated {best.of} with an accuracy of"
            f" {best.accuracy:.2f} ({_chance(best.accuracy_p)})"
        )


def measure_gap(
    twin: Twin | Path | str,
    logs: Logs | Sequence[ControlLog],
    *,
    channels: ChannelMap | Path | str | None = None,
    rate_hz: float = 0.0,
    horizon_s: float = 0.5,
    remainder: bool = False,
    thresholds: GapThresholds = GAP_THRESHOLDS,
    seed: int = 0,
    threads: int = 0,
    report: Report = lambda done, of: None,
) -> Gap:
    """Measure how far a twin's best guess is from the robot that made some logs; see `Gap`.

    CSV and similar logs may need a map of their `channels`. `rate_hz` is the control rate, by
    default that of the logs; `horizon_s` is how far the twin predicts ahead from each measured
    state. With `remainder` the twin's learned remainder acts. Use logs that the twin was not
    identified from. For a twin with a posterior this includes the coverage of its draws. Logs that
    are too short for `horizon_s`, or of another robot, are a `Sim2RealError`.
    """
    if not 0 < horizon_s < math.inf:
        raise Sim2RealError(f"--horizon-s must be a positive number of seconds, not {horizon_s:g}")
    if seed < 0:
        raise Sim2RealError(f"--seed must not be negative, got {seed}")
    twin = open_twin(twin)
    logs = aligned_logs(twin, logs, channels=channels, rate_hz=rate_hz)
    _refuse_rates(logs)
    make = partial(make_pairs, twin, logs, seed=seed, remainder=remainder, threads=threads)
    draws = None
    if twin.posterior is not None:
        draws = drawn(twin, "posterior", count=thresholds.draws, seed=seed).numpy()
    pairs = make(
        horizon_s=horizon_s,
        most=thresholds.segments,
        draws=draws,
        report=phase(report, f"segments of {horizon_s:g} s"),
    )
    short_s = max(horizon_s / _SHORTER, _MIN_STEPS * pairs.real.period_s)
    short = make(
        horizon_s=short_s,
        most=thresholds.short_segments,
        apart=False,
        report=phase(report, f"segments of {short_s:.2g} s"),
    )
    tests, why = distances(pairs, seed=seed), []
    if len(pairs.recording) < _FEW_SEGMENTS:
        why.append(
            f"there are only {len(pairs.recording)} segments of {pairs.horizon_s:.2g} s: the tests"
            f" of real against simulated motion also use segments of {short_s:.2g} s"
        )
        close = make(horizon_s=short_s, most=thresholds.segments)
        tests = distances(close, seed=seed) + tests[-1:]
    covered = None
    if twin.posterior is not None and not remainder:
        try:
            covered = range_coverage(
                twin, logs, source="posterior", draws=thresholds.draws, horizon_s=horizon_s,
                thresholds=thresholds, seed=seed, threads=threads,
                report=phase(report, "coverage"),
            )  # fmt: skip
        except Sim2RealError as error:
            why.append(f"the posterior's coverage was not checked: {error}")
    errors = channel_gaps(pairs, thresholds=thresholds, seed=seed)
    return Gap(
        twin=twin.name,
        version=twin.version,
        horizon_s=pairs.horizon_s,
        recordings=tuple(log.episode for log in logs),
        seconds=seconds_of(logs),
        segments=len(pairs.recording),
        diverged=pairs.diverged,
        channels=errors,
        distances=tests,
        places=find_hotspots(short, pairs, seed=seed),
        coverage=covered,
        notes=(*_notes(logs, pairs, errors), *why),
        pairs=pairs,
        draws=draws,
        level=thresholds.level,
    )


def _refuse_rates(logs: Sequence[ControlLog]) -> None:
    """Refuse logs of several control rates."""
    rates = sorted({log.contract.rate_hz for log in logs})
    if len(rates) > 1:
        raise Sim2RealError(
            f"the recordings have control rates from {rates[0]:.4g} to {rates[-1]:.4g} Hz: choose"
            " one for all of them (--rate-hz)"
        )


def two_figures(value: float) -> str:
    """A number with two figures and no power of ten."""
    return f"{float(f'{value:.2g}'):,g}"


def _notes(
    logs: Sequence[ControlLog], pairs: ReplayedPairs, channels: Sequence[ChannelGap]
) -> Iterator[str]:
    """What limits the result, a sentence each."""
    samples = sum(log.left_out for log in logs)
    if samples:
        yield (
            f"{samples} samples that are not finite or not possible are left out; `sim2real data"
            " check` lists them"
        )
    in_spreads = [channel.in_spread for channel in channels if channel.in_spread is not None]
    if in_spreads and np.median(in_spreads) > 1:
        yield (
            f"after {pairs.horizon_s:.2g} s most predictions are worse than the mean reading: the"
            " motion is unstable, and a shorter --horizon-s says more, or the recordings are of"
            " another robot or in other units than the twin expects"
        )
    still = [channel.name for channel in channels if not channel.moves]
    if still:
        yield (
            f"readings of {', '.join(still)} hardly change by more than noise: the motions do not"
            " affect them, or the sensor is stuck"
        )
    silent = [channel.name for channel in channels if not channel.declared]
    if silent:
        yield (
            f"the twin declares little or no noise for {', '.join(silent)}, so every difference"
            " counts, and a noise level is a ten-thousandth of the range; declare the noise in"
            " [effects.sensor] of the twin"
        )
    if pairs.diverged:
        yield f"the twin diverged in {pairs.diverged} segments, which are left out"
    if pairs.real.assumed:
        yield (
            f"no sensor measures {', '.join(pairs.real.assumed)}: they start at the model's default"
        )
    seen = [spec for spec, _ in pairs.sensors]
    missing = [spec.name for spec in pairs.real.log.contract.sensors if spec not in seen]
    if missing:
        yield f"the logs have no readings of {', '.join(missing)}"
    stays = [channel.name for channel in channels if not channel.predicts]
    if stays:
        yield (
            f"after {pairs.horizon_s:.2g} s, assuming no change predicts {', '.join(stays)} better"
            " than the twin"
        )
    late = [
        f"{c.name} {1000 * c.lag.seconds:+.0f} ms ({100 * c.lag.explains:.0f} %)"
        for c in channels
        if c.lag is not None and c.lag.told
    ]
    if late:
        yield (
            "the robot is behind (+) or ahead of (-) the prediction, with the share of the squared"
            f" error that this explains: {', '.join(late)}"
        )


def _chance(p_value: float) -> str:
    least = 1.0 / (1 + EXCHANGES)
    return f"p ≤ {least:.2g}" if p_value <= least else f"p = {p_value:.2g}"
