"""What a loop did and found: its rounds, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from sim2real.attribution import Advice
from sim2real.evaluation import Prediction
from sim2real.intervals import Rate, wilson
from sim2real.loop.stages.policy import prediction_of
from sim2real.loop.steps import KeptResult, KeptStep

BATCH = 10
"""Attempts in one step."""
_FUTURE_TRIALS = 100
"""Further attempts that the prediction at the end is about."""


@dataclass
class Round:
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

    def to_dict(self) -> dict[str, object]:
        """Plain data."""
        predicted, expected = self.predicted, self.expected
        return {
            "sim_success": self.sim.result,
            "ladder": self.ladder.result,
            "predicted": predicted.to_dict() if predicted else None,
            "real_success": self.real.to_dict(),
            "expected": expected.to_dict() if expected else None,
            "failures": self.failures.result if self.failures else None,
            "steps": [done.folder.name for done in self.steps],
        }

    @property
    def steps(self) -> list[KeptResult]:
        """The steps it is made of."""
        steps = (self.policy, self.known, self.sim, self.draws, self.ladder, *self.batches)
        return [done for done in (*steps, self.failures) if done]


@dataclass(frozen=True, kw_only=True)
class LoopResult:
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

    def to_dict(self) -> dict[str, object]:
        """Plain data."""
        first, last = self.rounds[0].to_dict(), self.rounds[-1].to_dict()
        return {
            "task": self.task,
            "robot": self.robot,
            "strategy": self.strategy,
            "sim_success": first["sim_success"],
            "real_success_before": first["real_success"],
            "sim_success_after": last["sim_success"],
            "predicted": last["predicted"],
            "real_success_after": last["real_success"],
            "expected": last["expected"],
            "attribution": self.attribution.result if self.attribution else None,
            "advice": [one.to_dict() for one in self.advice],
            "target": self.target,
            "met": self.met,
            "why": self.why,
            "trials": self.trials,
            "recorded_s": self.recorded_s,
            "rounds": [one.to_dict() for one in self.rounds],
        }
