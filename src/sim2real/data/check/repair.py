"""Repairs of faults: a new episode that names its parent and every fix.

Time stamps are sorted, scaled or moved; single samples are interpolated and longer
spans are dropped. The `process` in the new episode's provenance counts all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from sim2real.arrays import Floats, Ints
from sim2real.data.check.bad_values import bad_samples
from sim2real.data.check.frozen_channels import runs_of
from sim2real.data.check.log_fault import LogFault
from sim2real.data.episode import Episode, Signal
from sim2real.data.video import Video
from sim2real.errors import Sim2RealError

MAX_INTERPOLATED = 5
"""Most bad samples in a row that are interpolated; more are dropped."""

Channels = dict[str, Signal | Video]


def repair_episode(episode: Episode, faults: Iterable[LogFault]) -> Episode:
    """An episode derived from this one, with those of these faults repaired that can be.

    The others stay as they are. If none can be repaired, a `Sim2RealError` is raised.
    """
    # Values and drops first: their sample numbers are those of the original.
    order = list(_REPAIRS)
    wanted = sorted(
        (fault for fault in faults if fault.repairable), key=lambda fault: order.index(fault.kind)
    )
    channels: Channels = dict(episode.channels)
    done = []
    dropped: dict[str, set[int]] = {}
    for fault in wanted:
        for name in fault.channels:
            if name not in channels:
                raise Sim2RealError(f"episode {episode.id} has no channel {name!r} to repair")
        done.append(_REPAIRS[fault.kind](channels, fault, dropped))
    for name, rows in dropped.items():
        channels[name] = _without(channels[name], np.array(sorted(rows), dtype=int))
    if not done:
        raise Sim2RealError(f"episode {episode.id} has no fault that can be repaired")
    return episode.derive("repair: " + "; ".join(done), channels=channels)


def _values(channels: Channels, fault: LogFault, dropped: dict[str, set[int]]) -> str:
    """Bad values: short spans between good rows are interpolated, others dropped."""
    name = fault.channel
    signal = _signal(channels, name)
    broken, absurd = bad_samples(signal, name)
    marks = np.zeros(len(signal.times), dtype=bool)
    marks[list(fault.samples)] = True
    lost: set[int] = set()
    for first, end in runs_of(marks):
        if end - first > MAX_INTERPOLATED or first == 0 or end == len(marks):
            lost.update(range(int(first), int(end)))
    bridged = np.setdiff1d(np.flatnonzero(marks), sorted(lost))
    flat = signal.values.reshape(len(marks), -1).copy()
    rows = np.arange(len(marks))
    for column in range(flat.shape[1]):
        # Only the bad values of a sample are replaced, and from good values only.
        wrong = (broken | absurd)[:, column]
        mine = bridged[(broken if fault.kind == "not-finite" else absurd)[bridged, column]]
        if len(mine) and not wrong.all():
            flat[mine, column] = np.interp(mine, rows[~wrong], flat[~wrong, column])
    channels[name] = replace(signal, values=flat.reshape(signal.values.shape))
    dropped.setdefault(name, set()).update(lost)
    return f"{fault.kind} in {name}: {len(bridged)} samples interpolated, {len(lost)} dropped"


def _frozen(channels: Channels, fault: LogFault, dropped: dict[str, set[int]]) -> str:
    dropped.setdefault(fault.channel, set()).update(fault.samples)
    return f"stuck in {fault.channel}: {len(fault.samples)} samples dropped"


def _unit(channels: Channels, fault: LogFault, dropped: dict[str, set[int]]) -> str:
    name = fault.channel
    signal = _signal(channels, name)
    flat = signal.values.reshape(len(signal.times), -1).astype(np.float64)
    component = fault.span.component
    column = slice(None) if component is None else component
    flat[:, column] /= fault.amount
    channels[name] = replace(signal, values=flat.reshape(signal.values.shape))
    where = name if component is None else f"{name}[{component}]"
    return f"unit of {where}: divided by {fault.amount:.6g}"


def _restamp(channels: Channels, fault: LogFault, fixed: Callable[[Floats], Floats]) -> None:
    for name in fault.channels:
        channels[name] = replace(channels[name], times=fixed(channels[name].times))


def _unfinite(channels: Channels, fault: LogFault, dropped: dict[str, set[int]]) -> str:
    times = channels[fault.channel].times
    good = np.flatnonzero(np.isfinite(times))
    lost = np.array(
        [row for row in fault.samples if len(good) == 0 or not good[0] < row < good[-1]], int
    )
    filled = np.setdiff1d(np.array(fault.samples, int), lost)

    def fixed(stamps: Floats) -> Floats:
        new = stamps.copy()
        if len(filled):
            new[filled] = np.interp(filled, good, stamps[good])
        new[lost] = 0.0
        return new

    _restamp(channels, fault, fixed)
    for name in fault.channels:
        dropped.setdefault(name, set()).update(int(row) for row in lost)
    where = ", ".join(fault.channels)
    return f"time-not-finite in {where}: {len(filled)} stamps interpolated, {len(lost)} dropped"


def _backward(channels: Channels, fault: LogFault, dropped: dict[str, set[int]]) -> str:
    times = channels[fault.channel].times
    where = ", ".join(fault.channels)
    order = np.argsort(times, kind="stable")
    moved = int((order != np.arange(len(times))).sum())
    steps = np.diff(times[order])
    middle = float(np.median(np.diff(times)))
    videos = any(isinstance(channels[name], Video) for name in fault.channels)
    if not videos and not dropped and steps.min() > 0.3 * middle and steps.max() < 3 * middle:
        # Sorted they are regular: the rows were written in the wrong order.
        for name in fault.channels:
            signal = _signal(channels, name)
            channels[name] = replace(signal, times=times[order], values=signal.values[order])
        return f"time-backward in {where}: {moved} samples put in order"
    new, touched = _advanced(times, middle)
    _restamp(channels, fault, lambda _: new)
    return f"time-backward in {where}: {touched} stamps interpolated, later ones set after earlier"


def _advanced(times: Floats, step: float) -> tuple[Floats, int]:
    """Stamps that never decrease: wrong ones interpolated, those of a clock set back moved on."""
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


def _repeated(channels: Channels, fault: LogFault, dropped: dict[str, set[int]]) -> str:
    rows = np.array(fault.samples, dtype=int)
    where = ", ".join(fault.channels)
    signals = [channels[name] for name in fault.channels]
    twice = all(
        isinstance(signal, Signal)
        and np.array_equal(signal.values[rows], signal.values[rows - 1], equal_nan=True)
        for signal in signals
    )
    if twice:
        for name in fault.channels:
            dropped.setdefault(name, set()).update(int(row) for row in rows)
        return f"time-repeated in {where}: {len(rows)} samples that were logged twice dropped"

    def fixed(stamps: Floats) -> Floats:
        new = stamps.copy()
        anchors = np.setdiff1d(np.arange(len(new)), rows)
        new[rows] = np.interp(rows, anchors, stamps[anchors])
        ends = rows[rows > anchors[-1]]
        step = float(np.median(np.diff(stamps[anchors]))) if len(anchors) > 1 else 1.0
        new[ends] = stamps[anchors[-1]] + step * (ends - anchors[-1])
        return new

    _restamp(channels, fault, fixed)
    return f"time-repeated in {where}: {len(rows)} stamps spread up to the next one"


def _rate(channels: Channels, fault: LogFault, dropped: dict[str, set[int]]) -> str:
    stated = max(channels[name].stated_hz for name in fault.channels)
    where = ", ".join(fault.channels)
    if fault.measured_hz > 0:
        for name in fault.channels:
            if channels[name].stated_hz:
                channels[name] = replace(channels[name], stated_hz=fault.measured_hz)
        return (
            f"time-rate of {where}: stated {stated:.6g} Hz corrected to {fault.measured_hz:.6g} Hz"
        )
    return _stretch(channels, fault, fault.amount)


def _drift(channels: Channels, fault: LogFault, dropped: dict[str, set[int]]) -> str:
    return _stretch(channels, fault, 1.0 / fault.amount)


def _stretch(channels: Channels, fault: LogFault, factor: float) -> str:
    """Scales the stamps of every channel with the same clock about the first one."""
    old = channels[fault.channel].times
    names = [n for n, c in channels.items() if np.array_equal(c.times, old)]
    names = names if fault.kind == "time-rate" else list(fault.channels)
    start = old[np.isfinite(old)][0]
    for name in names:
        stamps = start + (channels[name].times - start) * factor
        channels[name] = replace(channels[name], times=stamps)
    return f"{fault.kind} of {', '.join(names)}: time stamps scaled by {factor:.8g}"


def _shift(channels: Channels, fault: LogFault, dropped: dict[str, set[int]]) -> str:
    name, by = fault.channel, fault.amount
    channels[name] = replace(channels[name], times=channels[name].times - by)
    return (
        f"shift of {name}: time stamps moved {by:.6g} s earlier, the least that makes it causal;"
        " the robot's own lag is not known"
    )


def _signal(channels: Channels, name: str) -> Signal:
    signal = channels[name]
    if not isinstance(signal, Signal):
        raise Sim2RealError(f"channel {name!r} is a video: only its time stamps can be repaired")
    return signal


def _without(channel: Signal | Video, rows: Ints) -> Signal | Video:
    if isinstance(channel, Video):
        raise Sim2RealError("video frames cannot be dropped: repair the time stamps instead")
    keep = np.ones(len(channel.times), dtype=bool)
    keep[rows] = False
    return replace(channel, times=channel.times[keep], values=channel.values[keep])


_REPAIRS: dict[str, Callable[[Channels, LogFault, dict[str, set[int]]], str]] = {
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
"""What repairs each kind of fault, in the order in which it is done."""
