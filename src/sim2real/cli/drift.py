"""The verb `drift`: has a deployed robot changed?"""

from __future__ import annotations

from pathlib import Path

from sim2real.cli.adapter import carry_out
from sim2real.cli.output import print_table, say
from sim2real.errors import Sim2RealError
from sim2real.report import FORMATS, plot_drift
from sim2real.robot import DriftConfig, DriftReport, watch_drift


def run_drift(config: DriftConfig) -> int:
    """Run the verb; 1 if there was drift, else 0."""
    if config.out is not None and config.out.suffix not in FORMATS:
        raise Sim2RealError(
            f"--out must end in one of {', '.join(FORMATS)}, not {config.out.name!r}"
        )
    return carry_out(
        config,
        watch_drift,
        show=_show,
        keep=lambda report, path: plot_drift(path, report),
        fine=lambda report: not report.drifted,
    )


def _show(report: DriftReport, out: Path) -> None:
    rows = [
        (
            v.number,
            v.episode[:12],
            f"{v.evidence:.3g}",
            f"{v.threshold:g}",
            v.telling,
            "ALARM" if v.alarm else "",
        )
        for v in report.verdicts
    ]
    if rows:
        print_table(("episode", "id", "evidence", "threshold", "shown by", "alarm"), rows)
    for reason in report.skipped:
        say(f"left out: {reason}")
    rate = (
        f"the probability of ever raising a false alarm is at most {100 * report.false_alarm:g} %"
    )
    if report.alarm is None:
        say(f"no drift against the first {report.baseline} episodes ({rate})")
        return
    say(f"drift: alarm at episode {report.alarm}, changed since about {report.change} ({rate})")
    for cause in report.causes:
        alike = f" or {', '.join(cause.alike)}, which look the same" if cause.alike else ""
        say(
            f"  {cause.name}{alike}: {cause.shift:+.4g} {cause.unit}"
            f" [{cause.low:+.4g}, {cause.high:+.4g}], explains {100 * cause.explains:.0f} % of the"
            f" change so far, p {cause.p_value:.1g}"
        )
    if not report.causes:
        say("  no parameter of the twin explains it: check the robot and its surroundings")
    say("identify the robot again, and start a new baseline")
