"""Steps on a robot: recordings, the ladder of trust, and attempts."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from sim2real.data import Episode, read_recording
from sim2real.errors import Sim2RealError, table_at
from sim2real.files import read_json
from sim2real.loop.algorithms import versions_of
from sim2real.loop.stages.base import StagesBase, episodes_of
from sim2real.loop.steps import KeptResult, KeptStep, StepResult
from sim2real.robot import (
    DeployConfig,
    ExcitedRobot,
    RobotAbilities,
    deploy,
    open_robot,
    record_series,
    robot_scheme,
)
from sim2real.tasks import TaskEnv, find_task

MOTIONS = ("multisine", "chirp", "steps")
"""Motions that a robot is identified from."""
_Step = Literal["replay", "shadow", "limited", "full"]
_MOST_AGAIN = 3
"""How often the last of them is tried again, if a person wants that."""
_LADDER: tuple[_Step, ...] = ("replay", "shadow", "limited")
"""Steps that a policy takes before it may act freely."""


class RobotStages(StagesBase):
    """Makes the steps of a loop that move its robot, and runs them."""

    def record(self, *, seconds: float) -> KeptStep:
        """Record motions that excite the robot's parameters, `seconds` in total."""
        rate_hz = find_task(self.task).rate_hz

        def work(folder: Path, done: tuple[KeptResult, ...]) -> StepResult:
            shutil.rmtree(folder / "recordings", ignore_errors=True)
            found = record_series(
                ExcitedRobot.open(self.twin, rate_hz=rate_hz),
                open_robot(self.robot, task=self.task),
                MOTIONS,
                folder / "recordings",
                person=self.person,
                seconds=seconds,
                seed=self.seed,
                rearm=self._rearmed,
                prompts=self.prompts,
                judge=self.judge,
                by_the_switch=self.by_the_switch,
                report=self.report,
            )
            return {
                "episodes": [one.episode.id for one in found],
                "seconds": float(sum(one.episode.duration_s for one in found)),
            }

        inputs = {
            "task": self.task,
            "rate_hz": rate_hz,
            "robot": self.robot_identity,
            "motions": MOTIONS,
            "seconds": seconds,
            "seed": self.seed,
        }
        return KeptStep(
            kind="record", algorithms=self._algorithms("recording"), inputs=inputs, work=work
        )

    def ladder(self, bundle: KeptStep, recorded: KeptStep) -> KeptStep:
        """Take a bundle up the ladder of trust; one that does not pass is a `Sim2RealError`."""

        def work(folder: Path, done: tuple[KeptResult, ...]) -> StepResult:
            return self._climb(folder, done[0].folder / "bundle", episodes_of(done[1]))

        # Without `force`, which does not undo a step that was passed.
        inputs = {"robot": self.robot_identity}
        return KeptStep(
            kind="ladder",
            algorithms=self._algorithms("ladder"),
            inputs=inputs,
            needs=(bundle, recorded),
            work=work,
        )

    def trials(self, bundle: KeptStep, ladder: KeptStep, *, first: int, count: int) -> KeptStep:
        """Attempts on the robot, with start conditions numbered from `first`."""

        def work(folder: Path, done: tuple[KeptResult, ...]) -> StepResult:
            made = folder / "attempts"
            return self.attempt(made, done[0].folder / "bundle", first=first, count=count)

        inputs = {"robot": self.robot_identity, "first": first, "count": count}
        return KeptStep(
            kind="trials",
            algorithms=self._algorithms("trials"),
            inputs=inputs,
            needs=(bundle, ladder),
            work=work,
        )

    @property
    def abilities(self) -> RobotAbilities:
        """What is known of the robot before it is connected."""
        return robot_scheme(self.robot).abilities(self.robot)

    @property
    def robot_identity(self) -> dict[str, str]:
        """What identifies the robot: its address, and what is known about what is behind it."""
        return {"address": self.robot, "behind": robot_scheme(self.robot).behind(self.robot)}

    def _algorithms(self, name: str) -> dict[str, int]:
        """Versions of an algorithm on a robot, and of the robot itself if it is stand-in hardware:
        loops do not continue with what another unit did."""
        return versions_of(name, *(["stand-in"] if self.abilities.repeats else []))

    def attempt(self, folder: Path, bundle: Path, *, first: int, count: int) -> StepResult:
        """Make attempts with start conditions numbered from `first`.

        Attempts from before an interruption count: people interrupt what goes badly, so dropping
        them would bias the rate. Only a robot that does the same again starts again.
        """
        if self.abilities.repeats:
            shutil.rmtree(folder, ignore_errors=True)
        made = _attempts(folder)
        ended = ""
        if len(made) < count:
            config = replace(
                self._deployed(bundle, folder / f"from-{len(made):04d}", "full"),
                trials=count - len(made),
                seed=first + len(made),
                rearm=self.abilities.simulated,
            )
            ended = deploy(config, prompts=self.prompts).ended
            made = _attempts(folder)
        if ended.startswith("signal"):
            raise KeyboardInterrupt
        if len(made) < count:
            raise Sim2RealError(
                f"only {len(made)} of {count} attempts were made: {ended}; run the same command"
                " again for the others"
            )
        return {
            "success": [episode.outcome == "success" for episode, _ in made],
            "stopped": [stopped for _, stopped in made],
            "episodes": [episode.id for episode, _ in made],
        }

    def _climb(self, folder: Path, bundle: Path, logs: list[Episode]) -> StepResult:
        """Every step before free motion, in spite of doubts that keep the robot safe.

        What replay or shadow leave open, a person decides, or the next safe step shows. Without the
        last one, `limited`, nothing moves freely: a person may have it tried again.
        """
        taken: list[dict[str, Any]] = []
        for step in _LADDER:
            made = self._take(folder / step, bundle, logs, step)
            again = 0
            while step == _LADDER[-1] and self._again(made, again):
                again += 1
                made = self._take(folder / f"{step}-{again}", bundle, logs, step)
            taken.append(made)
            if not made["passed"]:
                self.prompts.tell(_not_passed(made))
        if not taken[-1]["passed"] and not self.force:
            skip = "; --force continues anyway" if self.abilities.simulated else ""
            raise Sim2RealError(
                f"{_not_passed(taken[-1])}; until then it may not move the robot freely{skip}"
            )
        return {"steps": taken, "passed": all(one["passed"] for one in taken)}

    def _take(self, folder: Path, bundle: Path, logs: list[Episode], step: _Step) -> dict[str, Any]:
        """Take one step of the ladder; whether it was passed, else why, and what it would take."""
        shutil.rmtree(folder, ignore_errors=True)
        config = self._deployed(bundle, folder, step)
        replayed = step == "replay"
        found = deploy(
            replace(config, goal=self._goals()) if replayed else config,
            logs=logs if replayed else [],
            prompts=replace(self.prompts, goes_on=True),
        )
        assert found.record is not None
        if found.ended.startswith("signal"):
            raise KeyboardInterrupt
        record = found.record
        return {"step": step, "passed": record.passed, "why": record.why, "to_pass": record.to_pass}

    def _again(self, taken: dict[str, Any], again: int) -> bool:
        """Whether a person wants a step that was not passed to be tried again."""
        if taken["passed"] or self.force or again == _MOST_AGAIN or not self.prompts.attended:
            return False
        return self.prompts.choose(f"{_not_passed(taken)}. Try it again? [y/n]", "yn") == "y"

    def _deployed(self, bundle: Path, folder: Path, step: _Step) -> DeployConfig:
        return DeployConfig(
            bundle=bundle,
            robot=self.robot,
            step=step,
            execute=True,
            person=self.person,
            force=self.force,
            by_the_switch=self.by_the_switch,
            judge=self.judge,
            out=folder,
            lake="",  # the loop keeps what its steps record
        )

    def _rearmed(self, why: str) -> bool:
        """Whether a person re-arms it after a stop; a simulated robot needs nobody."""
        asked = f"stopped: {why}; who re-arms it? [name, Enter to end]"
        return self.abilities.simulated or bool(self.prompts.ask(asked).strip())

    def _goals(self) -> tuple[str, ...]:
        """Goals of one episode of the task, for motions that were recorded without goals."""
        task = find_task(self.task)
        if not task.goals:
            return ()
        asked = TaskEnv(task, worlds=1, seed=self.seed, source="nominal", threads=1).worlds.memory
        return tuple(
            f"{goal}={','.join(str(number) for number in asked[goal][0].tolist())}"
            for goal in task.goals
        )


def _not_passed(taken: dict[str, Any]) -> str:
    """What a policy did not pass, and what it would take."""
    needed = f"; to pass it, {taken['to_pass']}" if taken["to_pass"] else ""
    return f"the policy did not pass {taken['step']}: {taken['why']}{needed}"


def _attempts(folder: Path) -> list[tuple[Episode, str]]:
    """The attempts recorded in a folder, in order, and why each was stopped; '' if it was not."""
    found = []
    for path in sorted(folder.rglob("trial-*.arrow")):
        try:
            episode = read_recording(path)
        except Sim2RealError:  # cut off before the robot moved
            shutil.move(path, path.with_name(f"empty-{path.name}.cut"))
            continue
        beside = path.with_suffix(".json")
        known = table_at(read_json(beside), str(beside)) if beside.is_file() else {}
        found.append((episode, str(known.get("stopped", "the recording was cut off"))))
    return found
