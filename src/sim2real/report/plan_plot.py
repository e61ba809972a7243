"""What a plan of motions is expected to tell, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from sim2real.report.page import NEW, OLD, write_picture

if TYPE_CHECKING:
    from pathlib import Path

    from sim2real.plan import MotionPlan


def plot_plan(path: Path, chosen: MotionPlan) -> None:
    """Standard deviation of each parameter against its prior's, now and after each motion."""
    count, steps = len(chosen.names), len(chosen.motions)
    figure = Figure(figsize=(8, 0.32 * count + 1.4), layout="constrained")
    axis = figure.subplots()
    rows = np.arange(count)[::-1]
    axis.hlines(rows, chosen.after / chosen.prior, chosen.before / chosen.prior, color=OLD)
    axis.plot(chosen.before / chosen.prior, rows, "o", color=OLD, label="now")
    for k, motion in enumerate(chosen.motions):
        last = k == steps - 1
        axis.plot(
            motion.std / chosen.prior,
            rows,
            "o" if last else "|",
            color=NEW,
            alpha=1.0 if last else 0.6,
            label=f"after {steps} motions" if last else None,
        )
    axis.axvline(1.0, color=OLD, linestyle="--", linewidth=1)
    axis.set_xscale("log")
    axis.set_yticks(rows, chosen.names, fontsize=8)
    for label, name in zip(axis.get_yticklabels(), chosen.names, strict=True):
        label.set_fontweight("bold" if name in chosen.wanted else "normal")
    axis.set_xlabel("expected standard deviation, in the prior's", fontsize=8)
    axis.tick_params(axis="x", labelsize=8)
    axis.grid(axis="x", alpha=0.3)
    axis.legend(fontsize=8, loc="upper left")
    axis.set_title("; ".join(motion.name for motion in chosen.motions), fontsize=8)
    write_picture(path, figure)
