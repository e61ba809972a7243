"""Names and clocks: channels that a log lacks, a slow loop, and readings that are not renewed."""

from __future__ import annotations

from itertools import groupby

import numpy as np

from sim2real.doctor.findings import Fault, Finding
from sim2real.doctor.thresholds import DoctorThresholds
from sim2real.logs import ControlLog


def clock_findings(log: ControlLog, limits: DoctorThresholds) -> list[Finding]:
    """Faults that show without any physics: missing channels, a slow loop, stale readings."""
    return [*_missing(log), *_rate(log, limits), *_unread(log, limits)]


def _missing(log: ControlLog) -> list[Finding]:
    absent = [f"sensor/{name}" for name in log.missing]
    empty = [
        f"sensor/{sensor.name}"
        for sensor, part in log.columns()
        if sensor.name not in log.missing and not np.isfinite(log.readings[:, part]).any()
    ]
    parts = []
    if absent:
        parts.append(f"the log has no channel {', '.join(absent)}")
    if empty:
        parts.append(f"{', '.join(empty)} never has a value of the contract's shape")
    if not parts:
        return []
    evidence = f"The contract has {len(log.contract.sensors)} sensors; {' and '.join(parts)}."
    return [Finding(Fault.MISSING, tuple(absent + empty), evidence, 1.0)]


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
    evidence = (
        f"A control period lasts {1e3 * usual:.1f} ms (median; mean {1e3 * mean:.1f} ms), and the"
        f" contract promises {1e3 * promised:.1f} ms: {1.0 / mean:.1f} Hz instead of"
        f" {log.contract.rate_hz:g} Hz. {100 * missed:.0f} % of the periods last more than"
        " 1.5 times as long as promised."
    )
    return [Finding(Fault.RATE, ("clock",), evidence, 1.0)]


def _unread(log: ControlLog, limits: DoctorThresholds) -> list[Finding]:
    names, worst, longest = [], 0.0, 0
    for k, sensor in enumerate(log.contract.sensors):
        if sensor.name in log.missing or len(log.times) < 10:
            continue
        old = ~log.fresh[:, k]
        run = max((len(list(rows)) for lost, rows in groupby(old) if lost), default=0)
        if old.mean() > limits.stale_share or run >= limits.stale_periods:
            names.append(f"sensor/{sensor.name}")
            worst, longest = max(worst, float(old.mean())), max(longest, run)
    if not names:
        return []
    evidence = f"No new reading in {100 * worst:.0f} % of the periods, up to {longest} in a row."
    return [Finding(Fault.STALE, tuple(names), evidence, 1.0)]
