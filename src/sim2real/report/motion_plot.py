"""The figure of a motion that a robot is about to make."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sim2real.contract import Contract
from sim2real.report.panels import NEW, TICK, WARN, grid, write_picture
from sim2real.robot import ExcitationPlan


def plot_motion(path: Path, plan: ExcitationPlan, contract: Contract) -> None:
    """Every command over time with its range, and its rate of change with its limit."""
    commands = contract.commands
    figure, axes = grid(len(commands), 2, width=9, height=1.5 * len(commands) + 0.8)
    times = np.arange(len(plan.commands)) / plan.rate_hz
    bounds = plan.envelope
    for k, command in enumerate(commands):
        rate = np.diff(plan.commands[:, k]) * plan.rate_hz
        for axis, x, y, edges, name in (
            (axes[k][0], times, plan.commands[:, k], (bounds.low[k], bounds.high[k]),
             f"{command.name} [{command.unit}]"),
            (axes[k][1], times[1:], rate, (-bounds.rate[k], bounds.rate[k]),
             f"[{command.unit}/s]"),
        ):  # fmt: skip
            axis.plot(x, y, color=NEW, linewidth=0.9)
            axis.set_ylabel(name, fontsize=TICK)
            for edge in edges:
                axis.axhline(edge, color=WARN, linewidth=0.7, linestyle="--")
            axis.tick_params(labelsize=TICK)
            axis.grid(alpha=0.3)
    for axis in axes[-1]:
        axis.set_xlabel("time [s]", fontsize=8)
    figure.suptitle(f"{plan.motion}, {plan.seconds:.1f} s; dashed: its limits", fontsize=9)
    write_picture(path, figure)
