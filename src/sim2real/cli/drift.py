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
    for line in report.sentences():
        say(line)
