"""The gap between a twin and its robot, measured: the real actions replayed in the twin.

How far predictions are off, channel by channel and over the horizon; whether real and simulated
states and transitions can be told apart; and where in state space and in time the gap is largest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from sim2real.arrays import Floats
from sim2real.data import ChannelMap, Logs
from sim2real.errors import Sim2RealError
from sim2real.gap.error_hotspots import Hotspot, find_hotspots, ranked
from sim2real.gap.horizon_errors import ChannelGap, channel_gaps
from sim2real.gap.reading_coverage import RangeCoverage, range_coverage
from sim2real.gap.replayed_pairs import ReplayedPairs, make_pairs
from sim2real.gap.thresholds import GAP_THRESHOLDS, GapThresholds
from sim2real.gap.two_sample import EXCHANGES, FEWEST, Distance, adjusted, distances
from sim2real.logs import ControlLog, aligned_logs
from sim2real.plain import PlainData
from sim2real.policy import open_twin
from sim2real.randomize import drawn
from sim2real.replay import seconds_of
from sim2real.twin import Twin

_FEW = 20
"""Segments below which distances are measured on shorter ones too."""
_SHORTER = 5
"""How much shorter those are than the horizon."""
_LEAST_STEPS = 3
"""Periods of the shortest segment that places are looked for with."""
_LISTED = 20
"""Places that are written out; the gap's own table has all of them."""
_STAGES = 3


@dataclass(frozen=True, kw_only=True)
class Gap(
    PlainData, also=("verdict", "found", "p_value"), without=("places", "pairs", "draws", "level")
):
    """What a twin and its robot differ by, as far as some logs tell."""

    twin: str
    version: str
    horizon_s: float
    recordings: tuple[str, ...]
    """Ids of the episodes, in the order they are counted in."""
    seconds: float
    """Time of all logs [s]."""
    segments: int
    diverged: int
    """Segments left out because the twin diverged in them."""
    channels: tuple[ChannelGap, ...]
    distances: tuple[Distance, ...]
    places: tuple[Hotspot, ...]
    """All ranges looked at; see `worst_places`."""
    coverage: RangeCoverage | None
    """What the posterior's draws cover of the readings, where the twin has a posterior."""
    notes: tuple[str, ...]
    pairs: ReplayedPairs
    """What was replayed."""
    draws: Floats | None
    """(draws, parameters) of the posterior, where the twin has one."""
    level: float = GAP_THRESHOLDS.level
    """Chance of a false claim that is taken."""

    @property
    def p_value(self) -> float:
        """Chance of so clear a difference of real and simulated, or of so special a place, if there
        is none; many looks counted."""
        place = min((p.p_value for p in self.places if p.excess > 0), default=1.0)
        return min(adjusted([self._told_apart, place]))

    @property
    def found(self) -> bool:
        """Whether twin and robot can be told apart at all."""
        return self.p_value < self.level

    @property
    def worst(self) -> ChannelGap:
        """The channel that is farthest above its floor."""
        return max(self.channels, key=lambda channel: channel.ratio)

    @property
    def worst_places(self) -> tuple[Hotspot, ...]:
        """Places where the error is larger than elsewhere beyond chance; see `ranked`."""
        # Of two looks, distances and places, the second has the whole level if the first is sure.
        sure = self._told_apart < self.level / 2
        return ranked(self.places, level=self.level if sure else self.level / 2)

    @property
    def verdict(self) -> str:
        """The gap in one sentence."""
        worst, seconds = self.worst, f"{self.seconds:.0f} s"
        size = (
            f"{two_figures(worst.in_noise)} noise levels ({worst.error:.2g} {worst.unit or '1'})"
            f" after {worst.times_s[-1]:.2g} s on {worst.name} (over the horizon,"
            f" {two_figures(worst.ratio)} times what its own noise makes)"
        )
        if self.found:
            late = ""
            if worst.lag is not None and worst.lag.dominates:
                side = "later" if worst.lag.seconds > 0 else "earlier"
                late = f"; mostly, the robot is {1000 * abs(worst.lag.seconds):.0f} ms {side}"
            return f"the twin is off by {size}{self._largest()}{late}{self._apart()}"
        if not self.distances:
            return (
                f"too few segments to tell ({FEWEST} are needed: record for longer, or choose a"
                f" shorter --horizon-s): errors are {size}"
            )
        if worst.ratio_low > 1:
            return f"a gap is not shown in {seconds}: errors are {size}{self._apart()}"
        return f"no gap is found in {seconds}: errors are {size}{self._apart()}"

    def to_dict(self) -> dict[str, object]:
        """Plain data."""
        return super().to_dict() | {
            "channels": {channel.name: channel.to_dict() for channel in self.channels},
            "places": [place.to_dict() for place in self.worst_places[:_LISTED]],
            "places_looked_at": len(self.places),
        }

    @property
    def _told_apart(self) -> float:
        """Chance of distances like these if there is no difference; their number counted."""
        return min(
            adjusted([p for d in self.distances for p in (d.mmd_p, d.accuracy_p)]), default=1
        )

    def _largest(self) -> str:
        """Where the worst channel is worst; any channel's place where nothing else is found."""
        told = self._told_apart < self.level
        mine = [place for place in self.worst_places if place.channel == self.worst.name]
        if mine and told:
            return f"; largest {mine[0].words}"
        if told:
            return ""
        place = (*mine, *self.worst_places)[0]
        return f"; {place.channel} is worse {place.words} than elsewhere (p = {place.p_value:.2g})"

    def _apart(self) -> str:
        """How real and simulated are told apart, by the surer of the two tests."""
        if not self.distances or (self.found and self._told_apart >= self.level):
            return ""
        best = max(self.distances, key=lambda d: (-d.accuracy_p, d.accuracy))
        other = min(self.distances, key=lambda d: d.mmd_p)
        if self.found and other.mmd_p < best.accuracy_p:
            return (
                f"; the MMD² of real and simulated {other.of} is {other.mmd:.2g}"
                f" ({_chance(other.mmd_p)})"
            )
        return (
            f"; a classifier tells real from simulated {best.of} with {best.accuracy:.2f}"
            f" ({_chance(best.accuracy_p)})"
        )


