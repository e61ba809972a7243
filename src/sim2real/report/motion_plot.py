"""A plot of what a robot is about to do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from sim2real.contract import Contract
from sim2real.report.page import NEW, WARN, write_picture
from sim2real.robot import ExcitationPlan


def plot_motion(path: Path, plan: ExcitationPlan, contract: Contract) -> None:
    """Every command over time with its range, and how fast it changes with its limit."""
    commands = contract.commands
    figure = Figure(figsize=(9, 1.5 * len(commands) + 0.8), layout="constrained")
    axes = figure.subplots(len(commands), 2, squeeze=False, sharex=True)
    times = np.arange(len(plan.commands)) / plan.rate_hz
    bounds = plan.envelope
    for k, command in enumerate(commands):
        place, speed = axes[k]
        place.plot(times, plan.commands[:, k], color=NEW, linewidth=0.9)
        place.set_ylabel(f"{command.name} [{command.unit}]", fontsize=7)
        for edge in (bounds.low[k], bounds.high[k]):
            place.axhline(edge, color=WARN, linewidth=0.7, linestyle="--")
        rate = np.diff(plan.commands[:, k]) * plan.rate_hz
        speed.plot(times[1:], rate, color=NEW, linewidth=0.9)
        speed.set_ylabel(f"[{command.unit}/s]", fontsize=7)
        for edge in (-bounds.rate[k], bounds.rate[k]):
            speed.axhline(edge, color=WARN, linewidth=0.7, linestyle="--")
        for axis in (place, speed):
            axis.tick_params(labelsize=7)
            axis.grid(alpha=0.3)
    for axis in axes[-1]:
        axis.set_xlabel("time [s]", fontsize=8)
    figure.suptitle(
        f"{plan.motion}, {plan.seconds:.1f} s; dashed: what it keeps within", fontsize=9
    )
    write_picture(path, figure)
