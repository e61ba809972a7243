"""The verb `drift`: has a deployed robot moved away from what it was?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from sim2real.cli.output import print_json, print_table, say

if TYPE_CHECKING:
    from sim2real.robot import DriftReport


@dataclass(frozen=True, kw_only=True)
class DriftConfig:
    """Look through a deployed robot's episodes for drift; exit code 1 if it has drifted.

    The first episodes are the reference. If nothing changes, the chance of an alarm is at most
    `false_alarm`, however many episodes follow.
    """

    bundle: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="BUNDLE")]
    """Folder of the bundle the robot runs."""
    logs: tuple[str, ...]
    """Recordings of its episodes, in the order they were made."""
    baseline: int = 20
    """Episodes, from the first, that the others are compared with."""
    false_alarm: float = 0.01
    """Chance of an alarm, ever, while nothing changes."""
    state: Path | None = None
    """File that the monitor is kept in: gone on with where it exists, written in the end. Its
    baseline and false alarm rate are those it was started with; episodes it knows are skipped."""
    out: Path | None = None
    """Picture of the evidence over the episodes (PNG, PDF or SVG)."""
    json: bool = False
    """Print as JSON."""


def run_drift(config: DriftConfig) -> int:
    """Run the verb; 1 where there was drift, else 0."""
    from sim2real.cli.logs import read_logs
    from sim2real.errors import Sim2RealError
    from sim2real.policy import Bundle
    from sim2real.report.drift import FORMATS, plot_drift
    from sim2real.report.progress import bar
    from sim2real.robot import DriftMonitor

    if config.out is not None and config.out.suffix not in FORMATS:
        raise Sim2RealError(f"--out {config.out}: a picture is one of {', '.join(FORMATS)}")
    bundle = Bundle.open(config.bundle)
    episodes = read_logs(config.logs)
    if config.state is not None and config.state.exists():
        monitor = DriftMonitor.load(config.state, bundle)
        known = {scores.episode for scores in monitor.scores}
        episodes = [episode for episode in episodes if episode.id not in known]
    else:
        monitor = DriftMonitor.empty(
            bundle, baseline=config.baseline, false_alarm=config.false_alarm
        )
        if config.state is None and len(episodes) <= config.baseline:
            raise Sim2RealError(
                f"{len(episodes)} episodes are not more than the baseline of {config.baseline}:"
                " nothing is left to compare with it; --baseline takes fewer"
            )
    with bar("drift", quiet=config.json) as show:
        skipped = monitor.add_all(episodes, report=show)
    if config.state is not None:
        monitor.save(config.state)
    elif not monitor.verdicts:
        why = f"; the first that could not be replayed: {skipped[0]}" if skipped else ""
        raise Sim2RealError(
            f"{len(monitor.scores)} episodes are not more than the baseline of {config.baseline}:"
            f" nothing is left to compare with it{why}"
        )
    report = monitor.report(skipped)
    if config.out is not None:
        plot_drift(config.out, report)
    if config.json:
        print_json(report.to_dict())
    else:
        _show(report)
    return 1 if report.drifted else 0


def _show(report: DriftReport) -> None:
    rows = [
        (
            v.number,
            v.episode[:12],
            f"{v.evidence:.3g}",
            f"{v.threshold:g}",
            v.telling,
            _mark(v.alarm),
        )
        for v in report.verdicts
    ]
    if rows:
        print_table(("episode", "id", "evidence", "threshold", "told by", "alarm"), rows)
    for reason in report.skipped:
        say(f"left out: {reason}")
    rate = f"at most {100 * report.false_alarm:g} % false alarms, however long it runs"
    if report.alarm is None:
        say(f"no drift against the first {report.baseline} episodes ({rate})")
        return
    say(f"drift: alarm at episode {report.alarm}, changed since about {report.change} ({rate})")
    for cause in report.causes:
        alike = f" or {', '.join(cause.alike)}, which look the same" if cause.alike else ""
        say(
            f"  {cause.name}{alike}: {cause.shift:+.4g} {cause.unit}"
            f" [{cause.low:+.4g}, {cause.high:+.4g}], {100 * cause.explains:.0f} % of the change"
            f" is explained so far, p {cause.p_value:.1g}"
        )
    if not report.causes:
        say("  no parameter of the twin explains it: look at the robot, and at what is around it")
    say("identify the robot anew, and start a new baseline from there")


def _mark(alarm: bool) -> str:
    return "ALARM" if alarm else ""
