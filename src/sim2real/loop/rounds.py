"""What a loop did and found: its rounds, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from sim2real.attribution import Advice, Attribution, Failures
from sim2real.evaluation import Prediction
from sim2real.gap import Ranges
from sim2real.identification import Identification
from sim2real.intervals import Rate
from sim2real.plain import PlainData
from sim2real.replay import ReplayedNumbers
from sim2real.results import Result

if TYPE_CHECKING:
    from sim2real.loop.turn import Turn
else:
    Turn = object  # pages are made where MuJoCo is not installed

SUMMARY_FILE = "summary.json"


@dataclass(frozen=True, kw_only=True)
class LadderStep:
    """One step of the ladder of trust that a policy took."""

    step: str
    passed: bool
    why: str
    """Why it was not passed; '' if it was."""
    to_pass: str = ""
    """What it would take to pass it."""


@dataclass(frozen=True, kw_only=True)
class LadderTaken:
    """How far a policy came on the ladder of trust."""

    steps: tuple[LadderStep, ...]
    passed: bool
    """Whether every step was passed."""


@dataclass(frozen=True, kw_only=True)
class Round(
    PlainData,
    also=("sim_success=sim", "real_success=real"),
    without=("sim", "real", "won", "episodes"),
):
    """One policy on the robot."""

    sim: Rate
    """Success in worlds like those it was trained in."""
    ladder: LadderTaken
    predicted: Prediction | None
    """Prediction for a batch of attempts, made before the first; None if not identified."""
    real: Rate
    """Success on the robot."""
    expected: Prediction | None
    """Prediction for further attempts, given those that were made."""
    failures: Failures | None
    """Why attempts failed."""
    steps: tuple[str, ...]
    """Folders of the steps it is made of."""
    won: tuple[bool, ...]
    """Outcome of every attempt."""
    episodes: tuple[str, ...]
    """Ids of the attempts."""


@dataclass(frozen=True, kw_only=True)
class LoopAttribution(PlainData, also=("error",), without=("trajectory", "why")):
    """What the gap was made of."""

    trajectory: Attribution | None
    """Of the twin's prediction error; None where there was none to share out."""
    why: str
    """Why not."""
    success: Attribution
    """Of the success that was lost from training to the robot."""

    @property
    def error(self) -> Attribution | dict[str, str]:
        """The attribution of the prediction error, or why there is none."""
        return self.trajectory or {"why": self.why}


@dataclass(frozen=True, kw_only=True)
class RecordedEpisode:
    """An episode behind the figures."""

    id: str
    made_by: str
    """Kind of the step."""
    outcome: str
    seconds: float
    file: str
    """In the loop's folder."""


@dataclass(frozen=True, kw_only=True)
class AttemptFilm:
    """An attempt, rendered in the twin from the robot's readings."""

    words: str
    episode: str
    """Its id."""
    video: str = ""
    """File in the folder of the loop; '' if it could not be filmed."""
    still: str = ""
    """Its last second in one picture."""
    problem: str = ""
    """Why it could not be filmed."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LoopEvidence(Result, kind="loop-evidence"):
    """What shows how the gap was closed."""

    replays: ReplayedNumbers
    """Recorded motions as the twin predicts them, before and identified."""
    beliefs: Ranges | None
    """The draws for the last policy's training."""
    films: tuple[AttemptFilm, ...]


@dataclass(frozen=True, kw_only=True)
class DoneStep:
    """A step of the loop, and the time it took."""

    name: str
    seconds: float


@dataclass(frozen=True, kw_only=True, eq=False)
class LoopResult(
    Result,
    kind="loop",
    file=SUMMARY_FILE,
    also=(
        "sim_success=first.sim", "real_success_before=first.real", "sim_success_after=last.sim",
        "last.predicted", "real_success_after=last.real", "last.expected", "trials",
    ),
    without=(
        "folder", "motions", "identification", "evidence", "episodes", "done", "turns",
    ),
):  # fmt: skip
    """How a loop ended."""

    task: str
    robot: str
    strategy: str
    folder: Path
    rounds: tuple[Round, ...]
    attribution: LoopAttribution | None
    advice: tuple[Advice, ...]
    target: float
    met: bool
    why: str
    """Why it ended, in a sentence."""
    recorded_s: float
    """Time of the motion that was recorded besides the attempts [s]."""
    motions: tuple[str, ...]
    """Ids of what was recorded."""
    identification: Identification | None
    """Of the robot, if it was identified; the last one."""
    evidence: LoopEvidence | None
    """None if the gap was not explained."""
    episodes: tuple[RecordedEpisode, ...]
    """Every episode behind the figures."""
    done: tuple[DoneStep, ...]
    turns: tuple[Turn, ...] = field(default=(), compare=False, repr=False)
    """The steps behind the rounds."""

    @property
    def trials(self) -> int:
        """Attempts that were made in all."""
        return sum(len(one.won) for one in self.rounds)

    @property
    def first(self) -> Round:
        """The first round."""
        return self.rounds[0]

    @property
    def last(self) -> Round:
        """The last round."""
        return self.rounds[-1]

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """The result in a loop's folder, or its file; films are looked for beside it."""
        path = Path(path)
        return replace(super().load(path), folder=path if path.is_dir() else path.parent)
