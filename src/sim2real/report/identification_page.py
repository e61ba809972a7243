"""The page of an identification: what was found, how sure that is, and what it is worth."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sim2real.arrays import Floats
from sim2real.errors import Sim2RealError
from sim2real.gap import SensorCoverage, range_coverage
from sim2real.logs import ControlLog
from sim2real.plan import advice
from sim2real.replay import Replay, Replayer, best_guess
from sim2real.report.identify_plots import (
    all_beliefs,
    belief,
    calibration,
    numbers_shown,
    prior_medians,
    prior_stds,
    ranks_of,
    replayed,
    singular_values,
    unit_of,
)
from sim2real.report.page import picture, plots, table, write_parts

if TYPE_CHECKING:
    from pathlib import Path

    from sim2real.identification import Identification
    from sim2real.twin import Twin

_FAR = 3.0
"""Standard deviations of the prior from which a posterior lies outside it."""
_MOST_DENSITIES = 12
"""Parameters whose densities are drawn one by one; of more, one picture shows all."""
_MOST_REPLAYS = 8
_MOST_SENSORS = 12
_DRAWS = 40
"""Draws of the posterior that the held-back recordings are predicted with."""
_CHECKED_S = 60.0
"""Time of held-back recordings that calibration is looked at [s]."""
_STYLE = """<style>
.wide img { width: 100%; max-width: 42rem; }
.told th:nth-child(2) { text-align: left; }
td.words { white-space: normal; text-align: left; min-width: 8rem; }
</style>"""


def write_page(path: Path, found: Identification) -> None:
    """Write the page as one file that needs nothing else."""
    old, held_back = found.problem.twin, list(found.held_back)
    new = old.with_posterior(found.posterior.distribution)
    parts = [
        _STYLE,
        f"<h1>Identification of {html.escape(old.name)}</h1>",
        _verdict(found),
        "<h2>Parameters</h2>",
        _warnings(found),
        _table(found),
        _beliefs(found),
        "<h2>What these logs can tell</h2>",
        _told(found),
        "<h2>Recordings that were held back</h2>",
        _errors(found),
        _replays(found, old, new, held_back),
        "<h3>Are its beliefs as sure as they should be?</h3>",
        _calibration(new, held_back),
    ]
    write_parts(path, old.name, parts)


def _verdict(found: Identification) -> str:
    check = found.check
    count = len(check.recordings)
    where = f"{count} recording{'s' if count > 1 else ''}"
    if check.by_time:
        where = "the end of each recording" if count > 1 else "the end of the recording"
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


def shifts(found: Identification) -> Floats:
    """(fitted,) how far each posterior lies from the middle of its prior, in its deviations."""
    middle = prior_medians(found)
    return (found.posterior.mean - middle) / prior_stds(found)


def _warnings(found: Identification) -> str:
    """What is believed against the priors, or only because a bound stopped it."""
    away = shifts(found)
    far = [
        f"{name} ({shift:+.1f})"
        for name, shift in zip(found.posterior.names, away, strict=True)
        if abs(shift) > _FAR
    ]
    text = ""
    if far:
        text += (
            f"<p class='bad'>Outside its prior, by more than {_FAR:g} of its standard deviations:"
            f" {html.escape(', '.join(far))}. Either the prior was wrong, or the parameter stands"
            " in for something that the model lacks.</p>"
        )
    if found.fit.at_bounds:
        text += (
            f"<p class='bad'>On a bound: {html.escape(', '.join(found.fit.at_bounds))}. The fit"
            " would go on beyond it: widen the bound if it may, else the model lacks something.</p>"
        )
    return text


def _table(found: Identification) -> str:
    rows = []
    posterior, away = found.posterior, shifts(found)
    for k, parameter in enumerate(found.problem.parameters):
        notes = []
        if abs(away[k]) > _FAR:
            notes.append("outside its prior")
        if parameter.name in found.fit.at_bounds:
            notes.append("on a bound")
        rows.append(
            (
                parameter.name,
                f"{found.problem.center[k]:.4g}",
                f"{posterior.mean[k]:.4g}",
                f"{1.96 * posterior.std[k]:.2g}",
                unit_of(parameter.unit, parameter.operation),
                f"{away[k]:+.1f}",
                (", ".join(notes), "words bad"),
            )
        )
    head = ("parameter", "before", "after", "± (95 %)", "unit", "from prior [σ]", "")
    return table(head, rows)


def _beliefs(found: Identification) -> str:
    names = found.posterior.names
    text = ""
    if len(names) <= _MOST_DENSITIES:
        figures = (
            picture(belief(found, k), f"prior and posterior of {name}")
            for k, name in enumerate(names)
        )
        text = plots(figures)
    else:
        text = (
            f"<div class='wide'>{picture(all_beliefs(found), 'posterior of every parameter')}</div>"
        )
    return text


def _told(found: Identification) -> str:
    told = found.told
    lines = []
    if told.combinations:
        groups = "; ".join(" with ".join(group) for group in told.combinations)
        lines.append(f"<p>Only in combination: {html.escape(groups)}.</p>")
    lines += [f"<p>{html.escape(line)}</p>" for line in advice(told, "TWIN")]
    rows = []
    for k in np.argsort(told.shrinkage):
        name = told.names[k]
        words, style = _words(found, name)
        left, alone = (f"{100 * of[k]:.0f} %" for of in (told.shrinkage, told.alone))
        rows.append((name, (words, f"words {style}"), left, alone))
    head = ("parameter", "told", "left of the prior", "if all others were known")
    values = picture(singular_values(found), "singular values of the sensitivities")
    return "".join(lines) + f"<div class='told'>{table(head, rows)}</div>" + plots([values])


def _words(found: Identification, name: str) -> tuple[str, str]:
    told = found.told
    if name in told.identifiable:
        return "yes", "good"
    if name in told.together:
        return "only in combination", "bad"
    return ("no effect", "bad") if name in told.without_effect else ("too little effect", "bad")


def _errors(found: Identification) -> str:
    check = found.check
    units = {s.name: s.unit for s in found.problem.logs[0].contract.sensors}
    rows = []
    for name, before, after in zip(check.sensors, check.before, check.after, strict=True):
        if np.isfinite(before):
            ratio = after / before if before > 0 else float("nan")
            better = (f"{ratio:.2f}", "good" if ratio < 1 else "bad")
            unit = units.get(name, "") or "1"
            rows.append((name, f"{before:.4g}", f"{after:.4g}", unit, better))
    words = f"<p>Root mean square error of predictions over {check.horizon_s:g} s.</p>"
    return words + table(("sensor", "before", "after", "unit", "ratio"), rows)


def _replays(found: Identification, old: Twin, new: Twin, logs: list[ControlLog]) -> str:
    before, after = predicted((old, new), logs, found.check.horizon_s)
    shown = numbers_shown(before, _MOST_REPLAYS)
    figures = (
        picture(
            replayed(before, after, name, k, legend=place == 0),
            f"{name}: measured, before and after",
        )
        for place, (name, k) in enumerate(shown)
    )
    seen = np.isfinite(before.measured).any(axis=(0, 1)).sum()
    left = "" if seen <= len(shown) else f"<p>{seen - len(shown)} more numbers are not shown.</p>"
    return plots(figures) + left


def predicted(twins: Sequence[Twin], logs: list[ControlLog], horizon_s: float) -> list[Replay]:
    """The same segments of logs, predicted by the best guess of each twin."""
    guesses = np.stack([best_guess(twin) for twin in twins])
    return [
        Replayer(twin, ControlLog.join(logs), horizon_s=horizon_s, values=guesses)(guess[None])
        for twin, guess in zip(twins, guesses, strict=True)
    ]


def _calibration(new: Twin, logs: list[ControlLog]) -> str:
    """How measured readings lie among predictions drawn from the posterior."""
    try:
        found = range_coverage(new, _some(logs), source="posterior", draws=_DRAWS)
    except Sim2RealError as error:
        return f"<p>Not looked at: {html.escape(str(error))}.</p>"
    rows: list[tuple[str | tuple[str, str], ...]] = []
    figures: list[str] = []
    for sensor in found.sensors:
        ranks = ranks_of(found.replay, sensor.name)
        half = float((np.abs(ranks - 0.5) <= 0.25).mean())
        rows.append((sensor.name, f"{100 * half:.0f} %", str(sensor.inside), _sure(sensor)))
        if len(figures) < _MOST_SENSORS:
            figures.append(picture(calibration(found.replay, sensor.name), "calibration"))
    text = (
        f"<p>{_DRAWS} draws of the posterior predict {found.horizon_s:g} s each of {found.windows}"
        " stretches, with all the twin's chance. Where beliefs are right, half of the readings lie"
        " inside the middle half of the draws, and 95 % inside their middle 95 %; ranks of readings"
        " among the draws are even.</p>"
    )
    head = ("sensor", "inside 50 %", "inside 95 %", "")
    left = len(found.sensors) - len(figures)
    more = f"<p>{left} more sensors are in the table only.</p>" if left else ""
    return text + table(head, rows) + plots(figures) + more


def _sure(sensor: SensorCoverage) -> tuple[str, str]:
    """Whether predictions of a sensor are as sure as they should be, and how that is marked."""
    if sensor.verdict != "fine":
        return ("too sure" if sensor.verdict == "too narrow" else "not sure enough"), "bad"
    # So few stretches that the interval still reaches what it should be.
    return (
        ("perhaps too sure", "bad")
        if sensor.inside.value < sensor.thresholds.inside_least
        else ("fine", "good")
    )


def _some(logs: list[ControlLog]) -> list[ControlLog]:
    """Logs, in their order, up to a time in all; at least one."""
    chosen: list[ControlLog] = []
    seconds = 0.0
    for log in logs:
        if chosen and seconds > _CHECKED_S:
            break
        chosen.append(log)
        seconds += float(np.ptp(log.times))
    return chosen
