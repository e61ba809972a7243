"""One policy of a loop on its robot, as steps that are kept."""

from __future__ import annotations

from dataclasses import dataclass, field

from sim2real.attribution import Failures
from sim2real.evaluation import Prediction
from sim2real.intervals import Rate, wilson
from sim2real.loop.rounds import LadderTaken, Round
from sim2real.loop.stages.policy import prediction_of
from sim2real.loop.steps import KeptResult, KeptStep
from sim2real.plain import of_plain

BATCH = 10
"""Attempts in one step."""
_FUTURE_TRIALS = 100
"""Further attempts that the prediction at the end is about."""


@dataclass
class Turn:
    """One policy on the robot, with every step that led to it."""

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
    def steps(self) -> list[KeptResult]:
        """The steps it is made of."""
        steps = (self.policy, self.known, self.sim, self.draws, self.ladder, *self.batches)
        return [done for done in (*steps, self.failures) if done]

    def found(self) -> Round:
        """The numbers of it all."""
        return Round(
            sim=Rate.from_dict(self.sim.result),
            ladder=of_plain(LadderTaken, self.ladder.result),
            predicted=self._prediction(trials=BATCH),
            real=wilson(sum(self.won), len(self.won)),
            expected=self._prediction(trials=_FUTURE_TRIALS, won=self.won),
            failures=Failures.from_dict(self.failures.result) if self.failures else None,
            steps=tuple(done.folder.name for done in self.steps),
            won=tuple(self.won),
            episodes=tuple(str(e) for batch in self.batches for e in batch.result["episodes"]),
        )

    def _prediction(self, *, trials: int, won: list[bool] | None = None) -> Prediction | None:
        """What attempts show, from the robots that this one may be and the attempts it `won`."""
        return prediction_of(self.draws, trials=trials, won=won or ()) if self.draws else None
