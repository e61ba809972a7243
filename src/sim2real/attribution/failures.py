"""The failures of a policy on a robot, in kinds, with what explains each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sim2real.attribution.advice import Advice
from sim2real.attribution.complaints import Complaint
from sim2real.plain import PlainData
from sim2real.results import Result
from sim2real.units import counted

UNKNOWN = "unknown"
_MIN_AS_ISOLATED = 0.02
"""Least share of simulated trials that are as isolated as a failure which resembles some of them.
Stored results are read with it, so it is not a threshold that a caller may choose."""


@dataclass(frozen=True)
class Phase:
    """A part of a trial between two changes of its motion."""

    begin_s: float
    end_s: float
    words: str

    def __str__(self) -> str:
        return f"{self.begin_s:.1f} to {self.end_s:.1f} s: {self.words}"


@dataclass(frozen=True, kw_only=True)
class ExplainingValue:
    """Values of a parameter with which the twin fails in the same way."""

    parameter: str
    dimension: str
    unit: str
    low: float
    middle: float
    high: float
    """90 % interval, and median, among the simulated trials most similar to the failures."""
    before: float
    """Value in the twin as it is."""
    p_value: float
    """Of the same distribution as all values, corrected for the number of parameters."""

    def __str__(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        return (
            f"{self.parameter} {self.low:.3g} to {self.high:.3g}{unit}"
            f" (the twin has {self.before:.3g})"
        )


@dataclass(frozen=True, kw_only=True)
class FailureKind(PlainData, also=("cause", "dimension", "met_in_training", "sentences")):
    """Failures that look alike, and what explains them."""

    episodes: tuple[str, ...]
    """Ids; the first is the most typical."""
    phases: tuple[Phase, ...]
    """Of the most typical."""
    in_training: float
    """Share of training trials at least as isolated as these failures; small if none resembles
    them."""
    failed_alike: float
    """Share of failures among the training trials most similar to these."""
    reproduced: float
    """The same share as `in_training`, of failed trials over all values that the twin allows."""
    values: tuple[ExplainingValue, ...]
    """What makes the twin fail in this way, the clearest first."""
    stopped: str = ""
    """Why a supervisor, or the robot itself, stopped the most typical; '' if neither did."""

    @property
    def met_in_training(self) -> bool:
        """Whether training had cases like it."""
        return self.in_training >= _MIN_AS_ISOLATED

    @property
    def reproducible(self) -> bool:
        """Whether the twin fails in the same way at some parameter values."""
        return self.reproduced >= _MIN_AS_ISOLATED

    @property
    def dimension(self) -> str:
        """The dimension that explains it, or 'unknown'."""
        if not self.reproducible or not self.values:
            return UNKNOWN
        return self.values[0].dimension

    @property
    def cause(self) -> str:
        """What ended these trials if something stopped them, else the dimension that explains them.

        The worlds of training have no supervisor, so that a trial cut short is like none of them.
        """
        return f"stopped: {self.stopped}" if self.stopped else self.dimension

    def sentences(self) -> list[str]:
        """What is known of it."""
        count = counted(len(self.episodes), "failure")
        found = [f"{count} of one kind, as in episode {self.episodes[0][:8]}"]
        if self.stopped:
            return [*found, f"each was stopped, this one because {self.stopped}"]
        if not self.met_in_training:
            found.append("nothing in training was similar")
        else:
            found.append(
                "the policy met similar cases in training, and failed in"
                f" {self.failed_alike:.0%} of them"
            )
        if not self.reproducible:
            found.append("no values that the twin allows reproduce it: its cause is unknown")
        elif not self.values:
            found.append("the twin fails like this at any values: chance, or the policy itself")
        else:
            found.append(
                f"the twin fails like this ({self.dimension}) with "
                + "; ".join(str(value) for value in self.values[:3])
            )
        return found


@dataclass(frozen=True, kw_only=True)
class Failures(PlainData, also=("sentences",)):
    """All failures of one policy on a robot, explained."""

    tried: int
    failed: int
    kinds: tuple[FailureKind, ...]
    diagnoses: tuple[Complaint, ...]

    def causes(self) -> str:
        """How many trials failed, and of what, in a line; '' where none failed."""
        if not self.failed:
            return ""
        parts = [f"{len(kind.episodes)} {kind.cause}" for kind in self.kinds]
        return "; ".join([f"{self.failed} of {self.tried} trials failed", *parts])

    def sentences(self) -> list[str]:
        """What is known of all of them."""
        found = [f"{self.failed} of {self.tried} trials failed"]
        found += [str(one) for one in self.diagnoses]
        return found + [", ".join(kind.sentences()) for kind in self.kinds]


@dataclass(frozen=True, kw_only=True, eq=False)
class Explanation(
    Result,
    kind="failures",
    also=(
        *(f"failures.{name}" for name in ("tried", "failed", "kinds", "diagnoses", "sentences")),
        "notes?",
    ),
    without=("failures",),
):
    """The failures of a policy, explained, and what follows from them."""

    failures: Failures
    advice: tuple[Advice, ...]
    notes: tuple[str, ...] = ()
    """What the policy does not say, and what was taken instead."""

    def sentences(self) -> Iterator[str]:
        """What is known of the failures, and what to do, a line each."""
        yield f"{self.failures.failed} of {self.failures.tried} trials failed"
        yield from self.notes
        yield from map(str, self.failures.diagnoses)
        for kind in self.failures.kinds:
            yield from ("", *kind.sentences(), *(f"  {phase}" for phase in kind.phases))
        yield from (f"do: {one.do}, because {one.why}" for one in self.advice)
