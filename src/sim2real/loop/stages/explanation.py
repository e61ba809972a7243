"""Steps that explain: what the gap is made of, and why attempts failed."""

from __future__ import annotations

from pathlib import Path

from sim2real.attribute.failures import Failures, failures_of
from sim2real.attribute.success import attribute_success
from sim2real.attribute.trajectory import attribute_trajectory
from sim2real.errors import Sim2RealError
from sim2real.identify.align import aligned
from sim2real.learn import Policy
from sim2real.loop.stages.base import StagesBase, episodes_of, run_of
from sim2real.loop.steps import KeptResult, KeptStep, StepResult
from sim2real.tasks import find_task
from sim2real.twin import Twin

_TRIED = 8
"""Attempts per robot and combination from which lost success is attributed."""


class ExplanationStages(StagesBase):
    """Makes the steps of a loop that explain, and change nothing."""

    def attribute(
        self, policy: KeptStep, known: KeptStep, recorded: KeptStep, tried: tuple[KeptStep, ...]
    ) -> KeptStep:
        """What the error on recordings, and the success lost by a policy, is made of."""

        def work(folder: Path, done: tuple[KeptResult, ...]) -> StepResult:
            policy_, known_, recorded_, *tried_ = done
            before, after = Twin.load(self.twin), Twin.load(known_.folder / "twin")
            trained = Policy.open(run_of(policy_))
            logs = [aligned(episode, before) for episode in episodes_of(recorded_)]
            won = [outcome for one in tried_ for outcome in one.result["success"]]
            try:
                error = attribute_trajectory(
                    before, after, logs, seed=self.seed, threads=self.threads, report=self.report
                ).to_dict()
            except Sim2RealError as none:  # a twin that is right has no error to share out
                error = {"why": str(none)}
            success = attribute_success(
                before,
                after,
                find_task(self.task),
                trained,
                source=trained.run.source,
                real=(sum(won), len(won)),
                each=_TRIED,
                seed=self.seed,
                threads=self.threads,
                report=self.report,
            )
            return {"error": error, "success": success.to_dict()}

        inputs = {"task": self.task, "seed": self.seed}
        needs = (policy, known, recorded, *tried)
        return KeptStep(kind="attribute", inputs=inputs, needs=needs, work=work)

    def failures(
        self, policy: KeptStep, known: KeptStep | None, tried: tuple[KeptStep, ...]
    ) -> KeptStep:
        """Why attempts of a policy failed, with what is `known` of the robot by now."""

        def work(folder: Path, done: tuple[KeptResult, ...]) -> StepResult:
            trained = Policy.open(run_of(done[0]))
            run = trained.run
            attempts = done[1:] if known is None else done[2:]
            episodes = [episode for one in attempts for episode in episodes_of(one)]
            if not any(episode.outcome for episode in episodes):  # nobody judged them
                return Failures(tried=0, failed=0, kinds=(), diagnoses=()).to_dict()
            return failures_of(
                Twin.load(run.twin or self.twin),
                find_task(self.task),
                trained,
                episodes,
                source=run.source,
                remainder=run.remainder,
                identified=None if known is None else Twin.load(done[1].folder / "twin"),
                seed=4_000_000 + self.seed,
                threads=self.threads,
                report=self.report,
            ).to_dict()

        needs = (policy, *tried) if known is None else (policy, known, *tried)
        return KeptStep(kind="failures", inputs={"seed": self.seed}, needs=needs, work=work)
