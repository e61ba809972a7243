"""A step that shows how the gap was closed: replays, what is believed, and films of attempts."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from sim2real.arrays import Pixels
from sim2real.data import Episode, Video, read_recording
from sim2real.errors import Sim2RealError
from sim2real.files import atomic_path
from sim2real.gap import Ranges, ranges_of
from sim2real.identification import Identification, before_and_after
from sim2real.learn import TrainedPolicy
from sim2real.logs import ControlLog, aligned
from sim2real.loop.algorithms import versions_of
from sim2real.loop.rounds import AttemptFilm, LoopEvidence, RecordedEpisode
from sim2real.loop.stages.base import StagesBase, episodes_of, run_of
from sim2real.loop.stages.twin import IDENTIFICATION_FILE
from sim2real.loop.steps import KeptResult, KeptStep, StepResult
from sim2real.randomize import drawn
from sim2real.replay import MeasuredStates, ReplayedNumbers
from sim2real.tasks import Camera, Task, TaskEnv, find_task
from sim2real.twin import Twin, twin_contract

_HORIZON_S = 0.5
_DRAWS = 512
_RATE_HZ = 25.0
_SIZE = (480, 360)
_STILL_S = 1.0
"""Length of the end that a still shows [s]."""


class EvidenceStages(StagesBase):
    """Makes the step of a loop that shows what it did."""

    def show(
        self,
        rounds: Sequence[tuple[KeptStep, tuple[KeptStep, ...]]],
        known: KeptStep | None,
        recorded: KeptStep,
    ) -> KeptStep:
        """What shows how the gap was closed.

        `rounds` are policies with their attempts, `known` the step that identified the robot.
        """
        first, last = rounds[0][1], rounds[-1][1] if len(rounds) > 1 else ()

        def work(folder: Path, done: tuple[KeptResult, ...]) -> StepResult:
            moved, policy, *others = done
            failed, won = others[: len(first)], others[len(first) : len(first) + len(last)]
            replays, beliefs = ReplayedNumbers(), None
            if known is not None:
                twins = Twin.load(self.twin), Twin.load(others[-1].folder / "twin")
                logs = [aligned(episode, twins[0]) for episode in episodes_of(moved)]
                replays = before_and_after(twins, logs, _HORIZON_S)
                beliefs = self._beliefs(twins[1], policy)
            films = tuple(self._films(folder, failed, won)) if last else ()
            return LoopEvidence(replays=replays, beliefs=beliefs, films=films).stored()

        needs = (recorded, rounds[-1][0], *first, *last, *([known] if known else []))
        return KeptStep(
            kind="show",
            algorithms=versions_of("evidence"),
            inputs={"task": self.task},
            needs=needs,
            work=work,
        )

    def _films(
        self, folder: Path, first: list[KeptResult], last: list[KeptResult]
    ) -> Iterator[AttemptFilm]:
        task, twin = find_task(self.task), Twin.load(self.twin)
        for attempts, outcome, words in (
            (first, "failure", "first policy: it fails"),
            (last, "success", "last policy: it succeeds"),
        ):
            found = (episode for one in attempts for episode in episodes_of(one))
            episode = next((one for one in found if one.outcome == outcome), None)
            if episode is None:
                continue
            video, still = folder / f"{outcome}.mp4", folder / f"{outcome}.jpg"
            try:
                film(episode, twin, task, video, still)
            except Sim2RealError as error:
                yield AttemptFilm(words=words, episode=episode.id, problem=str(error))
            else:
                yield AttemptFilm(
                    words=words, episode=episode.id, video=video.name, still=still.name
                )

    def _beliefs(self, twin: Twin, policy: KeptResult) -> Ranges | None:
        """The draws that the last policy was trained with."""
        if twin.posterior is None:
            return None
        trained = TrainedPolicy.open(run_of(policy)).run
        wider = Twin.load(trained.twin) if trained.twin and trained.source == "posterior" else twin
        draws = drawn(wider, "posterior", count=_DRAWS, seed=0).numpy()
        return ranges_of(twin, "posterior", draws)


def identification_of(known: KeptResult | None) -> Identification | None:
    """What a step that identified the robot found."""
    file = known.folder / IDENTIFICATION_FILE if known else None
    return Identification.load(file) if file and file.is_file() else None


def shown_in(folder: Path, done: KeptResult) -> LoopEvidence:
    """What a step showed, with its films in a loop's folder."""
    found = LoopEvidence.restored(done.result, str(done.folder))

    def placed(name: str) -> str:
        return os.path.relpath(done.folder / name, folder) if name else ""

    films = [replace(f, video=placed(f.video), still=placed(f.still)) for f in found.films]
    return replace(found, films=tuple(films))


def recorded_in(folder: Path, steps: Iterable[KeptResult]) -> Iterator[RecordedEpisode]:
    """The episodes that steps recorded, in a loop's folder."""
    for done in steps:
        for path in sorted(done.folder.rglob("*.arrow")):
            episode = read_recording(path)
            yield RecordedEpisode(
                id=episode.id,
                made_by=done.step.kind,
                outcome=episode.outcome,
                seconds=episode.duration_s,
                file=os.path.relpath(path, folder),
            )


def film(episode: Episode, twin: Twin, task: type[Task], video: Path, still: Path) -> None:
    """Film a robot as its sensors measured it, rendered in its twin; a still shows the end."""
    log = ControlLog.of(episode, twin_contract(twin, task.rate_hz), twin.channels)
    if not len(log.times):
        raise Sim2RealError("nothing was recorded")
    every = max(1, math.ceil(task.rate_hz / _RATE_HZ))
    env = TaskEnv(task, worlds=1, seed=0, source="nominal", twin=twin, threads=1)
    for name in task.goals:
        signal = episode.signals.get(f"goal/{name}")
        if signal is not None and len(signal.values):
            env.worlds.memory[name][0] = torch.from_numpy(np.atleast_1d(signal.values[0]))
    states = MeasuredStates(env.worlds.model, log)
    filming = closing(Camera(env, width=_SIZE[0], height=_SIZE[1]))
    last: deque[Pixels] = deque(maxlen=round(_STILL_S * task.rate_hz / every))

    def pictures(camera: Camera) -> Iterator[Pixels]:
        for row in range(0, len(log.times), every):
            states.write(env.worlds, log.times[row : row + 1])
            last.append(camera.picture())
            yield last[-1]

    with filming as camera:
        content = Video.mp4_of(pictures(camera), rate_hz=task.rate_hz / every)
    with atomic_path(video) as temporary:
        temporary.write_bytes(content)
    # In the mean of the pictures motion is blurred.
    mean = np.mean(np.stack(list(last)), axis=0).round().astype(np.uint8)
    with atomic_path(still) as temporary:
        Image.fromarray(mean).save(temporary, format="jpeg", quality=85)
