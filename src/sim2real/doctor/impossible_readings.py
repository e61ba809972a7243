"""Readings that occur in no world of the twin: a single row shows a unit, a sign or an order.

This needs no motion, so it works even if the supervisor stopped the robot at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from sim2real.arrays import Floats
from sim2real.contract import Limits, SensorSpec
from sim2real.doctor.findings import Fault, Finding
from sim2real.doctor.signal_relations import DEGREES
from sim2real.doctor.simulated_reference import ReferenceEpisodes
from sim2real.doctor.thresholds import DoctorThresholds
from sim2real.logs import ControlLog


class ReadingBounds:
    """What readings look like in the twin's worlds."""

    def __init__(
        self,
        driven: ReferenceEpisodes,
        excited: ReferenceEpisodes,
        limits: Limits,
        thresholds: DoctorThresholds,
    ) -> None:
        self._limits = thresholds
        self._stopped = {joint.name for joint in limits.joints if joint.position_high < 1e6}
        both = [np.abs(e.readings).reshape(-1, e.readings.shape[2]) for e in (driven, excited)]
        self._largest = np.nanmax(np.concatenate(both), axis=0)
        self._first = driven.readings[:, 0]
        rows = driven.readings.reshape(-1, driven.readings.shape[2])
        self._low, self._high = np.nanmin(rows, axis=0), np.nanmax(rows, axis=0)

    def findings(self, log: ControlLog) -> list[Finding]:
        """Faults that show in the starting pose, or in readings of positions and orientations."""
        return self._start(log) or self._placed(log)

    def units(self, log: ControlLog) -> list[Finding]:
        """Readings in another unit: many times the largest of all worlds."""
        far = self._limits.other_unit
        largest = np.nan_to_num(np.abs(log.readings)).max(axis=0)
        by_fault: dict[Fault, list[tuple[str, float]]] = {}
        for sensor, part in log.columns():
            usual = max(float(self._largest[part].max()), 1e-3)
            ratio = float(largest[part].max()) / usual
            # A joint without stops may have turned many times.
            if ratio < (4 * far if self._turns(sensor) else far):
                continue
            angle = sensor.unit.startswith("rad")
            fault = Fault.DEGREES if angle and ratio < 2.0 * DEGREES else Fault.SCALE
            by_fault.setdefault(fault, []).append((f"sensor/{sensor.name}", ratio))
        findings = []
        for fault, found in by_fault.items():
            evidence = (
                f"{found[0][0]} reads up to {max(r for _, r in found):.3g} times the largest value"
                f" in any of the twin's worlds; one radian is {DEGREES:.1f} degrees."
            )
            others = (Fault.SCALE,) if fault is Fault.DEGREES else ()
            findings.append(Finding(fault, tuple(n for n, _ in found), evidence, 0.9, others))
        return findings

    def _turns(self, sensor: SensorSpec) -> bool:
        """Whether it reads a joint without stops."""
        return sensor.kind == "jointpos" and sensor.of not in self._stopped

    def _start(self, log: ControlLog) -> list[Finding]:
        angles = [(s, part.start) for s, part in log.columns() if s.kind == "jointpos"]
        names, columns = [s.name for s, _ in angles], [column for _, column in angles]
        turning = np.array([s.unit == "rad" and self._turns(s) for s, _ in angles])
        known = np.flatnonzero(np.isfinite(log.readings[:, columns]).all(axis=1))
        if not columns or not len(known) or known[0] > 3:
            return []
        at = log.readings[known[0], columns]
        first = self._first[:, columns]
        middle = np.nanmedian(first, axis=0)

        def distance(pose: Floats) -> Floats:
            """From the middle; for a joint that turns freely, whole turns do not count."""
            far = pose - middle
            return np.abs(np.where(turning, np.remainder(far + np.pi, 2 * np.pi) - np.pi, far))

        spread = np.nanmax(distance(first), axis=0)

        def away(pose: Floats) -> Floats:
            return np.asarray(distance(pose) - spread)

        odd = away(at) > self._limits.start_outside
        if not odd.any():
            return []
        where = tuple(n for n, o in zip(names, odd, strict=True) if o)
        here = f"{where[0]} starts at {at[odd][0]:.2f}, the twin's worlds at {middle[odd][0]:.2f}"

        def excess(pose: Floats) -> float:
            return float(np.maximum(0.0, away(pose)).sum())

        flipped = np.where(odd, -at, at)
        order = min(_orders(len(at)), key=lambda o: excess(at[o]), default=list(range(len(at))))
        enough = 0.4 * excess(at)
        if excess(flipped) < min(enough, excess(at[order]) + 0.1):
            evidence = f"{here}; with the opposite sign it would match."
            return [Finding(Fault.SIGN, where, evidence, 0.6, (Fault.POSE, Fault.PERMUTED))]
        if excess(at[order]) < enough:
            mixed = ", ".join(names[k] for k in order)
            evidence = f"{here}; in the order {mixed} all joints would match."
            moved = tuple(names[k] for k in range(len(at)) if order[k] != k)
            return [Finding(Fault.PERMUTED, moved, evidence, 0.6, (Fault.POSE,))]
        if away(at).max() > self._limits.other_pose:
            evidence = f"{here}, all within {float(spread[odd][0]):.2f} of that."
            return [Finding(Fault.POSE, where, evidence, 0.5, (Fault.OFFSET,))]
        return []

    def _placed(self, log: ControlLog) -> list[Finding]:
        """Vectors of sensors without a joint that lie where no world has them."""
        for sensor, part in log.columns():
            if sensor.kind in ("jointpos", "jointvel") or sensor.width < 2:
                continue
            values = log.readings[:, part]
            values = values[np.isfinite(values).all(axis=1)]
            low, high = self._low[part], self._high[part]
            slack = 0.5 * (high - low) + 0.02 * np.abs(low + high)

            def inside(
                rows: Floats,
                low: Floats = low - slack,
                high: Floats = high + slack,
            ) -> float:
                return float(((rows > low) & (rows < high)).all(axis=1).mean())

            if not len(values) or inside(values) > 0.5:
                continue
            fault, how = _replaced(values, inside, quaternion=bool(sensor.quaternion))
            name = f"sensor/{sensor.name}"
            evidence = (
                f"{name} lies outside its range in the twin's worlds in"
                f" {100 * (1 - inside(values)):.0f} % of the periods; {how}."
            )
            others = () if fault is Fault.OFFSET else (Fault.OFFSET,)
            return [Finding(fault, (name,), evidence, 0.6, others)]
        return []


