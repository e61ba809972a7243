"""The picture of a drift monitor: evidence over the episodes, and where it became too much."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from sim2real.report.page import NEW, WARN, write_picture

if TYPE_CHECKING:
    from sim2real.robot import DriftReport

FORMATS = (".png", ".pdf", ".svg")


def plot_drift(path: Path, report: DriftReport) -> None:
    """Evidence of each episode after the baseline, with the threshold and the estimated change."""
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    axis = figure.subplots()
    numbers = [verdict.number for verdict in report.verdicts]
    evidence = [verdict.evidence for verdict in report.verdicts]
    axis.axvspan(0.5, report.baseline + 0.5, color="0.92", label="baseline")
    axis.plot(numbers, evidence, "o-", color=NEW, markersize=4, linewidth=1, label="evidence")
    axis.axhline(1 / report.false_alarm, color=WARN, linewidth=1, linestyle="--")
    axis.annotate(
        f"alarm from {1 / report.false_alarm:g}: a false one in at most"
        f" {100 * report.false_alarm:g} % of all deployments",
        (0.01, 1 / report.false_alarm),
        xycoords=("axes fraction", "data"),
        xytext=(0, 3),
        textcoords="offset points",
        fontsize=7,
        color=WARN,
    )
    if report.change is not None:
        axis.axvline(report.change - 0.5, color="0.3", linewidth=1, linestyle=":", label="change")
    axis.set_yscale("log")
    top = max([*evidence, 1 / report.false_alarm])
    axis.set_ylim(min([*evidence, 0.1]) / 2, 4 * top)
    axis.set_xlim(0.5, max([*numbers, report.baseline + 1]) + 0.5)
    axis.set_xlabel("episode")
    axis.set_ylabel("evidence of a change")
    axis.grid(alpha=0.3)
    axis.legend(fontsize=7, loc="lower left")
    title = "no drift" if report.alarm is None else f"drift, alarm at episode {report.alarm}"
    named = ", ".join(cause.name for cause in report.causes)
    figure.suptitle(f"{title}: {named}" if named else title, fontsize=10)
    write_picture(path, figure)
