"""Repairs of what a check found: a new episode that names its parent and every fix.

Nothing is invented in silence. Time stamps are put in order, scaled or moved; single samples are
interpolated between their neighbours and longer stretches are dropped; all of it is counted in
the process that the new episode's provenance tells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from sim2real.data.check.finding import Finding
from sim2real.data.check.values import bad_samples
from sim2real.data.episode import Episode, Signal
from sim2real.data.video import Video
from sim2real.errors import Sim2RealError

BRIDGED = 5
"""Most bad samples in a row that are interpolated; more are dropped."""

Channels = dict[str, Signal | Video]


def repair(episode: Episode, findings: Iterable[Finding]) -> Episode:
    """An episode derived from this one without those of its findings that can be repaired.

    Those that cannot are left as they are. Without anything to repair it is a `Sim2RealError`.
    """
    wanted = [finding for finding in findings if finding.repairable]
    # Values and drops first: their sample numbers are those of the original.
    wanted.sort(key=lambda finding: list(_REPAIRS).index(finding.kind))
    channels: Channels = dict(episode.channels)
    done = []
    dropped: dict[str, set[int]] = {}
    for finding in wanted:
        for name in finding.channels:
            if name not in channels:
                raise Sim2RealError(f"episode {episode.id} has no channel {name!r} to repair")
        done.append(_REPAIRS[finding.kind](channels, finding, dropped))
    for name, rows in dropped.items():
        channels[name] = _without(channels[name], np.array(sorted(rows), dtype=int))
    if not done:
        raise Sim2RealError(f"episode {episode.id} has nothing that can be repaired")
    return episode.derive("repair: " + "; ".join(done), channels=channels)


def _values(channels: Channels, finding: Finding, dropped: dict[str, set[int]]) -> str:
    """Bad values: short runs between good rows are interpolated, the others dropped."""
    name = finding.channel
    signal = _signal(channels, name)
    broken, absurd = bad_samples(signal, name)
    marks = np.zeros(len(signal.times), dtype=bool)
    marks[list(finding.samples)] = True
    edges = np.diff(np.r_[0, marks.astype(np.int8), 0])
    runs = list(zip(np.flatnonzero(edges == 1), np.flatnonzero(edges == -1), strict=True))
    lost: set[int] = set()
    for first, end in runs:
        if end - first > BRIDGED or first == 0 or end == len(marks):
            lost.update(range(int(first), int(end)))
    bridged = np.setdiff1d(np.flatnonzero(marks), sorted(lost))
    flat = signal.values.reshape(len(marks), -1).copy()
    rows = np.arange(len(marks))
    for column in range(flat.shape[1]):
        # Only bad values of a sample are replaced, and no bad one is used for it.
        wrong = (broken | absurd)[:, column]
        mine = bridged[(broken if finding.kind == "not-finite" else absurd)[bridged, column]]
        if len(mine) and not wrong.all():
            flat[mine, column] = np.interp(mine, rows[~wrong], flat[~wrong, column])
    channels[name] = replace(signal, values=flat.reshape(signal.values.shape))
    dropped.setdefault(name, set()).update(lost)
    return f"{finding.kind} in {name}: {len(bridged)} samples interpolated, {len(lost)} dropped"


def _frozen(channels: Channels, finding: Finding, dropped: dict[str, set[int]]) -> str:
    dropped.setdefault(finding.channel, set()).update(finding.samples)
    return f"stuck in {finding.channel}: {len(finding.samples)} samples dropped"


def _unit(channels: Channels, finding: Finding, dropped: dict[str, set[int]]) -> str:
    name = finding.channel
    signal = _signal(channels, name)
    flat = signal.values.reshape(len(signal.times), -1).astype(np.float64)
    component = finding.place.component
    column = slice(None) if component is None else component
    flat[:, column] /= finding.amount
    channels[name] = replace(signal, values=flat.reshape(signal.values.shape))
    where = name if component is None else f"{name}[{component}]"
    return f"unit of {where}: divided by {finding.amount:.6g}"


def _restamp(
    channels: Channels, finding: Finding, fixed: Callable[[np.ndarray], np.ndarray]
) -> None:
    for name in finding.channels:
        channels[name] = replace(channels[name], times=fixed(channels[name].times))


def _unfinite(channels: Channels, finding: Finding, dropped: dict[str, set[int]]) -> str:
    times = channels[finding.channel].times
    good = np.flatnonzero(np.isfinite(times))
    lost = np.array(
        [row for row in finding.samples if len(good) == 0 or not good[0] < row < good[-1]], int
    )
    filled = np.setdiff1d(np.array(finding.samples, int), lost)

    def fixed(stamps: np.ndarray) -> np.ndarray:
        new = stamps.copy()
        if len(filled):
            new[filled] = np.interp(filled, good, stamps[good])
        new[lost] = 0.0
        return new

    _restamp(channels, finding, fixed)
    for name in finding.channels:
        dropped.setdefault(name, set()).update(int(row) for row in lost)
    where = ", ".join(finding.channels)
    return f"time-not-finite in {where}: {len(filled)} stamps interpolated, {len(lost)} dropped"


def _backward(channels: Channels, finding: Finding, dropped: dict[str, set[int]]) -> str:
    times = channels[finding.channel].times
    where = ", ".join(finding.channels)
    order = np.argsort(times, kind="stable")
    moved = int((order != np.arange(len(times))).sum())
    steps = np.diff(times[order])
    middle = float(np.median(np.diff(times)))
    videos = any(isinstance(channels[name], Video) for name in finding.channels)
    if not videos and not dropped and steps.min() > 0.3 * middle and steps.max() < 3 * middle:
        # In order they are regular: rows were written in the wrong order.
        for name in finding.channels:
            signal = _signal(channels, name)
            channels[name] = replace(signal, times=times[order], values=signal.values[order])
        return f"time-backward in {where}: {moved} samples put in order"
    new, touched = _advanced(times, middle)
    _restamp(channels, finding, lambda _: new)
    return f"time-backward in {where}: {touched} stamps interpolated, later ones set after earlier"


def _advanced(times: np.ndarray, step: float) -> tuple[np.ndarray, int]:
    """Stamps that do not step back: single wrong ones interpolated, a clock set back set on."""
    new, touched = times.copy(), 0
    for row in np.flatnonzero(np.diff(times) < 0) + 1:
        if new[row] >= new[row - 1]:
            continue
        if row + 1 < len(new) and new[row + 1] > new[row - 1]:
            new[row] = 0.5 * (new[row - 1] + new[row + 1])
            touched += 1
        elif row > 1 and new[row] > new[row - 2]:
            new[row - 1] = 0.5 * (new[row - 2] + new[row])
            touched += 1
        else:
            new[row:] += new[row - 1] + step - new[row]
    return np.maximum.accumulate(new), touched


def _repeated(channels: Channels, finding: Finding, dropped: dict[str, set[int]]) -> str:
    rows = np.array(finding.samples, dtype=int)
    where = ", ".join(finding.channels)
    signals = [channels[name] for name in finding.channels]
    twice = all(
        isinstance(signal, Signal)
        and np.array_equal(signal.values[rows], signal.values[rows - 1], equal_nan=True)
        for signal in signals
    )
    if twice:
        for name in finding.channels:
            dropped.setdefault(name, set()).update(int(row) for row in rows)
        return f"time-repeated in {where}: {len(rows)} samples logged twice dropped"

    def fixed(stamps: np.ndarray) -> np.ndarray:
        new = stamps.copy()
        anchors = np.setdiff1d(np.arange(len(new)), rows)
        new[rows] = np.interp(rows, anchors, stamps[anchors])
        ends = rows[rows > anchors[-1]]
        step = float(np.median(np.diff(stamps[anchors]))) if len(anchors) > 1 else 1.0
        new[ends] = stamps[anchors[-1]] + step * (ends - anchors[-1])
        return new

    _restamp(channels, finding, fixed)
    return f"time-repeated in {where}: {len(rows)} stamps spread up to the next one"


def _rate(channels: Channels, finding: Finding, dropped: dict[str, set[int]]) -> str:
    stated = max(channels[name].stated_hz for name in finding.channels)
    where = ", ".join(finding.channels)
    if "stated" in finding.message and finding.amount > 0:
        for name in finding.channels:
            if channels[name].stated_hz:
                channels[name] = replace(channels[name], stated_hz=finding.amount)
        return f"time-rate of {where}: stated {stated:.6g} Hz corrected to {finding.amount:.6g} Hz"
    return _stretch(channels, finding, abs(finding.amount))


def _drift(channels: Channels, finding: Finding, dropped: dict[str, set[int]]) -> str:
    return _stretch(channels, finding, 1.0 / finding.amount)


def _stretch(channels: Channels, finding: Finding, factor: float) -> str:
    """Scales the stamps about the first one, of every channel with the same clock."""
    old = channels[finding.channel].times
    names = [n for n, c in channels.items() if np.array_equal(c.times, old)]
    names = names if finding.kind == "time-rate" else list(finding.channels)
    start = old[np.isfinite(old)][0]
    for name in names:
        stamps = start + (channels[name].times - start) * factor
        channels[name] = replace(channels[name], times=stamps)
    return f"{finding.kind} of {', '.join(names)}: time stamps scaled by {factor:.8g}"


def _shift(channels: Channels, finding: Finding, dropped: dict[str, set[int]]) -> str:
    name, by = finding.channel, finding.amount
    channels[name] = replace(channels[name], times=channels[name].times - by)
    return (
        f"shift of {name}: time stamps moved {by:.6g} s earlier, the least that makes it causal;"
        " the robot's own lag is not known"
    )


def _signal(channels: Channels, name: str) -> Signal:
    signal = channels[name]
    if not isinstance(signal, Signal):
        raise Sim2RealError(f"channel {name!r} holds pictures: its values are not repaired")
    return signal


def _without(channel: Signal | Video, rows: np.ndarray) -> Signal | Video:
    if isinstance(channel, Video):
        raise Sim2RealError("frames of a video cannot be dropped: its time stamps need repair")
    keep = np.ones(len(channel.times), dtype=bool)
    keep[rows] = False
    return replace(channel, times=channel.times[keep], values=channel.values[keep])


_REPAIRS: dict[str, Callable[[Channels, Finding, dict[str, set[int]]], str]] = {
    "not-finite": _values,
    "absurd": _values,
    "stuck": _frozen,
    "unit": _unit,
    "time-not-finite": _unfinite,
    "time-repeated": _repeated,
    "time-backward": _backward,
    "time-rate": _rate,
    "clock-drift": _drift,
    "shift": _shift,
}
"""In the order in which they are done."""
