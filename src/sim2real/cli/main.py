"""The verbs of the command line; those about data are in `data.py` beside this.

Only what parsing needs is imported here; a verb imports its room when it runs, so that `--help`
answers at once. A user's mistake is one line on standard error and exit code 2.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from sim2real.attribute.config import AttributeConfig, FailuresConfig
from sim2real.cli.attribute import run_attribute
from sim2real.cli.data import DataVerb, run_data
from sim2real.cli.doctor import DoctorConfig, run_doctor
from sim2real.cli.drift import DriftConfig, run_drift
from sim2real.cli.evaluate import run_compare, run_power, run_predict, run_rank
from sim2real.cli.failures import run_failures
from sim2real.cli.gap import run_gap
from sim2real.cli.identify import run_identify
from sim2real.cli.identify_plan import run_plan
from sim2real.cli.loop import run_loop
from sim2real.cli.output import print_json, say, say_error
from sim2real.cli.randomize import RandomizeShow, run_show
from sim2real.cli.record import RecordConfig, run_record
from sim2real.demo.config import DemoConfig
from sim2real.errors import Sim2RealError
from sim2real.evaluate.config import (
    CompareConfig,
    EvaluateConfig,
    PlayConfig,
    PowerConfig,
    PredictConfig,
    RankConfig,
)
from sim2real.gap.config import GapConfig
from sim2real.identify.config import IdentifyConfig, PlanConfig
from sim2real.learn import TrainConfig
from sim2real.loop import LoopConfig
from sim2real.policy import ExportConfig
from sim2real.robot import DeployConfig

if TYPE_CHECKING:
    from sim2real.evaluate.evaluate import Evaluation


@dataclass(frozen=True, kw_only=True)
class TwinShow:
    """Show a twin: its version, parameters, effects and channels."""

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER")]
    """Folder of the twin."""
    json: bool = False
    """Print as JSON."""


@dataclass(frozen=True, kw_only=True)
class TwinLint:
    """Look for the classic mistakes in a twin; exit code 1 if there are warnings."""

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER")]
    """Folder of the twin."""
    json: bool = False
    """Print as JSON."""


@dataclass(frozen=True, kw_only=True)
class Tasks:
    """List the tasks that can be trained."""

    json: bool = False
    """Print as JSON."""


_sub = tyro.conf.subcommand
Twins = Annotated[
    Annotated[TwinShow, _sub("show")] | Annotated[TwinLint, _sub("lint")],
    tyro.conf.OmitSubcommandPrefixes,
]


@dataclass(frozen=True, kw_only=True)
class TwinVerb:
    """Look at a twin: show it, or lint it."""

    what: Twins


Verb = (
    Annotated[DemoConfig, _sub("demo")]
    | Annotated[TrainConfig, _sub("train")]
    | Annotated[PlayConfig, _sub("play")]
    | Annotated[EvaluateConfig, _sub("evaluate")]
    | Annotated[CompareConfig, _sub("compare")]
    | Annotated[PredictConfig, _sub("predict")]
    | Annotated[RankConfig, _sub("rank")]
    | Annotated[PowerConfig, _sub("power")]
    | Annotated[ExportConfig, _sub("export")]
    | Annotated[DeployConfig, _sub("deploy")]
    | Annotated[DoctorConfig, _sub("doctor")]
    | Annotated[RecordConfig, _sub("record")]
    | Annotated[DriftConfig, _sub("drift")]
    | Annotated[GapConfig, _sub("gap")]
    | Annotated[IdentifyConfig, _sub("identify")]
    | Annotated[PlanConfig, _sub("identify plan")]
    | Annotated[LoopConfig, _sub("loop")]
    | Annotated[AttributeConfig, _sub("attribute")]
    | Annotated[FailuresConfig, _sub("failures")]
    | Annotated[RandomizeShow, _sub("randomize show")]
    | Annotated[TwinVerb, _sub("twin")]
    | Annotated[Tasks, _sub("tasks")]
    | Annotated[DataVerb, _sub("data")]
)


_TWO_WORDS = (["identify", "plan"], ["randomize", "show"])
"""Verbs of two words whose first word is a verb of its own, or none at all."""


def parse(words: list[str]) -> Any:
    """The verb that words ask for, with its options; what is none ends the program."""
    if words[:2] in _TWO_WORDS:
        words[:2] = [" ".join(words[:2])]
    return tyro.cli(
        Verb,
        prog="sim2real",
        description="Measure, explain and close the gap between simulation and the real robot.",
        args=words,
        config=(tyro.conf.OmitSubcommandPrefixes, tyro.conf.OmitArgPrefixes),
    )


def main(arguments: list[str] | None = None) -> int:
    """Run one verb; the exit code."""
    try:
        return _run(parse(sys.argv[1:] if arguments is None else list(arguments)))
    except Sim2RealError as error:
        say_error(str(error))
        return 2
    except KeyboardInterrupt:
        say_error("interrupted")
        return 130
    except BrokenPipeError:  # `… | head`: nobody reads on
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS, errno.EFBIG):
            say_error(f"cannot write: {error.strerror} ({error.filename or 'disk'})")
            return 2
        raise


def _run(verb: Any) -> int:
    if isinstance(verb, TwinVerb):
        verb = verb.what
    if isinstance(verb, DataVerb):
        return run_data(verb.what)
    runners: dict[type, Callable[[Any], int]] = {
        DemoConfig: _demo,
        TrainConfig: _train,
        PlayConfig: _play,
        EvaluateConfig: _evaluate,
        CompareConfig: run_compare,
        PredictConfig: run_predict,
        RankConfig: run_rank,
        PowerConfig: run_power,
        ExportConfig: _export,
        DeployConfig: _deploy,
        DoctorConfig: run_doctor,
        RecordConfig: run_record,
        DriftConfig: run_drift,
        GapConfig: run_gap,
        IdentifyConfig: run_identify,
        LoopConfig: run_loop,
        PlanConfig: run_plan,
        AttributeConfig: run_attribute,
        FailuresConfig: run_failures,
        RandomizeShow: run_show,
        TwinShow: _twin_show,
        TwinLint: _twin_lint,
        Tasks: _tasks,
    }
    return runners[type(verb)](verb)


def _train(config: TrainConfig) -> int:
    from sim2real.learn import train
    from sim2real.report.progress import training_bar

    with training_bar(config.task or str(config.resume), quiet=config.json) as report:
        result = train(config, report=report)
    from sim2real.report.plots import plot_run

    plot_run(result.run)
    if config.json:
        print_json(result.to_dict())
    else:
        state = "finished" if result.finished else "interrupted"
        say(
            f"{state} after {result.iterations} iterations, {result.steps:,} steps,"
            f" {result.seconds:.0f} s; training success {100 * result.success:.1f} %"
        )
        say(f"run: {result.run}")
        if not result.finished:
            say(f"go on with: sim2real train --resume {result.run}")
    return 0 if result.finished else 130


def _evaluate(config: EvaluateConfig) -> int:
    from sim2real.evaluate.evaluate import evaluate
    from sim2real.report.plots import plot_evaluation
    from sim2real.report.progress import bar

    with bar("evaluate", quiet=config.json) as report:
        result, folder = evaluate(config, report=report)
    plot_evaluation(folder / "evaluation.png", result)
    if config.json:
        print_json(result.to_dict())
    else:
        _show_evaluation(result)
        say(f"written: {folder}")
        if config.lake:
            say(f"episodes kept in {config.lake}")
    return 0


def _show_evaluation(result: Evaluation) -> None:
    from rich.table import Table

    say(f"success {result.success}")
    if not result.effects:
        return
    table = Table(
        title="success along each parameter, lowest fifth to highest", title_justify="left"
    )
    table.add_column("parameter", overflow="fold")
    table.add_column("range", no_wrap=True)
    table.add_column("success in fifths [%]", no_wrap=True)
    table.add_column("p", justify="right")
    for effect in result.effects:
        rates = " ".join(f"{100 * rate.value:3.0f}" for rate in effect.rates)
        style = "bold red" if effect.p_value < 0.01 else ""
        table.add_row(
            effect.name,
            f"{effect.edges[0]:.2g} .. {effect.edges[-1]:.2g}",
            rates,
            f"{effect.p_value:.2g}",
            style=style,
        )
    _console().print(table)


def _play(config: PlayConfig) -> int:
    from sim2real.evaluate.play import play
    from sim2real.report.progress import bar

    with bar("play", quiet=config.json or config.viewer) as report:
        path, outcomes = play(config, report=report)
    if config.json:
        print_json({"video": str(path) if path else None, "success": outcomes})
    else:
        say(f"{sum(outcomes)} of {len(outcomes)} episodes succeeded")
        if path:
            say(f"video: {path}")
    return 0


def _export(config: ExportConfig) -> int:
    from sim2real.policy import export
    from sim2real.report.progress import bar

    with bar("export", quiet=config.json) as report:
        bundle = export(config, report=report)
    if config.json:
        print_json({"bundle": str(bundle.folder), "id": bundle.id, **bundle.provenance})
    else:
        worst = max(bundle.provenance["largest_difference"].values())
        say(f"bundle: {bundle.folder}")
        say(
            f"id {bundle.id[:32]}; farthest from the trained network {worst:.1e} on"
            f" {bundle.provenance['observations']:,} observations"
        )
    return 0


def _deploy(config: DeployConfig) -> int:
    from sim2real.cli.deploy import run_deploy

    return run_deploy(config)


def _twin_show(config: TwinShow) -> int:
    from sim2real.twin import Twin

    twin = Twin.load(config.folder)
    if config.json:
        print_json({"version": twin.version, **twin.to_dict()})
        return 0
    from rich.table import Table

    say(
        f"twin {twin.name}, version {twin.version}"
        + (f", parent {twin.parent}" if twin.parent else "")
    )
    table = Table()
    table.add_column("parameter", overflow="fold")
    for column in ("dimension", "nominal", "unit", "prior"):
        table.add_column(column)
    for p in twin.parameters:
        prior = {k: v for k, v in p.prior.to_dict().items() if k != "kind"}
        text = " ".join(
            f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in prior.items()
        )
        nominal = {"scale": "×", "add": "+"}.get(p.operation, "") + f"{p.nominal:.4g}"
        table.add_row(p.name, str(p.dimension), nominal, p.unit, f"{p.prior.kind} {text}")
    _console().print(table)
    return 0


def _twin_lint(config: TwinLint) -> int:
    from sim2real.twin import Twin, lint

    findings = lint(Twin.load(config.folder))
    if config.json:
        print_json([vars(finding) for finding in findings])
    else:
        for finding in findings:
            say(f"{finding.severity}: {finding.place}: {finding.message}; {finding.remedy}")
        if not findings:
            say("nothing to complain about")
    return 1 if any(finding.severity == "warning" for finding in findings) else 0


def _tasks(config: Tasks) -> int:
    from sim2real.tasks import find_task, task_names

    found = {name: (find_task(name).__doc__ or "").strip().splitlines()[0] for name in task_names()}
    if config.json:
        print_json(found)
    else:
        for name, text in found.items():
            say(f"{name:20s} {text}")
    return 0


def _demo(config: DemoConfig) -> int:
    from sim2real.demo.demo import demo

    return demo(config)


def _console() -> Any:
    from rich.console import Console

    return Console()
