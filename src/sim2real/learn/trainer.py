"""The training loop: rsl_rl's PPO in randomised worlds, resumable at any iteration."""

from __future__ import annotations

import math
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from sim2real.errors import Sim2RealError, options_as
from sim2real.files import write_json
from sim2real.learn.checkpoint import (
    Checkpoint,
    latest_checkpoint,
    load_checkpoint,
    save_checkpoint,
)
from sim2real.learn.learn_configs import TrainConfig
from sim2real.learn.run import Run
from sim2real.params import Key, uniform
from sim2real.plain import MaybeNan, PlainData, plain
from sim2real.randomize import AutomaticRanges
from sim2real.tasks import Starts, Task, TaskEnv, add_task, find_task
from sim2real.twin import Twin

if TYPE_CHECKING:
    from rsl_rl.algorithms import PPO
    from torch.utils.tensorboard import SummaryWriter

RESULT_FILE = "result.json"
_WINDOW = 1000
"""Last episodes whose success is reported."""
_RELATIVE_NOISE = 0.5
"""Exploration of a run that starts from trained networks, relative to that of a new one."""
_NEWEST = 0.05
"""Weight of the newest update in the policy, which is a moving average of about twenty updates."""


@dataclass(frozen=True)
class TrainProgress:
    """Progress of a training run."""

    iteration: int
    iterations: int
    success: float
    """Share of the last episodes that succeeded; nan before the first ends."""
    reward: float
    """Mean reward of a control period in this iteration."""
    steps: int
    """Environment steps so far."""
    steps_per_s: float
    """Environment steps per second in this iteration, including learning."""
    diverged: int
    """Worlds that diverged so far."""

    def __str__(self) -> str:
        text = "" if math.isnan(self.success) else f"success {100 * self.success:5.1f} %  "
        text += f"reward {self.reward:6.2f}  {self.steps_per_s:,.0f} steps/s"
        return text + (f"  {self.diverged} diverged" if self.diverged else "")


@dataclass(frozen=True)
class TrainResult(PlainData):
    """How a training run ended."""

    run: Path
    finished: bool
    """False if it was interrupted: `--resume` continues it."""
    iterations: int
    steps: int
    success: MaybeNan
    """Share of the last episodes that succeeded; nan where none has ended."""
    seconds: float
    """Time spent training, over all its sessions."""
    diverged: int


