"""What a loop did and found: its rounds, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from sim2real.attribution import Advice
from sim2real.evaluation import Prediction
from sim2real.intervals import Rate, wilson
from sim2real.loop.stages.policy import prediction_of
from sim2real.loop.steps import KeptResult, KeptStep
from sim2real.plain import PlainData

BATCH = 10
"""Attempts in one step."""
_FUTURE_TRIALS = 100
"""Further attempts that the prediction at the end is about."""


@dataclass
class Round(
    PlainData,
    also=(
        "sim_success=sim.result", "ladder=ladder.result", "predicted", "real_success=real",
        "expected", "failures=failures.result", "steps=folders",
    ),
    without=("policy", "known", "sim", "draws", "batches", "asked"),
):  # fmt: skip
    """One policy on the robot, with everything that led to it."""

    policy: KeptResult
    known: KeptResult | None
    """The step that identified the robot, if one did."""
    sim: KeptResult
    ladder: KeptResult
    draws: KeptResult | None = None
    """If it was identified: successes of the robots that this one may be."""
    batches: list[KeptResult] = field(default_factory=list)
    asked: KeptStep | None = None
    """The step that says why attempts failed, if any did."""
    failures: KeptResult | None = None
    """What it said."""

    @property
    def won(self) -> list[bool]:
        """Outcome of every attempt."""
        return [bool(outcome) for batch in self.batches for outcome in batch.result["success"]]

    @property
    def real(self) -> Rate:
        """Success on the robot."""
        return wilson(sum(self.won), len(self.won))

    @property
    def predicted(self) -> Prediction | None:
        """Prediction for a batch of attempts, made before the first one."""
        return prediction_of(self.draws, trials=BATCH) if self.draws else None

    @property
    def expected(self) -> Prediction | None:
        """Prediction for further attempts, given those that were made."""
        return (
            prediction_of(self.draws, trials=_FUTURE_TRIALS, won=self.won) if self.draws else None
        )

    @property
    def folders(self) -> list[str]:
        """Names of their folders."""
        return [done.folder.name for done in self.steps]

    @property
    def steps(self) -> list[KeptResult]:
        """The steps it is made of."""
        steps = (self.policy, self.known, self.sim, self.draws, self.ladder, *self.batches)
        return [done for done in (*steps, self.failures) if done]


@dataclass(frozen=True, kw_only=True)
class LoopResult(
    PlainData,
    also=(
        "sim_success=first.sim.result", "real_success_before=first.real",
        "sim_success_after=last.sim.result", "last.predicted", "real_success_after=last.real",
        "last.expected", "attribution=attribution.result", "trials", "recorded_s",
    ),
    without=("folder", "recorded"),
):  # fmt: skip
    """How a loop ended."""

    task: str
    robot: str
    strategy: str
    folder: Path
    rounds: tuple[Round, ...]
    recorded: KeptResult
    attribution: KeptResult | None
    advice: tuple[Advice, ...]
    target: float
    met: bool
    why: str
    """Why it ended, in a sentence."""

    @property
    def trials(self) -> int:
        """Attempts that were made in all."""
        return sum(len(one.won) for one in self.rounds)

    @property
    def recorded_s(self) -> float:
        """Time of the motion that was recorded besides the attempts [s]."""
        return float(self.recorded.result["seconds"])

    @property
    def first(self) -> Round:
        """The first round."""
        return self.rounds[0]

    @property
    def last(self) -> Round:
        """The last round."""
        return self.rounds[-1]