def _replaced(
    values: Floats, inside: Callable[[Floats], float], *, quaternion: bool
) -> tuple[Fault, str]:
    """What brings a vector back into its range."""
    width = values.shape[1]
    if quaternion and max(inside(np.roll(values, k, axis=1)) for k in (1, -1)) > 0.9:
        return Fault.QUATERNION, "with its components in another order it does not"
    for k in range(width):
        signs = np.ones(width)
        signs[k] = -1.0
        if inside(values * signs) > 0.9:
            return Fault.SIGN, f"with component {k} negated it does not"
    for order in itertools.islice(itertools.permutations(range(width)), 1, 24):
        if inside(values[:, list(order)]) > 0.9:
            return Fault.PERMUTED, f"with its components in the order {list(order)} it does not"
    for factor in (1e-3, 1e3, 1e-2, 1e2, 1 / DEGREES, DEGREES):
        if inside(values * factor) > 0.9:
            return Fault.SCALE, f"multiplied by {factor:.3g} it does not"
    return Fault.OFFSET, "no other sign, order or unit explains it"


def _orders(count: int) -> list[list[int]]:
    """Ways to mix up joints: two swapped, all shifted by one, reversed."""
    plain = list(range(count))
    found = []
    for one, other in itertools.combinations(plain, 2):
        order = plain.copy()
        order[one], order[other] = other, one
        found.append(order)
    if count > 2:
        found += [plain[1:] + plain[:1], plain[-1:] + plain[:-1], plain[::-1]]
    return found
