"""What the doctor reports: named faults with evidence and remedy, or that there are none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from sim2real.plain import PlainData
from sim2real.results import Result
from sim2real.units import counted


class Fault(StrEnum):
    """Ways in which the interface between a policy and a robot breaks."""

    PERMUTED = "joints permuted"
    SIGN = "sign flipped"
    DEGREES = "degrees for radians"
    OFFSET = "zero offset"
    SCALE = "wrong scale or gain units"
    QUATERNION = "quaternion order"
    HISTORY = "history reversed"
    NORMALISER = "normaliser lost or doubled"
    OBSERVATION_DELAYED = "observation delayed"
    ACTION_DELAYED = "action delayed"
    RATE = "rate lower than promised"
    STALE = "stale or frozen channel"
    SATURATED = "saturated action"
    POSE = "wrong default pose"
    MISSING = "observation that the robot does not have"


REMEDIES = {
    Fault.PERMUTED: "Map channels to joints by name, in the contract's order.",
    Fault.SIGN: "Negate it in the driver: its positive direction must be that of the twin's model.",
    Fault.DEGREES: "Convert at the driver: the contract is in radians.",
    Fault.OFFSET: "Calibrate the zero: move to a known pose and set the offset in the driver.",
    Fault.SCALE: "Check the unit, gear ratio and gain of the driver against the contract's.",
    Fault.QUATERNION: "Reorder the quaternion to the contract's order, w first.",
    Fault.HISTORY: "Stack the periods oldest first, as the contract says.",
    Fault.NORMALISER: "Give the network raw observations: policy.onnx contains the normaliser.",
    Fault.OBSERVATION_DELAYED: "Read the newest sample each period; look for queues and filters.",
    Fault.ACTION_DELAYED: "Send the action in the period it was computed in; look for queues.",
    Fault.RATE: "Make the loop as fast as the contract says, or train at the rate it reaches.",
    Fault.STALE: "Check the channel's cable, bus and driver; stop the robot on stale readings.",
    Fault.SATURATED: "Check gains and limits: a policy at its limits no longer controls.",
    Fault.POSE: "Use the contract's default pose as the zero of observations and commands.",
    Fault.MISSING: "Give the robot this sensor, or train a policy that does not need it.",
}


@dataclass(frozen=True)
class Finding(PlainData, also=("remedy",)):
    """One fault of the interface."""

    fault: Fault
    where: tuple[str, ...]
    """Channels, joints or columns that show it."""
    evidence: str
    """What the log shows, in numbers."""
    confidence: float
    """From 0 to 1: the share of the disagreement it explains, less for indirect evidence."""
    alternatives: tuple[Fault, ...] = ()
    """Other faults that would look the same in these logs."""

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return REMEDIES[self.fault]


@dataclass(frozen=True, kw_only=True, eq=False)
class Diagnosis(Result, kind="diagnosis", also=("verdict", "fine")):
    """What the doctor found in some logs of one robot under one policy."""

    findings: tuple[Finding, ...]
    """The most probable first; empty if the interface is fine."""
    logs: int
    periods: int
    physics: str
    """How far the robot's motion is from the twin's, in words; '' if a fault was found."""
    gap: float
    """Error of the twin's prediction of these logs, relative to that of its own worlds: about one
    if nothing differs, nan if it could not be measured."""
    notes: tuple[str, ...] = ()
    """What could not be checked."""

    @property
    def fine(self) -> bool:
        """Whether the interface keeps its contract."""
        return not self.findings

    @property
    def verdict(self) -> str:
        """The result in one sentence."""
        if self.findings:
            return f"{self.findings[0].fault}: {', '.join(self.findings[0].where)}"
        return self.physics

    def sentences(self) -> Iterator[str]:
        """The whole result, line by line."""
        for number, finding in enumerate(self.findings, start=1):
            sure = f"{100 * finding.confidence:.0f} %"
            yield f"{number}. {finding.fault} ({sure}): {', '.join(finding.where)}"
            yield f"   {finding.evidence}"
            if finding.alternatives:
                yield f"   It could also be: {', '.join(finding.alternatives)}."
            yield f"   Remedy: {finding.remedy}"
        if self.fine:
            yield self.physics
        yield from (f"Note: {note}." for note in self.notes)
        yield f"{counted(self.logs, 'log')}, {counted(self.periods, 'period')}."


def joined(per_log: Sequence[Sequence[Finding]]) -> tuple[Finding, ...]:
    """Findings of several logs of one robot: each fault once, the best supported first.

    An interface fault shows in every log; what shows in only a few is an event, and comes last.
    """
    by_fault: dict[Fault, list[Finding]] = {}
    for findings in per_log:
        for finding in findings:
            by_fault.setdefault(finding.fault, []).append(finding)
    result, weight = [], {}
    for fault, found in by_fault.items():
        strongest = max(found, key=lambda f: f.confidence)
        others = dict.fromkeys(a for f in found for a in f.alternatives if a != fault)
        logs = sum(any(f.fault == fault for f in findings) for findings in per_log)
        seen = f" In {logs} of {len(per_log)} logs." if len(per_log) > 1 else ""
        weight[fault] = strongest.confidence * logs
        result.append(
            replace(
                strongest,
                confidence=round(strongest.confidence, 3),
                where=tuple(dict.fromkeys(name for f in found for name in f.where)),
                evidence=strongest.evidence + seen,
                alternatives=tuple(others),
            )
        )
    return tuple(sorted(result, key=lambda f: -weight[f.fault]))
