"""Faults from relations: what was done to which channel, in the words of a finding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim2real.doctor.findings import Fault, Finding
from sim2real.doctor.graph_interface import InputColumn
from sim2real.doctor.signal_relations import RelationKind, SignalRelation


@dataclass(frozen=True, kw_only=True)
class ExplainedColumns:
    """What was done to some columns of one kind of channel."""

    columns: tuple[InputColumn, ...]
    relations: list[SignalRelation]
    whole: bool
    """Whether nothing is left unexplained."""

    @property
    def cost(self) -> float:
        """How far-fetched it is: one cause for few columns is best."""
        kinds = {(self.columns[r.column].channel, r.kind) for r in self.relations}
        unknown = sum(r.kind is RelationKind.UNKNOWN for r in self.relations)
        return len(kinds) + 0.01 * len(self.relations) + 5.0 * unknown + 10.0 * (not self.whole)


def named(explained: ExplainedColumns) -> list[Finding]:
    """Findings for relations, columns with the same fault together."""
    by_fault: dict[Fault, list[SignalRelation]] = {}
    for relation in explained.relations:
        fault = _fault(relation, explained)
        by_fault.setdefault(fault, []).append(relation)
    found = []
    for fault, relations in by_fault.items():
        names = tuple(explained.columns[r.column].name for r in relations)
        channel = explained.columns[relations[0].column].channel
        sure = float(
            np.mean([r.share if r.kind is not RelationKind.UNKNOWN else 0.3 for r in relations])
        )
        found.append(
            Finding(
                fault=fault,
                where=names,
                evidence=_evidence(relations, explained, channel),
                confidence=sure,
                alternatives=_alternatives(fault, channel),
            )
        )
    return sorted(found, key=lambda f: -f.confidence * len(f.where))


def _fault(relation: SignalRelation, explained: ExplainedColumns) -> Fault:
    column = explained.columns[relation.column]
    kind = relation.kind
    of_action = column.channel in ("action", "command")
    if kind is RelationKind.ABSENT:
        return Fault.STALE if of_action else Fault.MISSING
    if (
        kind is RelationKind.STUCK
        and column.group == "action"
        and abs(abs(relation.value) - 1) < 1e-6
    ):
        return Fault.SATURATED
    if kind in (RelationKind.STUCK, RelationKind.HELD):
        return Fault.STALE
    if kind is RelationKind.SHIFTED:
        return Fault.ACTION_DELAYED if of_action else Fault.OBSERVATION_DELAYED
    if kind is RelationKind.PERMUTED:
        return Fault.QUATERNION if column.quaternion else Fault.PERMUTED
    if kind is RelationKind.NEGATED:
        return Fault.SIGN
    if kind is RelationKind.DEGREES:
        return Fault.DEGREES
    if kind is RelationKind.CLIPPED:
        return Fault.SATURATED
    if kind is RelationKind.OFFSET:
        together = [
            r
            for r in explained.relations
            if r.kind is RelationKind.OFFSET and explained.columns[r.column].position
        ]
        pose = column.position and (
            column.channel == "command" or (column.channel == "observation" and len(together) > 1)
        )
        return Fault.POSE if pose else Fault.OFFSET
    return Fault.SCALE


def _alternatives(fault: Fault, channel: str) -> tuple[Fault, ...]:
    if fault is Fault.POSE:
        return (Fault.OFFSET,)
    if fault is Fault.OFFSET:
        return (Fault.POSE,)
    if fault is Fault.MISSING:
        return (Fault.STALE,)
    return ()


_WORDS = {
    RelationKind.ABSENT: "is always zero or no number",
    RelationKind.STUCK: "has one value ({value:.4g}) in the whole log",
    RelationKind.SHIFTED: "is {value:+.0f} period(s) late",
    RelationKind.PERMUTED: "holds the values of {other}",
    RelationKind.NEGATED: "has the opposite sign",
    RelationKind.DEGREES: "is {value:.4g} times what it should be",
    RelationKind.OFFSET: "is off by {value:+.4g}",
    RelationKind.SCALED: "is {value:.4g} times what it should be",
    RelationKind.HELD: "repeats its last value where it should have changed",
    RelationKind.CLIPPED: "is cut off at its largest and smallest values",
    RelationKind.AFFINE: "is scaled by {value:.4g} and shifted",
    RelationKind.UNKNOWN: "disagrees in a way that no single fault explains",
}


def _evidence(relations: list[SignalRelation], explained: ExplainedColumns, channel: str) -> str:
    first = relations[0]
    columns = explained.columns
    other = columns[int(first.value)].name if first.kind is RelationKind.PERMUTED else ""
    how = _WORDS[first.kind].format(value=first.value, other=other)
    more = f", and {len(relations) - 1} more like it" if len(relations) > 1 else ""
    source = {
        "reading": "what the network's observation was computed from",
        "goal": "what the network's observation was computed from",
        "observation": "what the readings give",
        "action": "what the network gives for the logged observation",
        "command": "what the logged action gives",
    }[channel]
    share = 100 * float(np.mean([r.share for r in relations]))
    return (
        f"{channel.capitalize()} {columns[first.column].name} {how}{more}, against {source}"
        f" (explains {share:.0f} % of the periods that disagree)."
    )


def merged(found: list[Finding]) -> list[Finding]:
    """The same fault once, where several links show it."""
    kept: dict[Fault, Finding] = {}
    for finding in found:
        if finding.fault not in kept:
            kept[finding.fault] = finding
    return sorted(kept.values(), key=lambda f: -f.confidence * len(f.where))
