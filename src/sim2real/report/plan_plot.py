"""The figure of a motion plan: what each motion is expected to add."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sim2real.report.panels import NEW, OLD, label, panel, write_picture

if TYPE_CHECKING:
    from pathlib import Path

    from sim2real.plan import MotionPlan


def plot_plan(path: Path, chosen: MotionPlan) -> None:
    """Standard deviation of each parameter, relative to its prior's, now and after each motion."""
    count, steps = len(chosen.names), len(chosen.motions)
    figure, axis = panel(8, 0.32 * count + 1.4)
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
    for tick, name in zip(axis.get_yticklabels(), chosen.names, strict=True):
        tick.set_fontweight("bold" if name in chosen.wanted else "normal")
    title = "; ".join(motion.name for motion in chosen.motions)
    label(axis, title, "expected standard deviation, relative to the prior's")
    axis.grid(axis="x", alpha=0.3)
    axis.legend(fontsize=8, loc="upper left")
    write_picture(path, figure)
