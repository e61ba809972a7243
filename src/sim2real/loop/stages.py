"""The stages of the loop, each a step whose result is kept: see `steps`.

Paths in results are relative to the step's folder.
"""

from __future__ import annotations

import hashlib
import inspect
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sim2real.attribution import Failures, attribute, explain_failures
from sim2real.data import Episode, read_recording
from sim2real.errors import Sim2RealError
from sim2real.evaluation import Prediction, evaluate, predict, run_trials
from sim2real.identification import identify, learn_remainder, scattered, seen_states
from sim2real.learn import ExportConfig, Policy, TrainConfig, export, train
from sim2real.logs import aligned
from sim2real.loop.attended_robot import MOTIONS, AttendedRobot
from sim2real.loop.steps import KeptResult, KeptStep
from sim2real.policy import Bundle
from sim2real.robot import OperatorPrompts, link_stops
from sim2real.tasks import STARTS_FILE, Task, TaskEnv, find_task
from sim2real.twin import Twin

_ROBOTS, _EACH = 64, 16
"""Draws of the posterior that success is predicted from, and episodes of each."""
_TRIED = 8
"""Attempts of each robot that lost success is attributed by, in every combination."""
_TELLING_S = 1.0
"""Shortest recording that a robot is identified by."""


@dataclass(frozen=True, kw_only=True)
class Stages:
    """Makes the steps of a loop for one task and one robot."""

    task: str
    robot: str
    person: str
    seed: int = 0
    force: bool = False
    threads: int = 0
    prompts: OperatorPrompts = field(default_factory=OperatorPrompts)
    """How it speaks with the person at the robot."""

    @property
    def report(self) -> Callable[[int, int], None]:
        """Told how far the present step is."""
        return self.prompts.report

    @property
    def twin(self) -> Path:
        """Folder or file of the task's own twin."""
        return find_task(self.task).twin

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
        """Train in the task's twin, or in one that a step made; from nothing, or from a policy.

        With `starts`, some episodes begin in states that the robot was seen in.
        """
        needs = tuple(step for step in (twin, begin, starts) if step is not None)

        def work(folder: Path, done: tuple[KeptResult, ...]) -> dict[str, Any]:
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
        return KeptStep(kind="train", inputs=inputs, needs=needs, work=work)

    def widen(self, wider: Callable[[Twin], Twin]) -> KeptStep:
        """The task's twin with other ranges."""

        def work(folder: Path, done: tuple[KeptResult, ...]) -> dict[str, Any]:
            shutil.rmtree(folder / "twin", ignore_errors=True)
            return {"twin": wider(Twin.load(self.twin)).save(folder / "twin").version}

        inputs = {"version": wider(Twin.load(self.twin, check=False)).version}
        return KeptStep(kind="widen", inputs=inputs, work=work)

    def evaluate(self, policy: KeptStep, *, episodes: int = 500) -> KeptStep:
        """Success in worlds like those it was trained in, never seen before."""

        def work(folder: Path, done: tuple[KeptResult, ...]) -> dict[str, Any]:
            found = evaluate(
                run_of(done[0]),
                episodes=episodes,
                seed=1_000_000 + self.seed,
                threads=self.threads,
                report=self.report,
            )
            return found.success.to_dict()

        return KeptStep(kind="evaluate", inputs={"episodes": episodes}, needs=(policy,), work=work)

    def predict(self, policy: KeptStep, recorded: KeptStep) -> KeptStep:
        """How often robots succeed that the real one may be: worlds of what the policy was trained
        in, and the link that was `recorded`."""

        def work(folder: Path, done: tuple[KeptResult, ...]) -> dict[str, Any]:
            trained_, bundle, recorded_ = done
            trained = Policy.open(run_of(trained_))
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
        return KeptStep(kind="predict", inputs={"seed": self.seed}, needs=needs, work=work)

    def attribute(
        self, policy: KeptStep, known: KeptStep, recorded: KeptStep, tried: tuple[KeptStep, ...]
    ) -> KeptStep:
        """What the error on recordings, and the success lost by a policy, is made of."""

        def work(folder: Path, done: tuple[KeptResult, ...]) -> dict[str, Any]:
            policy_, known_, recorded_, *tried_ = done
            won = [outcome for one in tried_ for outcome in one.result["success"]]
            found = attribute(
                self.twin,
                episodes_of(recorded_),
                identified=known_.folder / "twin",
                policy=run_of(policy_),
                real=(sum(won), len(won)),
                each=_TRIED,
                seed=self.seed,
                threads=self.threads,
                report=self.report,
            )
            assert found.success is not None
            # A twin that is right has no error to share out.
            error = found.trajectory.to_dict() if found.trajectory else {"why": found.why}
            return {"error": error, "success": found.success.to_dict()}

        inputs = {"task": self.task, "seed": self.seed}
        needs = (policy, known, recorded, *tried)
        return KeptStep(kind="attribute", inputs=inputs, needs=needs, work=work)

    def failures(
        self, policy: KeptStep, known: KeptStep | None, tried: tuple[KeptStep, ...]
    ) -> KeptStep:
        """Why attempts of a policy failed, with what is `known` of the robot by now."""

        def work(folder: Path, done: tuple[KeptResult, ...]) -> dict[str, Any]:
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
        return KeptStep(kind="failures", inputs={"seed": self.seed}, needs=needs, work=work)

    def export(self, policy: KeptStep) -> KeptStep:
        """A bundle of the policy."""

        def work(folder: Path, done: tuple[KeptResult, ...]) -> dict[str, Any]:
            shutil.rmtree(folder / "bundle", ignore_errors=True)
            config = ExportConfig(run=run_of(done[0]), out=folder / "bundle")
            return {"id": export(config, report=self.report).id}

        return KeptStep(kind="export", inputs={}, needs=(policy,), work=work)

    def record(self, *, seconds: float) -> KeptStep:
        """Motions of the robot that tell its parameters, together so long."""

        def work(folder: Path, done: tuple[KeptResult, ...]) -> dict[str, Any]:
            return self._robot.record(
                folder / "recordings",
                twin=self.twin,
                rate_hz=find_task(self.task).rate_hz,
                seconds=seconds,
                seed=self.seed,
            )

        inputs = {
            "task": self.task,
            "rate_hz": find_task(self.task).rate_hz,
            "robot": self._robot.identity,
            "motions": MOTIONS,
            "seconds": seconds,
            "seed": self.seed,
        }
        return KeptStep(kind="record", inputs=inputs, work=work)

    def ladder(self, bundle: KeptStep, recorded: KeptStep) -> KeptStep:
        """What a bundle goes through before it acts freely; one that may not is an error."""

        def work(folder: Path, done: tuple[KeptResult, ...]) -> dict[str, Any]:
            logs = episodes_of(done[1])
            return self._robot.climb(folder, done[0].folder / "bundle", logs, self._goals())

        # Not whether it is forced: what was passed, or made since, is not undone by that.
        inputs = {"robot": self._robot.identity}
        return KeptStep(kind="ladder", inputs=inputs, needs=(bundle, recorded), work=work)

    def trials(self, bundle: KeptStep, ladder: KeptStep, *, first: int, count: int) -> KeptStep:
        """Attempts on the robot, with set-ups numbered from `first` on."""

        def work(folder: Path, done: tuple[KeptResult, ...]) -> dict[str, Any]:
            made = folder / "attempts"
            return self._robot.attempt(made, done[0].folder / "bundle", first=first, count=count)

        inputs = {"robot": self._robot.identity, "first": first, "count": count}
        return KeptStep(kind="trials", inputs=inputs, needs=(bundle, ladder), work=work)

    def identify(self, recorded: tuple[KeptStep, ...]) -> KeptStep:
        """The twin's next version, from what the robot did."""

        def work(folder: Path, done: tuple[KeptResult, ...]) -> dict[str, Any]:
            shutil.rmtree(folder / "twin", ignore_errors=True)
            found = identify(
                Twin.load(self.twin),
                _telling(done),
                seed=self.seed,
                threads=self.threads,
                report=self.report,
            )
            found.twin.save(folder / "twin")
            return found.to_dict()

        inputs = {"task": self.task, "seed": self.seed}
        return KeptStep(kind="identify", inputs=inputs, needs=recorded, work=work)

    def scatter(self, known: KeptStep) -> KeptStep:
        """An identified twin whose posterior scatters as the robot does around it.

        From stretch to stretch, that is; over an attempt they average out in part.
        """
        attempt_s = find_task(self.task).episode_s

        def work(folder: Path, done: tuple[KeptResult, ...]) -> dict[str, Any]:
            shutil.rmtree(folder / "twin", ignore_errors=True)
            twin, result = Twin.load(done[0].folder / "twin"), done[0].result
            if twin.posterior is None:
                raise Sim2RealError(f"the robot was not identified: {result['why']}")
            found = result["scatter"]
            scatter = np.array(found["covariance"]) * min(1.0, result["horizon_s"] / attempt_s)
            wider = scattered(twin, found["names"], scatter, seed=self.seed)
            return {"twin": wider.save(folder / "twin").version}

        inputs = {"seed": self.seed, "attempt_s": attempt_s}
        return KeptStep(kind="scatter", inputs=inputs, needs=(known,), work=work)

    def seen(self, known: KeptStep, recorded: tuple[KeptStep, ...]) -> KeptStep:
        """States that the robot was seen in, as an identified twin understands its readings."""

        def work(folder: Path, done: tuple[KeptResult, ...]) -> dict[str, Any]:
            twin = Twin.load(done[0].folder / "twin")
            found = seen_states(twin, [aligned(one, twin) for one in _telling(done[1:])])
            if found is not None:
                found.save(folder / STARTS_FILE)
            return {"states": len(found.qpos) if found else 0}

        return KeptStep(kind="seen", inputs={}, needs=(known, *recorded), work=work)

    def remainder(self, known: KeptStep, recorded: tuple[KeptStep, ...]) -> KeptStep:
        """An identified twin with what no parameter of it explains, learned."""

        def work(folder: Path, done: tuple[KeptResult, ...]) -> dict[str, Any]:
            shutil.rmtree(folder / "twin", ignore_errors=True)
            twin = Twin.load(done[0].folder / "twin")
            logs = [aligned(episode, twin) for episode in _telling(done[1:])]
            learned = learn_remainder(twin, logs, seed=self.seed, threads=self.threads)
            twin.with_remainder(learned.remainder).save(folder / "twin")
            return done[0].result | {"remainder": learned.to_dict()}

        inputs = {"seed": self.seed}
        return KeptStep(kind="remainder", inputs=inputs, needs=(known, *recorded), work=work)

    @property
    def _robot(self) -> AttendedRobot:
        return AttendedRobot(
            address=self.robot,
            task=self.task,
            person=self.person,
            force=self.force,
            prompts=self.prompts,
        )

    def _goals(self) -> tuple[str, ...]:
        """Goals of one set-up of the task, for motions that were recorded without any."""
        task = find_task(self.task)
        if not task.goals:
            return ()
        asked = TaskEnv(task, worlds=1, seed=self.seed, source="nominal", threads=1).worlds.memory
        return tuple(
            f"{goal}={','.join(str(number) for number in asked[goal][0].tolist())}"
            for goal in task.goals
        )


def _code(task: type[Task]) -> str:
    """Hash of what a task is made of: its module, which may be of another package."""
    try:
        text = inspect.getsource(inspect.getmodule(task) or task)
    except (OSError, TypeError):  # typed in, say
        text = repr(task.training)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def run_of(trained: KeptResult) -> Path:
    """Folder of the training run that a step made."""
    return trained.folder / str(trained.result["run"])


def prediction_of(draws: KeptResult, *, trials: int, won: Sequence[bool] = ()) -> Prediction:
    """What attempts will show, from robots that this one may be and the attempts it made."""
    known = draws.result
    real = sum(won), len(won)
    return predict(known["won"], known["tried"], ended=known["ended"], real=real, trials=trials)


def episodes_of(done: KeptResult) -> list[Episode]:
    """Episodes that a step recorded, in the order of their names."""
    return [read_recording(path) for path in sorted(done.folder.rglob("*.arrow"))]


def _telling(recorded: tuple[KeptResult, ...]) -> list[Episode]:
    """Episodes that are long enough to tell of the robot: some attempts are stopped at once."""
    episodes = [episode for one in recorded for episode in episodes_of(one)]
    return [episode for episode in episodes if episode.duration_s >= _TELLING_S]
