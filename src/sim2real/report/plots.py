"""Figures of evaluations, training runs, episodes, motions, plans and drift."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sim2real.data import Video
from sim2real.files import read_json
from sim2real.report.panels import NEW, OLD, TICK, WARN, grid, label, panel, tiles, write_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from sim2real.contract import Contract
    from sim2real.data import Episode
    from sim2real.evaluation import Evaluation
    from sim2real.plan import MotionPlan
    from sim2real.robot import DriftReport, ExcitationPlan

FORMATS = (".png", ".pdf", ".svg")
"""File name endings that a figure may have."""


def plot_evaluation(path: Path, evaluation: Evaluation) -> None:
    """Write the figure to a file."""
    write_picture(path, success_by_parameter(evaluation))


def success_by_parameter(evaluation: Evaluation) -> Figure:
    """Success along each parameter's range, the smallest p-value first."""
    effects = evaluation.effects
    figure, axes = tiles(len(effects), width=3.2, height=2.5, above=0.6)
    for place, (axis, effect) in enumerate(zip(axes, effects, strict=True)):
        middle = (np.array(effect.edges[:-1]) + np.array(effect.edges[1:])) / 2
        low, rate, high = (
            100 * np.array([getattr(r, name) for r in effect.rates])
            for name in ("low", "value", "high")
        )
        axis.errorbar(
            middle,
            rate,
            yerr=[np.maximum(rate - low, 0), np.maximum(high - rate, 0)],
            fmt="o-",
            color=WARN if effect.p_value < 0.01 else NEW,
            capsize=3,
            markersize=4,
            linewidth=1,
        )
        axis.set_ylim(-3, 103)
        first = place % 4 == 0
        p_value = f"p = {effect.p_value:.2g}"
        label(axis, effect.name, p_value, "success [%]" if first else "", ticks=TICK)
        axis.locator_params(axis="x", nbins=4)
        axis.grid(alpha=0.3)
    figure.suptitle(f"{evaluation.trials.task}: {evaluation.success}", fontsize=11)
    return figure


def plot_run(folder: Path) -> None:
    """Success and reward of a finished training run, and its automatic ranges if it had any."""
    result = read_json(folder / "result.json")
    rows = [row for row in result["history"] if row[1] is not None]
    steps = [row[0] / 1e6 for row in rows]
    figure, ((left, right),) = grid(1, 2, width=8, height=3.2)
    left.plot(steps, [100 * row[1] for row in rows], color=NEW)
    left.set_ylim(-2, 102)
    right.plot(steps, [row[2] for row in rows], color=NEW)
    words = "success of the last 1000 episodes [%]", "reward per period"
    for axis, y in zip((left, right), words, strict=True):
        label(axis, x="environment steps [million]", y=y)
        axis.grid(alpha=0.3)
    figure.suptitle(
        f"training, {result['seconds']:.0f} s on {result['worlds']} worlds", fontsize=10
    )
    write_picture(folder / "training.png", figure)
    if result["ranges"]["widths"]:
        _plot_ranges(folder / "ranges.png", result["ranges"]["widths"], result["ranges"]["names"])


def _plot_ranges(path: Path, widths: Sequence[Sequence[float]], names: Sequence[str]) -> None:
    """How automatic randomisation widened each range over the iterations."""
    figure, axis = panel(8, 4)
    for name, column in zip(names, zip(*widths, strict=True), strict=True):
        axis.plot(
            range(1, len(column) + 1), [100 * width for width in column], label=name, linewidth=1
        )
    axis.set_xlabel("iteration")
    axis.set_ylabel("width of the range [% of the widest]")
    axis.set_ylim(-2, 102)
    axis.grid(alpha=0.3)
    axis.legend(fontsize=6, ncols=2, loc="upper left")
    write_picture(path, figure)


def plot_episode(path: Path, episode: Episode, channels: Sequence[str]) -> None:
    """Each channel over time, a line per component; a few pictures of each video."""
    figure, axes = grid(len(channels), 1, width=10, height=1.9 * len(channels) + 0.6)
    for (axis,), name in zip(axes, channels, strict=True):
        channel = episode.channels[name]
        if isinstance(channel, Video):
            _filmstrip(axis, channel)
            axis.set_ylabel(name)
            continue
        flat = channel.values.reshape(len(channel.times), -1)
        lines = axis.plot(channel.times, flat, linewidth=0.8)
        if 1 < len(lines) <= 10:
            axis.legend(
                lines,
                [str(k) for k in range(len(lines))],
                fontsize=TICK,
                ncols=5,
                loc="upper right",
            )
        axis.set_ylabel(f"{name}\n[{channel.unit or '-'}]")
        axis.set_xlim(episode.start_s, max(episode.end_s, episode.start_s + 1e-9))
        axis.grid(alpha=0.3)
    axes[-1][0].set_xlabel("time [s]")
    figure.suptitle(f"episode {episode.id}  {episode.outcome}", fontsize=10)
    write_picture(path, figure)


def _filmstrip(axis: Axes, video: Video, pictures: int = 6) -> None:
    chosen = np.linspace(0, len(video.times) - 1, min(pictures, len(video.times))).astype(int)
    strip = []
    for index in chosen:
        time = float(video.times[index])
        strip += [p for _, p in video.frames(time, float(np.nextafter(time, np.inf)))][:1]
    axis.imshow(np.concatenate(strip, axis=1))
    axis.set_xticks([])
    axis.set_yticks([])


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


def plot_plan(path: Path, chosen: MotionPlan) -> None:
    """Write the figure to a file."""
    write_picture(path, expected_knowledge(chosen))


def expected_knowledge(chosen: MotionPlan) -> Figure:
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
    return figure


def plot_drift(path: Path, report: DriftReport) -> None:
    """Write the figure to a file."""
    write_picture(path, drift_evidence(report))


def drift_evidence(report: DriftReport) -> Figure:
    """Evidence of each episode after the baseline, the threshold and the estimated change."""
    figure, axis = panel(8, 3.6)
    threshold = 1 / report.false_alarm
    numbers = [verdict.number for verdict in report.verdicts]
    evidence = [verdict.evidence for verdict in report.verdicts]
    axis.axvspan(0.5, report.baseline + 0.5, color="0.92", label="baseline")
    axis.plot(numbers, evidence, "o-", color=NEW, markersize=4, linewidth=1, label="evidence")
    axis.axhline(threshold, color=WARN, linewidth=1, linestyle="--")
    axis.annotate(
        f"alarm from {threshold:g} on: false in at most {100 * report.false_alarm:g} % of"
        " deployments",
        (0.01, threshold),
        xycoords=("axes fraction", "data"),
        xytext=(0, 3),
        textcoords="offset points",
        fontsize=TICK,
        color=WARN,
    )
    if report.change is not None:
        axis.axvline(report.change - 0.5, color="0.3", linewidth=1, linestyle=":", label="change")
    axis.set_yscale("log")
    axis.set_ylim(min([*evidence, 0.1]) / 2, 4 * max([*evidence, threshold]))
    axis.set_xlim(0.5, max([*numbers, report.baseline + 1]) + 0.5)
    axis.set_xlabel("episode")
    axis.set_ylabel("evidence of a change")
    axis.grid(alpha=0.3)
    axis.legend(fontsize=TICK, loc="lower left")
    title = "no drift" if report.alarm is None else f"drift, alarm at episode {report.alarm}"
    named = ", ".join(cause.name for cause in report.causes)
    figure.suptitle(f"{title}: {named}" if named else title, fontsize=10)
    return figure
