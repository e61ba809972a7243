"""The page of an identification: what was found, how sure that is, and what it is worth."""

from __future__ import annotations

import base64
import html
import io
from typing import TYPE_CHECKING

import numpy as np
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from sim2real.files import write_text
from sim2real.gap.log import Log
from sim2real.gap.replay import Replayer
from sim2real.gap.sensitivity import best_guess

if TYPE_CHECKING:
    from pathlib import Path

    from sim2real.identify.identify import Identification
    from sim2real.twin import Twin

_OLD, _NEW, _REAL = "#b0b0b0", "#1f5fa8", "#222222"
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 60rem; margin: 2rem auto;
  padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; font-size: 0.9rem; display: block; overflow-x: auto; }
td, th { padding: 0.25rem 0.75rem 0.25rem 0; text-align: right; white-space: nowrap; }
td:first-child, th:first-child { text-align: left; }
tr { border-bottom: 1px solid #ddd; } img { max-width: 100%; height: auto; }
.good { color: #1a7f37; } .bad { color: #c0392b; }
@media print { body { margin: 0; max-width: none; } }
"""


def write_page(path: Path, found: Identification, old: Twin, held_back: list[Log]) -> None:
    """Write the page as one file that needs nothing else."""
    parts = [
        f"<h1>Identification of {html.escape(old.name)}</h1>",
        _verdict(found),
        "<h2>Parameters</h2>",
        _table(found),
        _picture(_beliefs(found), "prior and posterior of each parameter"),
        "<h2>What these logs can tell</h2>",
        _told(found),
        _picture(_singular(found), "singular values of the sensitivities"),
        "<h2>Recordings that were held back</h2>",
        _errors(found),
        _picture(_replayed(found, old, held_back), "real against simulated, before and after"),
    ]
    body = "\n".join(parts)
    write_text(
        path,
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{html.escape(old.name)}</title><style>{_STYLE}</style></head>"
        f"<body>{body}</body></html>\n",
    )


def _verdict(found: Identification) -> str:
    check = found.check
    where = "the end of the recording" if check.by_time else f"{len(check.recordings)} recordings"
    if found.promoted:
        text = (
            f"<p class='good'>Promoted: version {found.twin.version}. On {where} that the fit did"
            f" not see, errors over {check.horizon_s:g} s are {check.ratio:.2f} times what they"
            " were.</p>"
        )
    else:
        text = f"<p class='bad'>Not promoted: {html.escape(found.why)}.</p>"
    if found.posterior.discrepancy > 1.5:
        text += (
            "<p>The twin does not explain these logs fully: what it leaves goes together within"
            f" segments, and variances were widened by {found.posterior.discrepancy:.1f}.</p>"
        )
    return text + "".join(f"<p>{html.escape(note)}</p>" for note in found.notes)


def _table(found: Identification) -> str:
    rows = ["<tr><th>parameter</th><th>before</th><th>after</th><th>± (95 %)</th><th>unit</th>"
            "<th>told</th></tr>"]  # fmt: skip
    posterior = found.posterior
    for k, parameter in enumerate(found.problem.parameters):
        shrunk = found.told.shrinkage[k]
        told = "yes" if shrunk < 0.5 else "hardly" if shrunk < 0.9 else "no"
        style = "" if shrunk < 0.5 else " class='bad'"
        rows.append(
            f"<tr><td>{html.escape(parameter.name)}</td><td>{found.problem.center[k]:.4g}</td>"
            f"<td>{posterior.mean[k]:.4g}</td><td>{1.96 * posterior.std[k]:.2g}</td>"
            f"<td>{html.escape(parameter.unit or '×')}</td><td{style}>{told}</td></tr>"
        )
    return f"<table>{''.join(rows)}</table>"


def _told(found: Identification) -> str:
    told = found.told
    lines = []
    if told.combinations:
        groups = "; ".join(", ".join(group) for group in told.combinations)
        lines.append(f"<p>Only in combination: {html.escape(groups)}.</p>")
    for names, words in (
        (told.weak, "Too little effect in these logs"),
        (told.without_effect, "No effect at all in these logs"),
    ):
        if names:
            lines.append(f"<p>{words}: {html.escape(', '.join(names))}.</p>")
    if not lines:
        lines.append("<p>All of the fitted parameters.</p>")
    return "".join(lines)


def _errors(found: Identification) -> str:
    check = found.check
    rows = ["<tr><th>sensor</th><th>before</th><th>after</th><th>ratio</th></tr>"]
    for name, before, after in zip(check.sensors, check.before, check.after, strict=True):
        if np.isfinite(before):
            ratio = after / before if before > 0 else float("nan")
            style = "good" if ratio < 1 else "bad"
            rows.append(
                f"<tr><td>{html.escape(name)}</td><td>{before:.4g}</td><td>{after:.4g}</td>"
                f"<td class='{style}'>{ratio:.2f}</td></tr>"
            )
    return (
        f"<p>Root mean square error of predictions over {check.horizon_s:g} s, in each sensor's"
        f" unit.</p><table>{''.join(rows)}</table>"
    )


def _beliefs(found: Identification) -> Figure:
    """Prior and posterior of every parameter, side by side."""
    parameters = found.problem.parameters
    columns = min(4, len(parameters))
    rows = -(-len(parameters) // columns)
    figure = Figure(figsize=(3.0 * columns, 1.9 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    p = torch.linspace(0.005, 0.995, 199, dtype=torch.float64)
    for k, (axis, parameter) in enumerate(zip(axes, parameters, strict=False)):
        prior = parameter.prior.quantile(p).numpy()
        mean, std = found.posterior.mean[k], max(found.posterior.std[k], 1e-12)
        low = min(prior[0], mean - 4 * std)
        high = max(prior[-1], mean + 4 * std)
        grid = np.linspace(low, high, 400)
        density = np.interp(grid, prior, np.gradient(p.numpy(), prior), left=0, right=0)
        axis.fill_between(grid, density / max(density.max(), 1e-12), color=_OLD, alpha=0.6)
        axis.fill_between(grid, np.exp(-0.5 * ((grid - mean) / std) ** 2), color=_NEW, alpha=0.7)
        axis.set_title(parameter.name, fontsize=7)
        axis.set_yticks([])
        axis.tick_params(labelsize=7)
        axis.locator_params(axis="x", nbins=4)
    for axis in axes[len(parameters) :]:
        axis.set_visible(False)
    return figure


def _singular(found: Identification) -> Figure:
    figure = Figure(figsize=(6, 2.4), layout="constrained")
    axis = figure.subplots()
    axis.semilogy(range(1, len(found.told.singular) + 1), found.told.singular + 1e-6, "o-",
                  color=_NEW, markersize=4)  # fmt: skip
    axis.axhline(1.0, color=_OLD, linestyle="--", linewidth=1)
    axis.set_xlabel("direction", fontsize=8)
    axis.set_ylabel("singular value\n(1 = as much as the prior)", fontsize=8)
    axis.tick_params(labelsize=8)
    return figure


def _replayed(found: Identification, old: Twin, logs: list[Log]) -> Figure:
    """One stretch of the held-back recordings for each sensor: real, before, after."""
    horizon_s = found.check.horizon_s
    both = []
    for twin in (old, found.problem.twin.with_posterior(found.posterior.distribution)):
        values = best_guess(twin)[None]
        both.append(Replayer(twin, Log.join(logs), horizon_s=horizon_s, values=values)(values))
    sensors = [spec for spec in logs[0].contract.sensors if spec.width == 1][:6]
    figure = Figure(figsize=(9, 1.5 * max(1, len(sensors)) + 0.4), layout="constrained")
    axes = figure.subplots(max(1, len(sensors)), 1, squeeze=False).ravel()
    shown = min(6, len(both[0].starts))
    for axis, spec in zip(axes, sensors, strict=False):
        column = both[0].column(spec.name)
        for segment in range(shown):
            steps = both[0].predicted.shape[2]
            times = segment * horizon_s + both[0].period_s * np.arange(1, steps + 1)
            axis.plot(times, both[0].measured[segment, :, column], color=_REAL, linewidth=1.2)
            axis.plot(times, both[0].predicted[0, segment, :, column], color=_OLD, linewidth=1)
            axis.plot(times, both[1].predicted[0, segment, :, column], color=_NEW, linewidth=1)
        axis.set_ylabel(f"{spec.name}\n[{spec.unit}]", fontsize=7)
        axis.tick_params(labelsize=7)
    axes[-1].set_xlabel("time [s], each segment from a measured state", fontsize=8)
    for label, colour in (("real", _REAL), ("before", _OLD), ("after", _NEW)):
        axes[0].plot([], [], color=colour, label=label)
    axes[0].legend(fontsize=7, ncols=3, loc="upper right")
    return figure


def _picture(figure: Figure, words: str) -> str:
    FigureCanvasAgg(figure)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=130)
    data = base64.b64encode(out.getvalue()).decode()
    return f"<img alt='{html.escape(words)}' src='data:image/png;base64,{data}'>"
