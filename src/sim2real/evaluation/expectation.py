"""What to expect of a robot, from simulated trials and, if there are any, real ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from sim2real.errors import Sim2RealError
from sim2real.evaluation.paired_outcomes import unit_counts
from sim2real.evaluation.prediction import Prediction, check_trials, predict
from sim2real.evaluation.prediction_powered import PoweredRate, of_trials
from sim2real.evaluation.trial_source import TrialSource, open_trials
from sim2real.intervals import check_confidence
from sim2real.results import Result


@dataclass(frozen=True, kw_only=True, eq=False)
class Expectation(
    Result,
    kind="prediction",
    also=("prediction?", "expected?", "real?=powered", "note?"),
    without=("powered", "missing"),
):
    """How often a robot will succeed; a part that could not be computed is None."""

    prediction: Prediction | None
    """From simulated trials alone, by draws, before the robot was tried."""
    expected: Prediction | None
    """The same, given the real trials."""
    powered: PoweredRate | None
    """Success in the real trials, with simulation of the same conditions."""
    real: int
    """Number of real trials."""
    missing: tuple[str, ...]
    """Why parts are None."""

    def sentences(self) -> Iterator[str]:
        """What is known, a line each."""
        if self.prediction is not None:
            yield f"one robot, from {self.prediction.draws} draws: {self.prediction}"
        if self.expected is not None:
            yield f"given {self.real} real trials: {self.expected}"
        if self.powered is not None:
            yield f"real trials alone: {self.powered.alone}"
            yield f"with simulation of the same conditions: {self.powered}"
        yield from self.missing

    @property
    def note(self) -> str:
        """Why parts are None, in a line."""
        return "; ".join(self.missing)


def expect(
    simulated: TrialSource,
    real: TrialSource | None = None,
    *,
    trials: int = 20,
    confidence: float = 0.9,
) -> Expectation:
    """Predict what `trials` trials of a robot will show; `real` trials make it more precise.

    The draws of simulated trials show how much the robots that the real one may be differ; their
    conditions show what real trials of the same conditions are worth. Simulated trials with neither
    are a `Sim2RealError`.
    """
    check_confidence(confidence)
    check_trials(trials)
    drawn = open_trials(simulated, world="sim")
    tried = open_trials(real, world="real") if real else []
    robots = sorted({trial.unit for trial in tried if trial.unit})
    if len(robots) > 1:
        raise Sim2RealError(
            f"--real takes trials of one robot, and {real} has trials of {len(robots)}:"
            f" {', '.join(robots[:3])}"
        )
    counts = unit_counts([trial for trial in drawn if trial.unit])
    asked = partial(predict, *counts, trials=trials, confidence=confidence)
    before, after, powered, missing = None, None, None, []
    try:
        before = asked()
        if tried:
            after = asked(real=(sum(trial.success for trial in tried), len(tried)))
    except Sim2RealError as error:
        missing.append(f"no prediction from draws: {error}")
    if tried:
        try:
            powered = of_trials(tried, drawn, confidence=confidence)
        except Sim2RealError as error:
            missing.append(f"no estimate by condition: {error}")
    if before is None and powered is None:
        raise Sim2RealError("; ".join(missing))
    return Expectation(
        prediction=before,
        expected=after,
        powered=powered,
        real=len(tried),
        missing=tuple(missing),
    )
