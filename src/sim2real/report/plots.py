"""Plots, drawn without a screen and written whole."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from sim2real.data import Video
from sim2real.files import read_json
from sim2real.report.page import NEW, WARN, write_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sim2real.data import Episode
    from sim2real.evaluation import Evaluation


def plot_evaluation(path: Path, evaluation: Evaluation) -> None:
    """Success along each parameter's range, the most telling first."""
    effects = evaluation.effects
    columns = min(4, max(1, len(effects)))
    rows = max(1, -(-len(effects) // columns))
    figure = Figure(figsize=(3.2 * columns, 2.5 * rows + 0.6), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis, effect in zip(axes, effects, strict=False):
        middle = (np.array(effect.edges[:-1]) + np.array(effect.edges[1:])) / 2
        rate = np.array([100 * r.value for r in effect.rates])
        below = rate - [100 * r.low for r in effect.rates]
        above = np.array([100 * r.high for r in effect.rates]) - rate
        colour = WARN if effect.p_value < 0.01 else NEW
        axis.errorbar(
            middle,
            rate,
            yerr=[np.maximum(below, 0), np.maximum(above, 0)],
            fmt="o-",
            color=colour,
            capsize=3,
            markersize=4,
            linewidth=1,
        )
        axis.set_ylim(-3, 103)
        axis.set_title(effect.name, fontsize=8)
        axis.set_xlabel(f"p = {effect.p_value:.2g}", fontsize=8)
        axis.tick_params(labelsize=7)
        axis.locator_params(axis="x", nbins=4)
        axis.grid(alpha=0.3)
    for axis in axes[len(effects) :]:
        axis.set_visible(False)
    for axis in axes[: len(effects) : columns]:
        axis.set_ylabel("success [%]", fontsize=8)
    trials = evaluation.trials
    figure.suptitle(f"{trials.task}: {evaluation.success}", fontsize=11)
    write_picture(path, figure)


def plot_run(folder: Path) -> None:
    """Success and reward of a finished training run, and its automatic ranges if it had any."""
    result = read_json(folder / "result.json")
    rows = [row for row in result["history"] if row[1] is not None]
    steps = [row[0] / 1e6 for row in rows]
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(steps, [100 * row[1] for row in rows], color=NEW)
    left.set_ylim(-2, 102)
    left.set_ylabel("success of the last 1000 episodes [%]", fontsize=8)
    right.plot(steps, [row[2] for row in rows], color=NEW)
    right.set_ylabel("reward a period", fontsize=8)
    for axis in (left, right):
        axis.set_xlabel("environment steps [million]", fontsize=8)
        axis.grid(alpha=0.3)
    figure.suptitle(
        f"training, {result['seconds']:.0f} s on {result['worlds']} worlds", fontsize=10
    )
    write_picture(folder / "training.png", figure)
    if result["ranges"]["widths"]:
        plot_ranges(folder / "ranges.png", result["ranges"]["widths"], result["ranges"]["names"])


def plot_ranges(path: Path, widths: Sequence[Sequence[float]], names: Sequence[str]) -> None:
    """How automatic randomisation widened each range over the iterations."""
    figure = Figure(figsize=(8, 4), layout="constrained")
    axis = figure.subplots()
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
    """Each channel over time, its components as lines; of a video, a few pictures."""
    figure = Figure(figsize=(10, 1.9 * len(channels) + 0.6), layout="constrained")
    axes = figure.subplots(len(channels), 1, squeeze=False).ravel()
    for axis, name in zip(axes, channels, strict=True):
        channel = episode.channels[name]
        if isinstance(channel, Video):
            _filmstrip(axis, channel)
            axis.set_ylabel(name)
            continue
        flat = channel.values.reshape(len(channel.times), -1)
        lines = axis.plot(channel.times, flat, linewidth=0.8)
        if 1 < len(lines) <= 10:
            axis.legend(lines, range(len(lines)), fontsize=7, ncols=5, loc="upper right")
        axis.set_ylabel(f"{name}\n[{channel.unit or '-'}]")
        axis.set_xlim(episode.start_s, max(episode.end_s, episode.start_s + 1e-9))
        axis.grid(alpha=0.3)
    axes[-1].set_xlabel("time [s]")
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
