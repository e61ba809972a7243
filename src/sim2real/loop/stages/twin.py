"""Steps about a twin: identified from recordings, its posterior widened, its remainder learned."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from sim2real.data import Episode
from sim2real.errors import Sim2RealError
from sim2real.identification import (
    IdentifyThresholds,
    identify,
    learn_remainder,
    scattered,
    seen_states,
)
from sim2real.logs import aligned
from sim2real.loop.algorithms import versions_of
from sim2real.loop.stages.base import StagesBase, episodes_of
from sim2real.loop.steps import KeptResult, KeptStep, StepResult
from sim2real.tasks import STARTS_FILE, find_task
from sim2real.twin import Twin

IDENTIFICATION_FILE = "identification.json"
_MIN_EPISODE_S = 1.0
"""Shortest recording that a robot is identified from [s]."""
_UNCHECKED = IdentifyThresholds(calibration_draws=0)
"""A policy on the robot tells more of a posterior than its calibration does."""


class TwinStages(StagesBase):
    """Makes the steps of a loop that learn about its robot from recordings."""

    def identify(self, recorded: tuple[KeptStep, ...]) -> KeptStep:
        """The twin's next version, identified from what the robot did."""

        def work(folder: Path, done: tuple[KeptResult, ...]) -> StepResult:
            shutil.rmtree(folder / "twin", ignore_errors=True)
            found = identify(
                Twin.load(self.twin),
                _long_enough(done),
                seed=self.seed,
                threads=self.threads,
                thresholds=_UNCHECKED,
                report=self.report,
            )
            found.twin.save(folder / "twin")
            found.save(folder / IDENTIFICATION_FILE)
            return found.to_dict()

        inputs = {"task": self.task, "seed": self.seed}
        return KeptStep(
            kind="identify",
            algorithms=versions_of("identification"),
            inputs=inputs,
            needs=recorded,
            work=work,
        )

    def scatter(self, known: KeptStep) -> KeptStep:
        """An identified twin with its posterior widened by the scatter of its parameters.

        The scatter is between segments; over an attempt it partly averages out.
        """
        attempt_s = find_task(self.task).episode_s

        def work(folder: Path, done: tuple[KeptResult, ...]) -> StepResult:
            shutil.rmtree(folder / "twin", ignore_errors=True)
            twin, result = Twin.load(done[0].folder / "twin"), done[0].result
            if twin.posterior is None:
                raise Sim2RealError(f"the robot was not identified: {result['why']}")
            found = result["scatter"]
            scatter = np.array(found["covariance"]) * min(1.0, result["horizon_s"] / attempt_s)
            wider = scattered(twin, found["names"], scatter, seed=self.seed)
            return {"twin": wider.save(folder / "twin").version}

        inputs = {"seed": self.seed, "attempt_s": attempt_s}
        return KeptStep(
            kind="scatter",
            algorithms=versions_of("identification"),
            inputs=inputs,
            needs=(known,),
            work=work,
        )

    def seen(self, known: KeptStep, recorded: tuple[KeptStep, ...]) -> KeptStep:
        """Recorded states of the robot, as an identified twin interprets its readings."""

        def work(folder: Path, done: tuple[KeptResult, ...]) -> StepResult:
            twin = Twin.load(done[0].folder / "twin")
            found = seen_states(twin, [aligned(one, twin) for one in _long_enough(done[1:])])
            if found is not None:
                found.save(folder / STARTS_FILE)
            return {"states": len(found.qpos) if found else 0}

        return KeptStep(
            kind="seen",
            algorithms=versions_of("identification"),
            inputs={},
            needs=(known, *recorded),
            work=work,
        )

    def remainder(self, known: KeptStep, recorded: tuple[KeptStep, ...]) -> KeptStep:
        """An identified twin with a learned remainder of what no parameter explains."""

        def work(folder: Path, done: tuple[KeptResult, ...]) -> StepResult:
            shutil.rmtree(folder / "twin", ignore_errors=True)
            twin = Twin.load(done[0].folder / "twin")
            logs = [aligned(episode, twin) for episode in _long_enough(done[1:])]
            learned = learn_remainder(twin, logs, seed=self.seed, threads=self.threads)
            twin.with_remainder(learned.remainder).save(folder / "twin")
            found = done[0].folder / IDENTIFICATION_FILE
            if found.is_file():  # steps of earlier versions have none
                shutil.copyfile(found, folder / IDENTIFICATION_FILE)
            return done[0].result | {"remainder": learned.to_dict()}

        inputs = {"seed": self.seed}
        return KeptStep(
            kind="remainder",
            algorithms=versions_of("identification"),
            inputs=inputs,
            needs=(known, *recorded),
            work=work,
        )


def _long_enough(recorded: tuple[KeptResult, ...]) -> list[Episode]:
    """Episodes that are long enough to identify from: some attempts are stopped at once."""
    episodes = [episode for one in recorded for episode in episodes_of(one)]
    return [episode for episode in episodes if episode.duration_s >= _MIN_EPISODE_S]
