"""Is B better than A? The answer from two sets of trials.

Trials of one robot, or of one draw of parameters, are correlated. If there are enough robots or
draws and some were tried several times, they are what counts: rates and their difference include
the scatter between robots, and in the tests each robot has one vote, for the policy that succeeds
more often on it. Trials of fewer robots count one by one, and the result is about those robots.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from sim2real.arrays import Floats, Ints
from sim2real.errors import Sim2RealError
from sim2real.evaluation.paired_outcomes import (
    PairedOutcomes,
    by_condition,
    in_order,
    matched,
    matched_units,
    mcnemar,
    paired_difference,
    unit_counts,
    unpaired_p,
    votes,
)
from sim2real.evaluation.sequential import SequentialTest, SequentialVerdict, more_than_planned
from sim2real.evaluation.trial import Trial
from sim2real.evaluation.trial_source import TrialSource, open_trials
from sim2real.intervals import (
    Difference,
    Rate,
    check_confidence,
    clustered,
    unpaired_difference,
    wilson,
)
from sim2real.results import Result

_MIN_MATCHED = 0.8
"""Least share of the smaller set with partners for a paired comparison."""
_MIN_UNITS = 5
"""Fewest robots or draws that are compared instead of trials."""

_Units = Sequence[tuple[Ints, Ints]]
"""For A and B: successes and trials of each robot or draw."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison(Result, kind="comparison"):
    """Two policies side by side."""

    first: Rate
    second: Rate
    paired: bool
    """Whether trials share conditions and were compared pair by pair."""
    pairs: int
    """Pairs that were compared: by condition, or else in the order of the trials."""
    wins: tuple[int, int]
    """Pairs in which only A, and only B, succeeded."""
    unmatched: tuple[int, int]
    """Trials of A and B without a partner."""
    difference: Difference
    """Success of B minus A: paired bootstrap, or Newcombe's interval."""
    p_value: float
    """That neither is better, valid if no more trials are made."""
    test: str
    """Name of the test behind `p_value`."""
    sequential: SequentialVerdict
    """A verdict that is valid after every trial."""
    by_unit: int = 0
    """Robots or draws that were compared, each by all of its trials; 0 if trials count."""
    unit_wins: tuple[int, int] = (0, 0)
    """Robots or draws on which A, and B, succeeded more often."""
    notes: tuple[str, ...] = ()
    """Limits of this comparison, a sentence each."""

    def sentences(self) -> Iterator[str]:
        """The result, a line each; the verdict comes last."""
        yield f"A: {self.first}"
        yield f"B: {self.second}"
        p_value = f"p {self.p_value:.2g} ({self.test}) if no more trials are made"
        yield f"B - A: {self.difference}, {p_value}"
        if not self.paired:
            yield "conditions do not match: compared as independent trials"
        else:
            yield f"{self.pairs} pairs: {self.wins[0]} won by A alone, {self.wins[1]} by B alone"
            if any(self.unmatched):
                a, b = self.unmatched
                yield f"without a partner: {a} trials of A, {b} of B"
        if self.by_unit:
            wins = f"A on {self.unit_wins[0]}, B on {self.unit_wins[1]}"
            yield f"{self.by_unit} {self.sequential.counted}: more success of {wins}"
        yield from self.notes
        yield str(self.sequential)


