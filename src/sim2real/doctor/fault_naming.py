"""From signal relations to findings: which fault changed which channel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim2real.arrays import Bools, Floats
from sim2real.doctor.findings import Fault, Finding
from sim2real.doctor.graph_interface import InputColumn
from sim2real.doctor.signal_relations import RelationKind, SignalRelation, relate
from sim2real.units import counted


@dataclass(frozen=True)
class ExplainedColumns:
    """How the broken columns of some channels are explained."""

    columns: tuple[InputColumn, ...]
    relations: list[SignalRelation]
    whole: bool = True
    """Whether nothing is left unexplained."""

    @property
    def cost(self) -> float:
        """How far-fetched the explanation is: one cause for few columns is best."""
        kinds = {(self.columns[r.column].channel, r.kind) for r in self.relations}
        unknown = sum(r.kind is RelationKind.UNKNOWN for r in self.relations)
        return len(kinds) + 0.01 * len(self.relations) + 5.0 * unknown + 10.0 * (not self.whole)


def explain(
    columns: tuple[InputColumn, ...], logged: Floats, true: Floats, rows: Bools
) -> ExplainedColumns:
    """What happened to columns of `logged` (rows, columns), compared with `true`; see `relate`."""
    return ExplainedColumns(columns, relate(logged, true, rows, [c.group for c in columns]))


def named(explained: ExplainedColumns) -> list[Finding]:
    """A finding for each fault, with all columns that have it."""
    by_fault: dict[Fault, list[SignalRelation]] = {}
    for relation in explained.relations:
        fault = _fault(relation, explained)
        by_fault.setdefault(fault, []).append(relation)
    found = []
    for fault, relations in by_fault.items():
        names = tuple(explained.columns[r.column].name for r in relations)
        shares = [r.share if r.kind is not RelationKind.UNKNOWN else 0.3 for r in relations]
        evidence = _evidence(relations, explained.columns)
        others = _ALTERNATIVES.get(fault, ())
        found.append(Finding(fault, names, evidence, float(np.mean(shares)), others))
    return sorted(found, key=lambda f: -f.confidence * len(f.where))


def _fault(relation: SignalRelation, explained: ExplainedColumns) -> Fault:
    column = explained.columns[relation.column]
    kind = relation.kind
    of_action = column.channel in ("action", "command")
    if kind is RelationKind.ABSENT:
        return Fault.STALE if of_action else Fault.MISSING
    at_limit = column.group == "action" and abs(abs(relation.value) - 1) < 1e-6
    if kind is RelationKind.STUCK and at_limit:
        return Fault.SATURATED
    if kind is RelationKind.SHIFTED:
        return Fault.ACTION_DELAYED if of_action else Fault.OBSERVATION_DELAYED
    if kind is RelationKind.PERMUTED:
        return Fault.QUATERNION if column.quaternion else Fault.PERMUTED
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
    return _FAULTS.get(kind, Fault.SCALE)


_FAULTS = {
    RelationKind.STUCK: Fault.STALE,
    RelationKind.HELD: Fault.STALE,
    RelationKind.NEGATED: Fault.SIGN,
    RelationKind.DEGREES: Fault.DEGREES,
    RelationKind.CLIPPED: Fault.SATURATED,
}
_ALTERNATIVES = {
    Fault.POSE: (Fault.OFFSET,),
    Fault.OFFSET: (Fault.POSE,),
    Fault.MISSING: (Fault.STALE,),
}
_WORDS = {
    RelationKind.ABSENT: "is always zero or NaN",
    RelationKind.STUCK: "keeps one value ({value:.4g}) in the whole log",
    RelationKind.SHIFTED: "is {periods} late",
    RelationKind.PERMUTED: "holds the values of {other}",
    RelationKind.NEGATED: "has the opposite sign",
    RelationKind.DEGREES: "is {value:.4g} times what it should be",
    RelationKind.OFFSET: "is off by {value:+.4g}",
    RelationKind.SCALED: "is {value:.4g} times what it should be",
    RelationKind.HELD: "repeats its last value where it should have changed",
    RelationKind.CLIPPED: "is clipped at its largest and smallest values",
    RelationKind.AFFINE: "is scaled by {value:.4g} and shifted",
    RelationKind.UNKNOWN: "disagrees in a way that no single fault explains",
}


_SOURCES = {
    "reading": "the value that the network's observation was computed from",
    "goal": "the value that the network's observation was computed from",
    "observation": "the observation computed from the readings",
    "action": "the network's output for the logged observation",
    "command": "the command computed from the logged action",
}


def _evidence(relations: list[SignalRelation], columns: tuple[InputColumn, ...]) -> str:
    first = relations[0]
    column = columns[first.column]
    other = columns[int(first.value)].name if first.kind is RelationKind.PERMUTED else ""
    periods = counted(round(first.value), "period") if first.kind is RelationKind.SHIFTED else ""
    how = _WORDS[first.kind].format(value=first.value, other=other, periods=periods)
    more = f", and {len(relations) - 1} more like it" if len(relations) > 1 else ""
    share = 100 * float(np.mean([r.share for r in relations]))
    return (
        f"{column.channel.capitalize()} {column.name} {how}{more}, compared with"
        f" {_SOURCES[column.channel]} (explains {share:.0f} % of the periods that disagree)."
    )


def merged(found: list[Finding]) -> list[Finding]:
    """Each fault once, even if several links show it."""
    kept: dict[Fault, Finding] = {}
    for finding in found:
        kept.setdefault(finding.fault, finding)
    return sorted(kept.values(), key=lambda f: -f.confidence * len(f.where))
