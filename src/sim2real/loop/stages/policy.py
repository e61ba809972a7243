"""Steps about a policy: trained, evaluated in simulation, exported, its success predicted."""

from __future__ import annotations

import hashlib
import inspect
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from sim2real.evaluation import Prediction, evaluate, predict, run_trials
from sim2real.learn import ExportConfig, TrainConfig, TrainedPolicy, export, train
from sim2real.loop.algorithms import versions_of
from sim2real.loop.packet_loss import link_stops
from sim2real.loop.stages.base import StagesBase, episodes_of, run_of
from sim2real.loop.steps import KeptResult, KeptStep, StepResult
from sim2real.policy import Bundle
from sim2real.tasks import STARTS_FILE, Task, find_task
from sim2real.twin import Twin

_ROBOTS, _EACH = 64, 16
"""Draws of the posterior from which success is predicted, and episodes of each."""


class PolicyStages(StagesBase):
    """Makes the steps of a loop that are about a policy."""

    def train(
        self,
        source: str,
        *,
        twin: KeptStep | None = None,
        begin: KeptStep | None = None,
        starts: KeptStep | None = None,
        iterations: int | None = None,
        remainder: bool = False,
    ) -> KeptStep:
        """Train in the task's twin, or in that of a step; from scratch, or starting from a policy.

        With `starts`, some episodes start in recorded states of the robot.
        """
        needs = tuple(step for step in (twin, begin, starts) if step is not None)

        def work(folder: Path, done: tuple[KeptResult, ...]) -> StepResult:
            made = {step.key: one for step, one in zip(needs, done, strict=True)}
            seen = made[starts.key] if starts else None
            config = TrainConfig(
                task=self.task,
                twin=made[twin.key].folder / "twin" if twin else None,
                begin=run_of(made[begin.key]) if begin else None,
                starts=seen.folder / STARTS_FILE if seen and seen.result["states"] else None,
                source=source,
                remainder=remainder,
                seed=self.seed,
                iterations=iterations,
                threads=self.threads,
                out=folder,
            )
            unfinished = sorted(folder.glob(f"{self.task}/*/checkpoint-*.pt"))
            if unfinished:
                config = TrainConfig(resume=unfinished[-1].parent)
            else:
                shutil.rmtree(folder / self.task, ignore_errors=True)
            found = train(config, report=lambda p: self.report(p.iteration, p.iterations))
            if not found.finished:
                raise KeyboardInterrupt
            return {
                "run": str(found.run.relative_to(folder)),
                "success": found.to_dict()["success"],
                "iterations": found.iterations,
            }

        inputs = {
            "task": self.task,
            "code": _code(find_task(self.task)),
            "twin": Twin.load(self.twin, check=False).version,
            "source": source,
            "iterations": iterations,
            "remainder": remainder,
            "seed": self.seed,
            "from": [step.kind for step in needs],
        }
        return KeptStep(
            kind="train", algorithms=versions_of("training"), inputs=inputs, needs=needs, work=work
        )

    def widen(self, wider: Callable[[Twin], Twin]) -> KeptStep:
        """The task's twin with other ranges."""

        def work(folder: Path, done: tuple[KeptResult, ...]) -> StepResult:
            shutil.rmtree(folder / "twin", ignore_errors=True)
            return {"twin": wider(Twin.load(self.twin)).save(folder / "twin").version}

        inputs = {"version": wider(Twin.load(self.twin, check=False)).version}
        return KeptStep(kind="widen", algorithms=versions_of("widening"), inputs=inputs, work=work)

    def evaluate(self, policy: KeptStep, *, episodes: int = 500) -> KeptStep:
        """Success in new worlds like those of training."""

        def work(folder: Path, done: tuple[KeptResult, ...]) -> StepResult:
            found = evaluate(
                run_of(done[0]),
                episodes=episodes,
                seed=1_000_000 + self.seed,
                threads=self.threads,
                report=self.report,
            )
            return found.success.to_dict()

        return KeptStep(
            kind="evaluate",
            algorithms=versions_of("evaluation"),
            inputs={"episodes": episodes},
            needs=(policy,),
            work=work,
        )

    def predict(self, policy: KeptStep, recorded: KeptStep) -> KeptStep:
        """How often robots that the real one may be succeed.

        Their worlds are drawn as in training; their link loses packets as in the recordings.
        """

        def work(folder: Path, done: tuple[KeptResult, ...]) -> StepResult:
            trained_, bundle, recorded_ = done
            trained = TrainedPolicy.open(run_of(trained_))
            task, run = find_task(self.task), trained.run
            assert run.twin is not None
            found = run_trials(
                task,
                trained,
                episodes=_ROBOTS * _EACH,
                seed=3_000_000 + self.seed,
                source=run.source,
                twin=Twin.load(run.twin),
                remainder=run.remainder,
                threads=self.threads,
                each=_EACH,
                report=self.report,
            )
            ended = link_stops(
                Bundle.open(bundle.folder / "bundle"),
                episodes_of(recorded_),
                seconds=task.episode_s,
            )
            return {
                "won": found.success.reshape(_ROBOTS, _EACH).sum(axis=1).tolist(),
                "tried": [_EACH] * _ROBOTS,
                "ended": ended.tolist(),
            }

        needs = (policy, self.export(policy), recorded)
        return KeptStep(
            kind="predict",
            algorithms=versions_of("prediction"),
            inputs={"seed": self.seed},
            needs=needs,
            work=work,
        )

    def export(self, policy: KeptStep) -> KeptStep:
        """A bundle of the policy."""

        def work(folder: Path, done: tuple[KeptResult, ...]) -> StepResult:
            shutil.rmtree(folder / "bundle", ignore_errors=True)
            config = ExportConfig(run=run_of(done[0]), out=folder / "bundle")
            return {"id": export(config, report=self.report).id}

        return KeptStep(
            kind="export", algorithms=versions_of("export"), inputs={}, needs=(policy,), work=work
        )


def _code(task: type[Task]) -> str:
    """Hash of a task's module, which may be in another package."""
    try:
        text = inspect.getsource(inspect.getmodule(task) or task)
    except (OSError, TypeError):  # such as a class that was typed in
        text = repr(task.training)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def prediction_of(draws: KeptResult, *, trials: int, won: Sequence[bool] = ()) -> Prediction:
    """What attempts will show, from the robots that this one may be and its attempts so far."""
    known = draws.result
    real = sum(won), len(won)
    return predict(known["won"], known["tried"], ended=known["ended"], real=real, trials=trials)