def compare(
    a: TrialSource,
    b: TrialSource,
    *,
    confidence: float = 0.95,
    most: int | None = None,
    source: Literal["sim", "real"] | None = None,
    by_order: bool = False,
    seed: int = 0,
) -> Comparison:
    """Compare two policies: pair by pair if their conditions match, else as independent.

    `most` is the planned number of trials of each policy, if there is one. `source` selects only
    simulated or only real trials. `by_order` says that the k-th trials of both started alike.
    """
    check_confidence(confidence)
    first, second = open_trials(a, world=source), open_trials(b, world=source)
    _refuse(first, second)
    units = [unit_counts(trials) for trials in (first, second)]
    by_unit = _repeated(units) and min(len(tried) for _, tried in units) >= _MIN_UNITS
    pairs, paired, by_name = _paired_up(first, second, by_unit=by_unit, by_order=by_order)
    rates = [
        clustered(won, tried, confidence=confidence)
        if by_unit
        else wilson(int(won.sum()), int(tried.sum()), confidence=confidence)
        for won, tried in units
    ]
    counted, deciding = "pairs", pairs
    if by_unit:
        counted = _kind(first)
        deciding = votes(by_condition(pairs)[0] if paired else _differences(units))
        most = _plan_of_units(most, len(pairs), len(deciding))
        p_value, test = mcnemar(deciding), f"sign test over {counted}"
    elif paired:
        p_value, test = mcnemar(pairs), "McNemar"
    else:
        p_value, test = unpaired_p(
            (rates[0].successes, rates[1].successes), (rates[0].n, rates[1].n)
        )
    verdict = SequentialTest(alpha=1 - confidence, most=most).read(deciding, seed=seed)
    return Comparison(
        first=rates[0],
        second=rates[1],
        paired=paired,
        pairs=len(pairs),
        wins=pairs.wins,
        unmatched=(len(first) - len(pairs), len(second) - len(pairs)),
        difference=paired_difference(pairs, confidence=confidence, seed=seed)
        if paired
        else unpaired_difference(*rates),
        p_value=p_value,
        test=test,
        sequential=replace(verdict, counted=counted),
        by_unit=len(deciding) if by_unit else 0,
        unit_wins=deciding.wins if by_unit else (0, 0),
        notes=tuple(_notes(first, second, units, by_unit=by_unit, by_name=by_name, paired=paired)),
    )


def _refuse(first: Sequence[Trial], second: Sequence[Trial]) -> None:
    """Refuse sets of trials that cannot be compared."""
    for name, trials in (("A", first), ("B", second)):
        if not trials:
            raise Sim2RealError(f"{name} has no trial with an outcome")
    if len({trial.source for trial in (*first, *second)}) > 1:
        raise Sim2RealError(
            "simulated and real trials cannot be compared with each other; choose one kind with"
            " --source"
        )


def _paired_up(
    first: Sequence[Trial], second: Sequence[Trial], *, by_unit: bool, by_order: bool
) -> tuple[PairedOutcomes, bool, bool]:
    """(pairs, whether pairs share a condition, robot or draw, whether only robot or draw match)."""
    pairs = (in_order if by_order else matched)(first, second, by_unit=by_unit)
    enough = max(1.0, _MIN_MATCHED * min(len(first), len(second)))
    if by_order or len(pairs) >= enough:
        return pairs, True, False
    if by_unit:
        pairs = matched_units(first, second)
        if len(pairs) >= enough:
            return pairs, True, True
    return in_order(first, second), False, False


def _repeated(units: _Units) -> bool:
    return any(int(tried.max()) > 1 for _, tried in units)


def _differences(units: _Units) -> Floats:
    """(units,) success on the k-th robot or draw of B minus that on the k-th of A."""
    first, second = (won / tried for won, tried in units)
    fewer = min(len(first), len(second))
    return np.asarray(second[:fewer] - first[:fewer])


def _plan_of_units(most: int | None, pairs: int, units: int) -> int | None:
    """Robots or draws in a plan of `most` trials, if `units` of them gave `pairs` pairs."""
    if most is None:
        return None
    if pairs > most:
        raise more_than_planned(pairs, most)
    return math.ceil(most * units / pairs)


def _kind(trials: Sequence[Trial]) -> str:
    return "draws" if trials[0].source == "sim" else "robots"


def _notes(
    first: Sequence[Trial],
    second: Sequence[Trial],
    units: _Units,
    *,
    by_unit: bool,
    by_name: bool,
    paired: bool,
) -> Iterator[str]:
    kind = _kind(first)
    tried = [len(first), len(second)]
    if by_unit:
        tried = [len(of_each) for of_each, _ in units]
        one = kind.removesuffix("s")
        yield f"trials of one {one} are correlated: {kind} were compared, each by all its trials"
        yield f"look at the last line only once, when all {kind} have had their trials"
        if by_name:
            yield f"{kind} match by name; their trials have no recorded conditions"
    elif _repeated(units):
        named = max(len({t.unit for t in trials if t.unit}) for trials in (first, second))
        if named > 1:
            yield f"this is about the {named} {kind} that were tried, not about others"
    if not paired and tried[0] != tried[1]:
        name, more = ("A", tried[0]) if tried[0] > tried[1] else ("B", tried[1])
        what = kind if by_unit else "trials"
        yield f"the sequential test took {min(tried)} of {name}'s {more} {what}, in their order"
