"""Names and clocks: what a log lacks, how fast its loop was, and what it stopped hearing."""

from __future__ import annotations

import numpy as np

from sim2real.arrays import Bools
from sim2real.doctor.findings import Fault, Finding
from sim2real.doctor.thresholds import DoctorThresholds
from sim2real.logs import ControlLog


def clock_findings(log: ControlLog, limits: DoctorThresholds) -> list[Finding]:
    """Faults that show without any physics: missing channels, a slow loop, readings not renewed."""
    return [*_missing(log), *_rate(log, limits), *_unread(log, limits)]


def _missing(log: ControlLog) -> list[Finding]:
    absent = [f"sensor/{name}" for name in log.missing]
    empty = []
    for sensor in log.contract.sensors:
        values = log.readings[:, log.column(sensor.name)]
        if sensor.name not in log.missing and not np.isfinite(values).any():
            empty.append(f"sensor/{sensor.name}")
    if not absent and not empty:
        return []
    parts = []
    if absent:
        parts.append(f"the log has no channel {', '.join(absent)}")
    if empty:
        parts.append(f"{', '.join(empty)} never holds a number of the contract's shape")
    return [
        Finding(
            fault=Fault.MISSING,
            where=tuple(absent + empty),
            evidence=f"The contract wants {len(log.contract.sensors)} sensors;"
            f" {' and '.join(parts)}.",
            confidence=1.0,
        )
    ]


def _rate(log: ControlLog, limits: DoctorThresholds) -> list[Finding]:
    if len(log.times) < 5:
        return []
    promised = 1.0 / log.contract.rate_hz
    steps = np.diff(log.times)
    usual = float(np.median(steps))
    mean = float((log.times[-1] - log.times[0]) / len(steps))
    if max(usual, mean) <= limits.slow_loop * promised:
        return []
    missed = float((steps > 1.5 * promised).mean())
    return [
        Finding(
            fault=Fault.RATE,
            where=("clock",),
            evidence=f"A period lasts {1e3 * usual:.1f} ms (median; mean {1e3 * mean:.1f} ms) where"
            f" the contract promises {1e3 * promised:.1f} ms: {1.0 / mean:.1f} Hz instead of"
            f" {log.contract.rate_hz:g} Hz. {100 * missed:.0f} % of them are longer by half.",
            confidence=1.0,
        )
    ]


def _unread(log: ControlLog, limits: DoctorThresholds) -> list[Finding]:
    names, worst, longest = [], 0.0, 0
    for k, sensor in enumerate(log.contract.sensors):
        if sensor.name in log.missing or len(log.times) < 10:
            continue
        old = ~log.fresh[:, k]
        run = _longest(old)
        if old.mean() > limits.stale_share or run >= limits.stale_periods:
            names.append(f"sensor/{sensor.name}")
            worst, longest = max(worst, float(old.mean())), max(longest, run)
    if not names:
        return []
    return [
        Finding(
            fault=Fault.STALE,
            where=tuple(names),
            evidence=f"No new reading in {100 * worst:.0f} % of the periods, up to {longest} in a"
            " row.",
            confidence=1.0,
        )
    ]


def _longest(flags: Bools) -> int:
    """Longest run of true."""
    longest = run = 0
    for flag in flags:
        run = run + 1 if flag else 0
        longest = max(longest, run)
    return longest