class Trainer:
    """One run: the environment, the learner, and its progress."""

    def __init__(self, run: Run, *, twin: Twin | None = None) -> None:
        """A new run; in `twin` if the run does not name one."""
        from sim2real.learn.ppo import make_ppo  # slow to import, and only training needs it
        from sim2real.learn.vecenv import RslRlEnv

        self.run = run
        training = run.training
        torch.set_num_threads(run.learner_threads)
        torch.manual_seed(run.seed)
        task = find_task(run.task)
        self.env = TaskEnv(
            task,
            worlds=training.worlds,
            seed=run.seed,
            source=run.source,
            twin=Twin.load(run.twin) if run.twin else twin,
            threads=run.threads,
            engine=run.engine,
            remainder=run.remainder,
            starts=Starts.load(run.starts) if run.starts else None,
        )
        self.vec = RslRlEnv(self.env)
        self.ppo: PPO = make_ppo(self.vec, training)
        self.ppo.train_mode()
        self.average = self._actor_weights()
        """Weights of the actor, averaged over the last updates: a single update may be bad."""
        self.iteration = 0
        self.seconds = 0.0
        self.outcomes: deque[bool] = deque(maxlen=_WINDOW)
        self.widths: list[list[float]] = []
        self.history: list[list[float]] = []
        everyone = torch.arange(training.worlds)
        ages = uniform(Key.of(run.seed, "first-age"), worlds=everyone, episodes=everyone * 0)
        # Worlds start at different ages, so that every update sees all parts of episodes.
        self.env.age.copy_((ages * self.env.steps).long())

    @property
    def steps(self) -> int:
        """Environment steps so far."""
        return self.iteration * self.run.training.steps * self.run.training.worlds

    @property
    def success(self) -> float:
        """Share of the last episodes that succeeded; nan before the first ends."""
        return sum(self.outcomes) / len(self.outcomes) if self.outcomes else float("nan")

    def iterate(self) -> tuple[TrainProgress, dict[str, float]]:
        """One update of the policy: collect experience, then learn from it."""
        begin = time.perf_counter()
        rewards = torch.zeros((), device=self.env.device)
        with torch.inference_mode():
            observations = self.vec.get_observations()
            for _ in range(self.run.training.steps):
                actions = self.ppo.act(observations)
                episodes = self.env.episode.clone()
                observations, reward, done, extras = self.vec.step(actions)
                self.ppo.process_env_step(observations, reward, done, extras)
                rewards += reward.mean()
                step = self.vec.last
                if step is not None and len(step.ended):
                    # A world's first episode is not complete, so its success does not count.
                    whole = step.ended[episodes[step.ended] > 0]
                    self.outcomes.extend(step.success[whole].tolist())
            self.ppo.compute_returns(observations)
        losses = self.ppo.update()
        self.iteration += 1
        share = max(1 / self.iteration, _NEWEST)
        for name, newest in self._actor_weights().items():
            mixed = newest.is_floating_point()  # or a count of observations
            self.average[name] = torch.lerp(self.average[name], newest, share) if mixed else newest
        elapsed = time.perf_counter() - begin
        self.seconds += elapsed
        if isinstance(self.env.sampler, AutomaticRanges):
            self.widths.append(self.env.sampler.width().tolist())
        training = self.run.training
        self.history.append([self.steps, self.success, float(rewards) / training.steps])
        progress = TrainProgress(
            iteration=self.iteration,
            iterations=training.iterations,
            success=self.success,
            reward=float(rewards) / training.steps,
            steps=self.steps,
            steps_per_s=training.steps * training.worlds / elapsed,
            diverged=self.env.worlds.diverged,
        )
        return progress, losses

    def _actor_weights(self) -> dict[str, torch.Tensor]:
        return {name: weights.clone() for name, weights in self.ppo.actor.state_dict().items()}

    def save(self) -> Path:
        """Write a checkpoint."""
        content: Checkpoint = {
            "iteration": self.iteration,
            "seconds": self.seconds,
            "outcomes": [bool(outcome) for outcome in self.outcomes],
            "widths": self.widths,
            "history": self.history,
            "learner": self.ppo.save(),
            "average": self.average,
            "env": self.env.state_dict(),
            "rng": torch.get_rng_state(),
            "twin": self.env.twin.version,
        }
        return save_checkpoint(self.run.folder, self.iteration, content)

    def begin_with(self, folder: Path) -> None:
        """Start from the networks of another run, with half of a new run's exploration noise."""
        other = Run.open(folder)
        content = load_checkpoint(latest_checkpoint(folder))
        if other.task != self.run.task:
            raise Sim2RealError(f"{folder} was trained for {other.task}, not for {self.run.task}")
        try:
            self.ppo.load(content["learner"], {"actor": True, "critic": True}, True)
            self.ppo.actor.load_state_dict(content["average"])
        except RuntimeError:
            raise Sim2RealError(
                f"the networks of {folder} have different shapes from those of this run"
            ) from None
        noise = self.run.training.noise
        with torch.no_grad():
            self.ppo.get_policy().distribution.log_std_param.fill_(
                math.log(_RELATIVE_NOISE * noise)
            )
        self.average = self._actor_weights()

    def load(self) -> None:
        """Continue from the newest checkpoint."""
        path = latest_checkpoint(self.run.folder)
        content = load_checkpoint(path)
        if content["twin"] != self.env.twin.version:
            raise Sim2RealError(
                f"{path} was trained in twin version {content['twin']}, but the twin is now"
                f" {self.env.twin.version}"
            )
        self.ppo.load(content["learner"], None, True)
        self.average = content["average"]
        self.env.load_state_dict(content["env"])
        self.iteration, self.seconds = content["iteration"], content["seconds"]
        self.outcomes.extend(content["outcomes"])
        self.widths, self.history = content["widths"], content["history"]
        torch.set_rng_state(content["rng"])


