"""The verbs `tasks`, `train`, `play` and `export`."""

from __future__ import annotations

from sim2real.cli.options import Tasks
from sim2real.cli.output import answer, print_json, say
from sim2real.evaluation import PlayConfig, play
from sim2real.learn import ExportConfig, TrainConfig, export, train
from sim2real.report import bar, plot_run
from sim2real.tasks import find_task, task_names


def run_tasks(config: Tasks) -> int:
    """List the tasks; 0."""
    pages = {name: (find_task(name).__doc__ or "").strip() for name in task_names()}
    found = {name: page.partition("\n")[0] for name, page in pages.items()}
    lines = [f"{name:20s} {text}" for name, text in found.items()]
    return answer(found, "\n".join(lines), json=config.json)


def run_train(config: TrainConfig) -> int:
    """Train as configured; 0, or 130 if it was interrupted."""
    with bar(config.task or str(config.resume), quiet=config.json) as show:
        result = train(config, report=lambda now: show(now.iteration, now.iterations, now))
    plot_run(result.run)
    if config.json:
        print_json(result)
    else:
        state = "finished" if result.finished else "interrupted"
        say(
            f"{state} after {result.iterations} iterations, {result.steps:,} steps,"
            f" {result.seconds:.0f} s; training success {100 * result.success:.1f} %"
        )
        say(f"run: {result.run}")
        if not result.finished:
            say(f"continue with: sim2real train --resume {result.run}")
    return 0 if result.finished else 130


def run_play(config: PlayConfig) -> int:
    """Film, or show; 0."""
    with bar("play", quiet=config.json or config.viewer) as report:
        path, outcomes = play(config, report=report)
    words = f"{sum(outcomes)} of {len(outcomes)} episodes succeeded"
    words += f"\nvideo: {path}" if path else ""
    return answer({"video": path, "success": outcomes}, words, json=config.json)


def run_export(config: ExportConfig) -> int:
    """Make the bundle; 0."""
    with bar("export", quiet=config.json) as report:
        bundle = export(config, report=report)
    worst = max(bundle.provenance["largest_difference"].values())
    words = (
        f"bundle: {bundle.folder}\nid {bundle.id[:32]}; differs from the trained network by at most"
        f" {worst:.1e} on {bundle.provenance['observations']:,} observations"
    )
    told = {"bundle": bundle.folder, "id": bundle.id, **bundle.provenance}
    return answer(told, words, json=config.json)
