"""What a loop does with its robot: record it, and let policies climb the ladder and try."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from sim2real.data import Episode, read_recording
from sim2real.errors import Sim2RealError, table_at
from sim2real.files import read_json
from sim2real.loop.steps import StepResult
from sim2real.robot import (
    DeployConfig,
    ExcitedRobot,
    OperatorPrompts,
    OperatorStop,
    deploy,
    open_robot,
    record_series,
)

MOTIONS = ("multisine", "chirp", "steps")
"""Motions that a robot is identified from."""
_UNITS = "9deaae158f408a5c"
"""Names what units of stand-in hardware do. Whoever changes what a unit does changes this name, so
that loops do not go on with what another unit did."""
_Step = Literal["replay", "shadow", "limited", "full"]
_LADDER: tuple[_Step, ...] = ("replay", "shadow", "limited")
"""Steps that a policy takes before it may act freely."""


@dataclass(frozen=True, kw_only=True)
class AttendedRobot:
    """A robot, and the person who lets it move."""

    address: str
    task: str
    person: str
    force: bool = False
    """Whether a policy may go on that did not pass a step of the ladder."""
    prompts: OperatorPrompts

    @property
    def stands_in(self) -> bool:
        """Whether it is stand-in hardware, which does the same again when asked again."""
        return self.address.startswith("unit:")

    @property
    def identity(self) -> dict[str, str]:
        """What tells it from others: its address, and what is known to stand behind that."""
        if self.stands_in:
            return {"address": self.address, "behind": _UNITS}
        if not self.address.startswith("lerobot:"):
            return {"address": self.address, "behind": ""}
        file = Path(self.address.partition(":")[2])
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        return {"address": self.address, "behind": digest[:16]}

    def record(
        self, folder: Path, *, twin: Path, rate_hz: float, seconds: float, seed: int
    ) -> StepResult:
        """Record motions that tell its parameters, `seconds` in all."""
        shutil.rmtree(folder, ignore_errors=True)
        robot = open_robot(self.address, task=self.task)
        robot.connect()
        try:
            with OperatorStop() as stop:
                found = record_series(
                    ExcitedRobot.open(twin, rate_hz=rate_hz),
                    robot,
                    MOTIONS,
                    folder,
                    person=self.person,
                    seconds=seconds,
                    seed=seed,
                    rearm=self._rearmed,
                    operator_stop=stop,
                    report=self.prompts.report,
                )
        finally:
            robot.disconnect()
        return {
            "episodes": [one.episode.id for one in found],
            "seconds": float(sum(one.episode.duration_s for one in found)),
        }

    def climb(
        self, folder: Path, bundle: Path, logs: list[Episode], goals: tuple[str, ...]
    ) -> StepResult:
        """Take a bundle up the ladder of trust; one that does not pass is a `Sim2RealError`."""
        taken = []
        for step in _LADDER:
            shutil.rmtree(folder / step, ignore_errors=True)
            config = self._deployed(bundle, folder / step, step)
            replayed = step == "replay"
            found = deploy(
                replace(config, goal=goals) if replayed else config,
                logs=logs if replayed else [],
                prompts=self.prompts,
            )
            assert found.record is not None
            if found.ended.startswith("signal"):
                raise KeyboardInterrupt
            taken.append({"step": step, "passed": found.record.passed, "why": found.record.why})
            if not found.record.passed and not self.force:
                raise Sim2RealError(
                    f"the policy did not pass {step} ({found.record.why}), so it may not move"
                    " the robot freely; --force goes on regardless"
                )
        return {"steps": taken, "passed": all(entry["passed"] for entry in taken)}

    def attempt(self, folder: Path, bundle: Path, *, first: int, count: int) -> StepResult:
        """Make attempts with set-ups numbered from `first` on.

        Attempts from before an interruption count: people interrupt what goes badly, so forgetting
        them would flatter. Only stand-in hardware starts again.
        """
        if self.stands_in:
            shutil.rmtree(folder, ignore_errors=True)
        made = _attempts(folder)
        ended = ""
        if len(made) < count:
            config = replace(
                self._deployed(bundle, folder / f"from-{len(made):04d}", "full"),
                trials=count - len(made),
                seed=first + len(made),
                rearm=self.stands_in,
            )
            ended = deploy(config, prompts=self.prompts).ended
            made = _attempts(folder)
        if ended.startswith("signal"):
            raise KeyboardInterrupt
        if len(made) < count:
            raise Sim2RealError(
                f"{len(made)} of {count} attempts were made: {ended}; the same command goes on with"
                " the rest"
            )
        return {
            "success": [one.outcome == "success" for one in made],
            "stopped": [one.stopped for one in made],
            "episodes": [one.episode for one in made],
        }

    def _rearmed(self, why: str) -> bool:
        """Whether somebody lets it go on after a stop; stand-in hardware always may."""
        asked = f"stopped: {why}; who re-arms it? [name, Enter to end]"
        return self.stands_in or bool(self.prompts.ask(asked).strip())

    def _deployed(
        self, bundle: Path, folder: Path, step: Literal["replay", "shadow", "limited", "full"]
    ) -> DeployConfig:
        return DeployConfig(
            bundle=bundle,
            robot=self.address,
            step=step,
            execute=True,
            person=self.person,
            force=self.force,
            out=folder,
        )


@dataclass(frozen=True)
class _Attempt:
    """An attempt that was recorded."""

    outcome: str
    stopped: str
    """Why it was stopped; '' where it came to its end."""
    episode: str


def _attempts(folder: Path) -> list[_Attempt]:
    """The attempts that were recorded in a folder, in order, however they ended."""
    found = []
    for path in sorted(folder.rglob("trial-*.arrow")):
        try:
            episode = read_recording(path)
        except Sim2RealError:  # cut off before it moved
            shutil.move(path, path.with_name(f"empty-{path.name}.cut"))
            continue
        beside = path.with_suffix(".json")
        known = table_at(read_json(beside), str(beside)) if beside.is_file() else {}
        stopped = str(known.get("stopped", "the recording was cut off"))
        found.append(_Attempt(episode.outcome, stopped, episode.id))
    return found
