"""Faults of time stamps: on their own, and against those of other channels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from sim2real.arrays import Floats, Ints
from sim2real.data.check.channel_roles import ChannelQuantity
from sim2real.data.check.log_fault import FaultSpan, LogFault
from sim2real.data.check.scalar_series import ScalarSeries, increasing
from sim2real.data.check.thresholds import CheckThresholds
from sim2real.data.episode import Episode

_OF_ROWS = ("time-not-finite", "time-repeated", "time-backward")
"""Faults of single stamps, which a repair replaces or drops."""


@dataclass(frozen=True)
class SharedClock:
    """Time stamps, and the channels that have exactly these time stamps."""

    times: Floats
    names: tuple[str, ...]
    claims: tuple[tuple[float, tuple[str, ...]], ...]
    """Stated rates [Hz], with the channels that state them."""
    index: Ints
    """A strictly increasing subset."""

    @property
    def stated_hz(self) -> float:
        """The first stated rate [Hz], 0 for none."""
        return self.claims[0][0] if self.claims else 0.0

    @property
    def steps(self) -> Floats:
        """Steps of the increasing subset [s]."""
        return np.diff(self.times[self.index])


def shared_clocks(episode: Episode) -> list[SharedClock]:
    """The different clocks of an episode; channels with equal stamps share one."""
    groups: dict[bytes, list[str]] = {}
    for name, channel in episode.channels.items():
        groups.setdefault(channel.times.tobytes(), []).append(name)
    found = []
    for names in groups.values():
        times = episode.channels[names[0]].times
        claims: dict[float, tuple[str, ...]] = {}
        for name in names:
            stated = episode.channels[name].stated_hz
            if stated > 0:
                claims[stated] = (*claims.get(stated, ()), name)
        found.append(SharedClock(times, tuple(names), tuple(claims.items()), increasing(times)))
    return found


def check_clock(clock: SharedClock, thresholds: CheckThresholds) -> Iterator[LogFault]:
    """Stamps that are not finite, repeated, backward, missing, or at another rate than stated."""
    finite = np.isfinite(clock.times)
    index = np.flatnonzero(finite)
    steps = np.diff(clock.times[index])
    wrong = (
        (
            "time-not-finite",
            np.flatnonzero(~finite),
            "of {total} time stamps are not finite",
            "interpolate them between their neighbours, or drop the samples",
        ),
        (
            "time-repeated",
            index[1:][steps == 0],
            "of {total} time stamps repeat the one before",
            "drop rows logged twice; spread others up to the next stamp, or log with a finer clock",
        ),
        (
            "time-backward",
            index[1:][steps < 0],
            "time stamps step back, by up to {back:.6g} s",
            "sort rows that were logged out of order; log with a monotonic clock",
        ),
    )
    for kind, rows, what, remedy in wrong:
        if len(rows):
            said = what.format(total=len(clock.times), back=-float(steps.min(initial=0.0)))
            yield _fault(clock, kind, rows, f"{len(rows)} {said}", remedy)
    yield from _gaps(clock, thresholds)
    yield from _stated_rate(clock, thresholds)


def _gaps(clock: SharedClock, thresholds: CheckThresholds) -> Iterator[LogFault]:
    steps = clock.steps
    if len(steps) < 5:
        return
    limit = _gap_limit(steps, thresholds)
    # Repeated and backward stamps leave holes of their own, which are reported already.
    whole = np.diff(clock.index) == 1
    wide = np.flatnonzero((steps > limit) & whole)
    if len(wide):
        rows = clock.index[wide + 1]
        middle = float(np.median(steps))
        lost = round(float(steps[wide].sum()) / middle) - len(wide)
        yield _fault(
            clock,
            "time-gap",
            rows,
            f"{len(wide)} gaps of up to {float(steps[wide].max()):.6g} s where the step is "
            f"{middle:.6g} s: about {lost} samples are missing",
            "split the episode there; do not differentiate or integrate across the gaps",
            severity="warning",
            repairable=False,
        )


def _gap_limit(steps: Floats, thresholds: CheckThresholds) -> float:
    middle, high = np.quantile(steps, [0.5, 0.95])
    spread = thresholds.gap_spread * (high - middle)
    return float(max(thresholds.gap_steps * middle, middle + spread))


def _stated_rate(clock: SharedClock, thresholds: CheckThresholds) -> Iterator[LogFault]:
    steps = clock.steps
    if len(steps) < 10:
        return
    steps = steps[steps <= _gap_limit(steps, thresholds)]
    mean = float(steps.mean())
    uncertain = 4.0 * float(steps.std()) / mean / np.sqrt(len(steps))
    for stated_hz, names in clock.claims:
        ratio = 1.0 / (mean * stated_hz)
        if abs(ratio - 1.0) <= thresholds.rate_error + uncertain:
            continue
        scale = _decimal(ratio)
        cause = f"; the stamps seem to be in units of {scale:g} s" if scale else ""
        yield _fault(
            replace(clock, names=names),
            "time-rate",
            np.array([0, len(clock.times) - 1]),
            f"stated {stated_hz:.6g} Hz, but the time stamps show {1.0 / mean:.6g} Hz "
            f"({100 * (ratio - 1):+.3g} %){cause}",
            "give the stamps in seconds"
            if scale
            else "use the time stamps, not sample / stated rate",
            amount=scale,
            measured_hz=0.0 if scale else 1.0 / mean,
        )


def _decimal(ratio: float) -> float:
    """The unit of the stamps [s] if their rate is off by 1e3, 1e6 or 1e9; else 0."""
    for power in (3, 6, 9):
        if abs(ratio * 10.0**power - 1.0) < 0.2:
            return float(10.0**-power)
    return 0.0


def check_clock_readings(
    all_series: list[ScalarSeries], thresholds: CheckThresholds
) -> Iterator[LogFault]:
    """Channels that hold clock readings, such as wall time, against their time stamps."""
    for series in all_series:
        clock = series.role.quantity == ChannelQuantity.TIME
        if not clock or series.unit not in ("s", "ms", "us", "ns"):
            continue
        held, times = series.values * series.role.si, series.times
        if len(held) < 20 or not (np.diff(held) > 0).all():
            continue
        rate, offset = np.polyfit(times - times[0], held - held[0], 1)
        wander = held - held[0] - rate * (times - times[0]) - offset
        away = abs(rate - 1.0) * (times[-1] - times[0])
        noise = float(wander.std())
        if away < max(series.step_s, 6 * noise) or abs(rate - 1.0) < thresholds.clock_error:
            continue
        kind = "time-rate" if abs(rate - 1.0) > thresholds.rate_error else "clock-drift"
        yield LogFault(
            kind=kind,
            channel=series.channel,
            span=series.span_of(None),
            message=f"the clock in {series.label} runs {rate:.6g} s per second of time stamps "
            f"({1e6 * (rate - 1):+.4g} ppm)",
            remedy=f"use {series.channel} as the time, or find out which clock is wrong",
        )


def check_clocks_agree(
    found: list[SharedClock], steady: set[frozenset[str]], thresholds: CheckThresholds
) -> Iterator[LogFault]:
    """Clocks that should agree and drift apart.

    `steady` holds pairs of channels whose motion shows that their clocks agree; motion is the
    better evidence.
    """
    told: set[str] = set()
    regular = [clock for clock in found if len(clock.index) >= 100]
    for pair in combinations(regular, 2):
        # The one that keeps a stated rate worse, else the one with fewer channels, is at fault.
        one, other = sorted(pair, key=lambda clock: _blame(clock, thresholds.clock_error))
        rate = _apart(one, other, thresholds.clock_error)
        agree = any(len(p & set(one.names)) and len(p & set(other.names)) for p in steady)
        if rate is None or agree:
            continue
        if other.names[0] in told or one.names[0] in told:
            continue
        told.update(other.names)
        span = float(other.times[other.index[-1]] - other.times[other.index[0]])
        yield _fault(
            other,
            "clock-drift",
            np.array([0, len(other.times) - 1]),
            f"its clock runs {1e6 * (rate - 1):+.4g} ppm against that of {one.names[0]}: "
            f"{abs(rate - 1) * span:.4g} s apart after {span:.4g} s",
            "stamp both channels with one clock, or scale the stamps of the wrong one",
            amount=rate,
        )


def _apart(one: SharedClock, other: SharedClock, least: float) -> float | None:
    """Rate of the second clock against the first where they should be equal, else None."""
    a, b = one.times[one.index], other.times[other.index]
    step_a, step_b = float(np.median(np.diff(a))), float(np.median(np.diff(b)))
    if abs(step_a / step_b - 1.0) > 0.1:
        return None  # two rates, or a clock that is wrong altogether: another kind
    if len(a) == len(b) and abs(a[0] - b[0]) < 2 * step_a:
        behind = b - a
        index = np.arange(len(a))
        slope, offset = np.polyfit(index, behind, 1)
        grown = abs(slope) * len(a)
        wander = float((behind - slope * index - offset).std())
        # Free loops with jitter walk apart at random; that is no drift.
        walk = float((np.diff(a) - np.diff(b)).std()) * np.sqrt(len(a))
        rate = (b[-1] - b[0]) / (a[-1] - a[0])
        clear = grown > max(step_a, 6 * walk, 5 * wander)
        return rate if clear and abs(rate - 1.0) > least else None
    if one.stated_hz != other.stated_hz or one.stated_hz <= 0:
        return None
    # Stamps without any jitter are counted by a device: then its rate is its clock's.
    even = all(float(np.diff(t).std()) < 1e-4 * step_a for t in (a, b))
    rate = step_b / step_a
    grown = abs(rate - 1.0) * min(a[-1] - a[0], b[-1] - b[0])
    return rate if even and grown > step_a and abs(rate - 1.0) > least else None


def _blame(clock: SharedClock, least: float) -> tuple[float, int]:
    kept = clock.times[clock.index]
    rate = (len(kept) - 1) / (kept[-1] - kept[0])
    wrong = abs(rate / clock.stated_hz - 1.0) if clock.stated_hz else 0.0
    return (wrong if wrong > least / 2 else 0.0, -len(clock.names))


def _fault(
    clock: SharedClock,
    kind: str,
    rows: Ints,
    message: str,
    remedy: str,
    *,
    severity: str = "error",
    repairable: bool = True,
    amount: float = 0.0,
    measured_hz: float = 0.0,
) -> LogFault:
    shared = f" (shared by {len(clock.names)} channels)" if len(clock.names) > 1 else ""
    count = len(rows) if kind in _OF_ROWS or kind == "time-gap" else len(clock.times)
    return LogFault(
        kind=kind,
        severity=severity,
        channel=clock.names[0],
        also=clock.names[1:],
        span=FaultSpan.of(clock.times, int(rows[0]), int(rows[-1]), count),
        message=message + shared,
        remedy=remedy,
        repairable=repairable,
        samples=tuple(int(row) for row in rows) if kind in _OF_ROWS else (),
        amount=amount,
        measured_hz=measured_hz,
    )
