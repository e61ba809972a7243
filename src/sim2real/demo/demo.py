"""`sim2real demo`: train, evaluate, film and summarise, with a live view of what happens."""

from __future__ import annotations

import json
import shutil
import sys
import time
from pathlib import Path

from sim2real.demo.config import DemoConfig
from sim2real.errors import Sim2RealError
from sim2real.evaluate.config import EvaluateConfig, PlayConfig
from sim2real.evaluate.evaluate import evaluate
from sim2real.evaluate.play import play
from sim2real.files import write_json, write_text
from sim2real.learn.config import TrainConfig
from sim2real.learn.train import train
from sim2real.report.plots import plot_evaluation, plot_run
from sim2real.report.progress import bar, training_bar

TASK = "pendulum-swingup"
_MARK = ".sim2real-demo"


def demo(config: DemoConfig) -> int:
    """Run the demo; the exit code."""
    begin = time.perf_counter()
    out, quiet = config.out, config.json
    _clear(out)
    _say(
        f"1/3  training {TASK} in randomised worlds: every episode has its own mass, friction,"
        " delay, noise …",
        quiet=quiet,
    )
    with training_bar("train", quiet=quiet) as report_training:
        trained = train(
            TrainConfig(task=TASK, seed=config.seed, out=out / "train"), report=report_training
        )
    if not trained.finished:
        _say(f"interrupted; the run is kept: sim2real train --resume {trained.run}", quiet=quiet)
        return 130
    plot_run(trained.run)
    shutil.copyfile(trained.run / "training.png", out / "training.png")
    _say(f"2/3  trying it in {config.episodes} worlds it has never seen", quiet=quiet)
    with bar("evaluate", quiet=quiet) as report:
        result, _ = evaluate(
            EvaluateConfig(run=trained.run, episodes=config.episodes, out=out), report=report
        )
    plot_evaluation(out / "evaluation.png", result)
    _say("3/3  filming three episodes", quiet=quiet)
    with bar("film", quiet=quiet) as report:
        film, outcomes = play(PlayConfig(run=trained.run, out=out / "swingup.mp4"), report=report)
    summary = {
        "task": TASK,
        "seed": config.seed,
        "twin": result.trials.twin,
        "sim_success": result.success.to_dict(),
        "filmed": outcomes,
        "training_steps": trained.steps,
        "training_seconds": round(trained.seconds, 1),
        "seconds": round(time.perf_counter() - begin, 1),
        "run": str(trained.run),
        "video": str(film),
        "plots": [str(out / "training.png"), str(out / "evaluation.png")],
    }
    write_json(out / "summary.json", summary)
    if config.json:
        sys.stdout.write(json.dumps(summary) + "\n")
        return 0
    _say(
        f"\ntrained on {trained.steps:,} steps in {trained.seconds:.0f} s; success over"
        f" randomised worlds: {result.success}"
    )
    worst = result.effects[0] if result.effects else None
    if worst is not None and worst.p_value < 0.05:
        _say(f"failures depend most on {worst.name} (p = {worst.p_value:.2g})")
    _say(
        f"video    {film}\nplots    {out / 'training.png'}, {out / 'evaluation.png'}\n"
        f"summary  {out / 'summary.json'}"
    )
    return 0


def _clear(out: Path) -> None:
    """Make room for a demo: an earlier demo is removed, anything else is left alone."""
    if out.exists() and not (out / _MARK).is_file() and (not out.is_dir() or any(out.iterdir())):
        raise Sim2RealError(f"{out} exists and is not an earlier demo; choose another --out")
    if out.exists():
        shutil.rmtree(out)
    write_text(out / _MARK, "made by sim2real demo; replaced by the next one\n")


def _say(text: str, *, quiet: bool = False) -> None:
    if not quiet:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
