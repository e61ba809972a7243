"""Steps that explain: what the gap is made of, and why attempts failed."""

from __future__ import annotations

from pathlib import Path

from sim2real.attribution import Failures, attribute, explain_failures
from sim2real.loop.algorithms import versions_of
from sim2real.loop.stages.base import StagesBase, episodes_of, run_of
from sim2real.loop.steps import KeptResult, KeptStep, StepResult

_TRIALS_PER_DRAW = 8
"""Trials of each draw and combination of dimensions for the attribution of lost success."""


class ExplanationStages(StagesBase):
    """Makes the steps of a loop that explain, and change nothing."""

    def attribute(
        self, policy: KeptStep, known: KeptStep, recorded: KeptStep, tried: tuple[KeptStep, ...]
    ) -> KeptStep:
        """What the error on recordings, and the lost success of a policy, are made of."""

        def work(folder: Path, done: tuple[KeptResult, ...]) -> StepResult:
            policy_, known_, recorded_, *tried_ = done
            won = [outcome for one in tried_ for outcome in one.result["success"]]
            found = attribute(
                self.twin,
                episodes_of(recorded_),
                identified=known_.folder / "twin",
                policy=run_of(policy_),
                real=(sum(won), len(won)),
                each=_TRIALS_PER_DRAW,
                seed=self.seed,
                threads=self.threads,
                report=self.report,
            )
            assert found.success is not None
            # A twin that is right has no error to attribute.
            error = found.trajectory.to_dict() if found.trajectory else {"why": found.why}
            return {"error": error, "success": found.success.to_dict()}

        inputs = {"task": self.task, "seed": self.seed}
        needs = (policy, known, recorded, *tried)
        return KeptStep(
            kind="attribute",
            algorithms=versions_of("attribution"),
            inputs=inputs,
            needs=needs,
            work=work,
        )

    def failures(
        self, policy: KeptStep, known: KeptStep | None, tried: tuple[KeptStep, ...]
    ) -> KeptStep:
        """Why attempts of a policy failed, given what is `known` about the robot so far."""

        def work(folder: Path, done: tuple[KeptResult, ...]) -> StepResult:
            attempts = done[1:] if known is None else done[2:]
            episodes = [episode for one in attempts for episode in episodes_of(one)]
            if not any(episode.outcome for episode in episodes):  # nobody judged them
                return Failures(tried=0, failed=0, kinds=(), diagnoses=()).to_dict()
            found = explain_failures(
                run_of(done[0]),
                episodes,
                identified=None if known is None else done[1].folder / "twin",
                seed=4_000_000 + self.seed,
                threads=self.threads,
                report=self.report,
            )
            return found.failures.to_dict()

        needs = (policy, *tried) if known is None else (policy, known, *tried)
        return KeptStep(
            kind="failures",
            algorithms=versions_of("failures"),
            inputs={"seed": self.seed},
            needs=needs,
            work=work,
        )