def train(
    task: TrainConfig | type[Task] | str = "",
    *,
    twin: Twin | Path | str | None = None,
    report: Callable[[TrainProgress], None] = lambda progress: None,
    **options: Any,  # fields of TrainConfig
) -> TrainResult:
    """Train a policy for a task; Ctrl-C ends after the iteration, with a checkpoint to resume from.

    `options` are fields of `TrainConfig`, which may also be given instead of the task. A task class
    of a script is registered. A twin that is given as a value is saved in the run's folder.
    """
    config = task if isinstance(task, TrainConfig) else _asked(task, twin, options)
    if config.resume is not None:
        given = replace(config, resume=None, json=False)
        if given != TrainConfig():
            raise Sim2RealError(
                "--resume continues a run with its own options; leave out all others"
            )
        trainer = Trainer(Run.open(config.resume))
        trainer.load()
    else:
        mine = twin if isinstance(twin, Twin) else None
        run = Run.plan(config, learner_threads=torch.get_num_threads())
        trainer = Trainer(run, twin=mine)
        if config.begin is not None:
            trainer.begin_with(config.begin)
        trainer.run = trainer.run.create(mine)
    return _trained(trainer, report)


def _asked(
    task: type[Task] | str, twin: Twin | Path | str | None, options: dict[str, Any]
) -> TrainConfig:
    if not isinstance(task, str):
        add_task(task)
        task = task.name
    folder = None if twin is None or isinstance(twin, Twin) else Path(twin)
    return options_as(TrainConfig, task=task, twin=folder, **options)


def _trained(trainer: Trainer, report: Callable[[TrainProgress], None]) -> TrainResult:
    run = trainer.run
    saved, reached = trainer.iteration, False
    from torch.utils.tensorboard import SummaryWriter

    events = SummaryWriter(str(run.folder / "tensorboard"), purge_step=trainer.iteration)
    with events as writer, _interruptible() as stopped:
        while trainer.iteration < run.training.iterations and not reached and not stopped():
            progress, losses = trainer.iterate()
            _log(writer, progress, losses)
            report(progress)
            full = len(trainer.outcomes) == _WINDOW
            goal = run.target_success
            reached = goal is not None and full and trainer.success >= goal
            if trainer.iteration % run.save_every == 0:
                trainer.save()
                saved = trainer.iteration
        if saved != trainer.iteration:
            trainer.save()
    result = TrainResult(
        run=run.folder,
        finished=reached or trainer.iteration >= run.training.iterations,
        iterations=trainer.iteration,
        steps=trainer.steps,
        success=trainer.success,
        seconds=trainer.seconds,
        diverged=trainer.env.worlds.diverged,
    )
    write_json(
        run.folder / RESULT_FILE,
        {
            **result.to_dict(),
            "twin": trainer.env.twin.version,
            "worlds": run.training.worlds,
            "history": plain(trainer.history),
            "ranges": {
                "names": [parameter.name for parameter in trainer.env.twin.parameters],
                "widths": trainer.widths,
            },
        },
    )
    return result


def _log(writer: SummaryWriter, progress: TrainProgress, losses: dict[str, float]) -> None:
    at = progress.iteration
    writer.add_scalar("train/reward", progress.reward, at)
    writer.add_scalar("train/steps_per_s", progress.steps_per_s, at)
    writer.add_scalar("train/diverged", progress.diverged, at)
    if not math.isnan(progress.success):
        writer.add_scalar("train/success", progress.success, at)
    for name, value in losses.items():
        writer.add_scalar(f"loss/{name}", value, at)


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """Gives a function that says whether Ctrl-C or SIGTERM came; a second one kills at once."""
    asked: list[int] = []

    def ask(number: int, frame: object) -> None:
        asked.append(number)
        signal.signal(number, signal.SIG_DFL)

    try:
        before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not the main thread, which alone gets signals
        yield lambda: False
        return
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
