"""Steps on a robot: recorded, let up the ladder of trust by a policy, tried."""

from __future__ import annotations

from pathlib import Path

from sim2real.loop.attended_robot import MOTIONS, AttendedRobot
from sim2real.loop.stages.base import StagesBase, episodes_of
from sim2real.loop.steps import KeptResult, KeptStep, StepResult
from sim2real.tasks import TaskEnv, find_task


class RobotStages(StagesBase):
    """Makes the steps of a loop that move its robot."""

    def record(self, *, seconds: float) -> KeptStep:
        """Record motions that tell the robot's parameters, `seconds` in all."""

        def work(folder: Path, done: tuple[KeptResult, ...]) -> StepResult:
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
        """Take a bundle up the ladder of trust; one that does not pass is a `Sim2RealError`."""

        def work(folder: Path, done: tuple[KeptResult, ...]) -> StepResult:
            logs = episodes_of(done[1])
            return self._robot.climb(folder, done[0].folder / "bundle", logs, self._goals())

        # Not whether it is forced: what was passed, or made since, is not undone by that.
        inputs = {"robot": self._robot.identity}
        return KeptStep(kind="ladder", inputs=inputs, needs=(bundle, recorded), work=work)

    def trials(self, bundle: KeptStep, ladder: KeptStep, *, first: int, count: int) -> KeptStep:
        """Attempts on the robot, with set-ups numbered from `first` on."""

        def work(folder: Path, done: tuple[KeptResult, ...]) -> StepResult:
            made = folder / "attempts"
            return self._robot.attempt(made, done[0].folder / "bundle", first=first, count=count)

        inputs = {"robot": self._robot.identity, "first": first, "count": count}
        return KeptStep(kind="trials", inputs=inputs, needs=(bundle, ladder), work=work)

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