def check_options(*, horizon_s: float, seed: int) -> None:
    """Refuse what no gap can be measured with."""
    if not 0 < horizon_s < math.inf:
        raise Sim2RealError(f"a horizon is longer than nothing and ends; {horizon_s:g} s is none")
    if seed < 0:
        raise Sim2RealError(f"a seed of {seed} is none: it is 0 or more")


def measure_gap(
    twin: Twin | Path | str,
    logs: Logs,
    *,
    channels: ChannelMap | Path | str | None = None,
    rate_hz: float = 0.0,
    horizon_s: float = 0.5,
    remainder: bool = False,
    thresholds: GapThresholds = GAP_THRESHOLDS,
    seed: int = 0,
    threads: int = 0,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> Gap:
    """Measure how far a twin's best guess is off the robot that made some logs; see `Gap`.

    Logs of columns may need a map of their `channels`. `rate_hz` is their control rate, by default
    their own; `horizon_s` the time ahead that the twin predicts from each measured state. With
    `remainder` the twin's learned remainder acts. Better not with logs that the twin was identified
    from.
    """
    check_options(horizon_s=horizon_s, seed=seed)
    twin = open_twin(twin)
    return measure(
        twin,
        aligned_logs(twin, logs, channels=channels, rate_hz=rate_hz),
        horizon_s=horizon_s,
        remainder=remainder,
        thresholds=thresholds,
        seed=seed,
        threads=threads,
        report=report,
    )


def measure(
    twin: Twin,
    logs: Sequence[ControlLog],
    *,
    horizon_s: float = 0.5,
    remainder: bool = False,
    thresholds: GapThresholds = GAP_THRESHOLDS,
    seed: int = 0,
    threads: int = 0,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> Gap:
    """Measure the gap of a twin's best guess on logs of its robot; see `Gap`.

    Where the twin has a posterior, what its draws cover is looked at too. Logs that are too short
    for `horizon_s`, or of another robot, are a `Sim2RealError`.
    """
    check_options(horizon_s=horizon_s, seed=seed)
    _refuse_rates(logs)
    make = partial(make_pairs, twin, logs, seed=seed, remainder=remainder, threads=threads)
    draws = _draws(twin, thresholds.draws, seed)
    pairs = make(
        horizon_s=horizon_s, most=thresholds.segments, draws=draws, report=_stage(report, 0)
    )
    short_s = max(horizon_s / _SHORTER, _LEAST_STEPS * pairs.real.period_s)
    short = make(
        horizon_s=short_s, most=thresholds.short_segments, apart=False, report=_stage(report, 1)
    )
    tests, why = distances(pairs, seed=seed), []
    if len(pairs.recording) < _FEW:
        why.append(_few(pairs, short_s))
        close = make(horizon_s=short_s, most=thresholds.segments)
        tests = distances(close, seed=seed) + tests[-1:]
    covered = None
    if twin.posterior is not None and not remainder:
        look = partial(range_coverage, twin, logs, source="posterior", draws=thresholds.draws)
        look = partial(look, horizon_s=horizon_s, seed=seed, threads=threads)
        try:
            covered = look(thresholds=thresholds, report=_stage(report, 2))
        except Sim2RealError as error:
            why.append(f"what the posterior covers was not looked at: {error}")
    channels = channel_gaps(pairs, seed=seed)
    report(1, 1)
    return Gap(
        twin=twin.name,
        version=twin.version,
        horizon_s=pairs.horizon_s,
        recordings=tuple(log.episode for log in logs),
        seconds=seconds_of(logs),
        segments=len(pairs.recording),
        diverged=pairs.diverged,
        channels=channels,
        distances=tests,
        places=find_hotspots(short, pairs, seed=seed),
        coverage=covered,
        notes=(*_left_out(logs), *_notes(pairs, channels), *why),
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


def _draws(twin: Twin, count: int, seed: int) -> Floats | None:
    """(draws, parameters) of the posterior, where the twin has one."""
    if twin.posterior is None:
        return None
    return np.asarray(drawn(twin, "posterior", count=count, seed=seed).numpy())


def _few(pairs: ReplayedPairs, short_s: float) -> str:
    return (
        f"there are {len(pairs.recording)} segments of {pairs.horizon_s:.2g} s only: whether"
        f" real and simulated can be told apart is tested on those of {short_s:.2g} s too"
    )


def _left_out(logs: Sequence[ControlLog]) -> Iterator[str]:
    samples = sum(log.left_out for log in logs)
    if samples:
        yield (
            f"{samples} samples that are no numbers, or cannot be, are left out; `sim2real data"
            " check` says which"
        )


def _notes(pairs: ReplayedPairs, channels: Sequence[ChannelGap]) -> tuple[str, ...]:
    notes = []
    in_spreads = [channel.in_spread for channel in channels if channel.in_spread is not None]
    if in_spreads and np.median(in_spreads) > 1:
        notes.append(
            f"after {pairs.horizon_s:.2g} s most predictions are worse than a mean would be: the"
            " motion is unstable, and a shorter --horizon-s tells more; or the recordings are of"
            " another robot, or in other units than the twin takes them for"
        )
    still = [channel.name for channel in channels if not channel.moves]
    if still:
        notes.append(
            f"readings of {', '.join(still)} change by hardly more than noise: the motions leave"
            " them alone, or the sensor is stuck"
        )
    silent = [channel.name for channel in channels if not channel.declared]
    if silent:
        notes.append(
            f"the twin declares no noise of {', '.join(silent)}, or hardly any: every difference"
            " counts, and noise levels are of a ten thousandth of the range; [effects.sensor] of"
            " the twin is where it is declared"
        )
    if pairs.diverged:
        notes.append(f"the twin diverged in {pairs.diverged} segments, which are left out")
    if pairs.real.assumed:
        notes.append(
            f"no sensor measures {', '.join(pairs.real.assumed)}: they start as the model has them"
        )
    missing = [spec.name for spec in pairs.real.log.contract.sensors if not pairs.seen(spec.name)]
    if missing:
        notes.append(f"the logs have no readings of {', '.join(missing)}")
    stays = [channel.name for channel in channels if not channel.predicts]
    if stays:
        notes.append(
            f"after {pairs.horizon_s:.2g} s, that it stays as it is predicts {', '.join(stays)}"
            " better than the twin"
        )
    late = [
        f"{c.name} {1000 * c.lag.seconds:+.0f} ms ({100 * c.lag.explains:.0f} %)"
        for c in channels
        if c.lag is not None and c.lag.told
    ]
    if late:
        notes.append(
            "behind the prediction (+) or ahead of it (-), and the share of the square error that"
            f" this is: {', '.join(late)}"
        )
    return tuple(notes)


def _chance(p_value: float) -> str:
    least = 1.0 / (1 + EXCHANGES)
    return f"p ≤ {least:.2g}" if p_value <= least else f"p = {p_value:.2g}"


def _stage(report: Callable[[int, int], None], place: int) -> Callable[[int, int], None]:
    return lambda done, of: report(place * of + done, _STAGES * of)
