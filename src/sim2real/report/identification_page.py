"""The page of an identification: the parameters, their uncertainty, and the better predictions."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sim2real.errors import Sim2RealError
from sim2real.gap import SensorCoverage, range_coverage
from sim2real.logs import ControlLog
from sim2real.plan import advice
from sim2real.replay import Replayer
from sim2real.report.identify_plots import (
    FAR_STD,
    all_beliefs,
    belief,
    calibration,
    numbers_shown,
    ranks_of,
    replayed,
    shifts,
    singular_values,
    unit_of,
)
from sim2real.report.page import (
    bullets,
    omitted,
    paragraph,
    picture,
    plots,
    table,
    write_parts,
)
from sim2real.units import counted

if TYPE_CHECKING:
    from pathlib import Path

    from sim2real.identification import Identification
    from sim2real.twin import Twin

_MAX_DENSITIES = 12
"""Most parameters with a density plot each; more share one plot."""
_MAX_REPLAYS = 8
_MAX_SENSORS = 12
_DRAWS = 40
"""Draws of the posterior that predict the held-back recordings."""
_CHECKED_S = 60.0
"""Time of held-back recordings to check calibration with [s]."""


def write_page(path: Path, found: Identification) -> None:
    """Write the page as one self-contained file."""
    old, held_back = found.problem.twin, list(found.held_back)
    new, check = old.with_posterior(found.posterior.distribution), found.check
    parts = [
        f"<h1>Identification of {html.escape(old.name)}</h1>",
        _verdict(found),
        "<h2>Parameters</h2>",
        _warnings(found),
        _table(found),
        _beliefs(found),
        "<h2>Identifiability</h2>",
        _identifiability(found),
        "<h2>Held-back recordings</h2>",
        errors(
            zip(check.sensors, check.before, check.after, strict=True),
            found.problem.logs[0],
            check.horizon_s,
        ),
        replays((old, new), held_back, check.horizon_s),
        "<h3>Calibration of the posterior</h3>",
        _calibration(new, held_back),
    ]
    write_parts(path, old.name, parts)


def _verdict(found: Identification) -> str:
    check = found.check
    where = counted(len(check.recordings), "recording")
    if check.by_time:
        where = f"the end of {where}"
    if found.promoted:
        text = paragraph(
            f"Promoted: version {found.twin.version}. On {where} that the fit did not see, the"
            f" error over {check.horizon_s:g} s is {check.ratio:.2f} times that of the old twin.",
            "good",
        )
    else:
        text = paragraph(f"Not promoted: {found.why}.", "bad")
    if found.posterior.discrepancy > 1.5:
        text += paragraph(
            "The twin does not fully explain these logs: residuals are correlated within segments,"
            f" and variances were widened by a factor of {found.posterior.discrepancy:.1f}."
        )
    return text + "".join(map(paragraph, found.notes))


def _warnings(found: Identification) -> str:
    """Parameters far outside their priors, or at a bound."""
    away = shifts(found)
    far = [
        f"{name} ({shift:+.1f})"
        for name, shift in zip(found.posterior.names, away, strict=True)
        if abs(shift) > FAR_STD
    ]
    text = ""
    if far:
        text += paragraph(
            f"More than {FAR_STD:g} standard deviations outside the prior: {', '.join(far)}. Either"
            " the prior is wrong, or the parameter compensates for an effect that the model lacks.",
            "bad",
        )
    if found.fit.at_bounds:
        text += paragraph(
            f"At a bound: {', '.join(found.fit.at_bounds)}. The best value may lie beyond it: widen"
            " the bound if that is plausible; otherwise the model lacks an effect.",
            "bad",
        )
    return text


def _table(found: Identification) -> str:
    rows = []
    posterior, away = found.posterior, shifts(found)
    for k, parameter in enumerate(found.problem.parameters):
        notes = []
        if abs(away[k]) > FAR_STD:
            notes.append("outside its prior")
        if parameter.name in found.fit.at_bounds:
            notes.append("at a bound")
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
    if len(names) > _MAX_DENSITIES:
        return (
            f"<div class='wide'>{picture(all_beliefs(found), 'posterior of every parameter')}</div>"
        )
    return plots(
        picture(belief(found, k), f"prior and posterior of {name}") for k, name in enumerate(names)
    )


def _identifiability(found: Identification) -> str:
    known = found.identifiability
    lines = advice(known, "TWIN")
    if known.combinations:
        groups = "; ".join(" with ".join(group) for group in known.combinations)
        lines.insert(0, f"only in combination: {groups}")
    rows = []
    for k in np.argsort(known.shrinkage):
        name = known.names[k]
        words, style = _words(found, name)
        left, alone = (f"{100 * of[k]:.0f} %" for of in (known.shrinkage, known.alone))
        rows.append((name, (words, f"words {style}"), left, alone))
    head = ("parameter", "identified", "left of the prior", "if all others were known")
    values = picture(singular_values(found), "singular values of the sensitivities")
    return bullets(lines) + f"<div class='told'>{table(head, rows)}</div>" + plots([values])


def _words(found: Identification, name: str) -> tuple[str, str]:
    known = found.identifiability
    if name in known.identifiable:
        return "yes", "good"
    if name in known.together:
        return "only in combination", "bad"
    return ("no effect", "bad") if name in known.without_effect else ("too little effect", "bad")


def errors(
    sensors: Iterable[tuple[str, float | None, float | None]], log: ControlLog, horizon_s: float
) -> str:
    """A table of (sensor, error before, error after), and what the errors are."""
    units = {spec.name: spec.unit for spec in log.contract.sensors}
    rows = []
    for name, before, after in sensors:
        if before is not None and after is not None and np.isfinite(before):
            ratio = after / before if before > 0 else float("nan")
            better = (f"{ratio:.2f}", "good" if ratio < 1 else "bad")
            rows.append((name, f"{before:.4g}", f"{after:.4g}", units.get(name) or "1", better))
    words = paragraph(
        f"Root mean square error of predictions over {horizon_s:g} s, on held-back recordings."
    )
    return words + table(("sensor", "before", "after", "unit", "ratio"), rows)


def replays(twins: Sequence[Twin], logs: Sequence[ControlLog], horizon_s: float) -> str:
    """Segments of logs as the best guesses of two twins, the old one first, predict them."""
    guesses = np.stack([twin.best_guess() for twin in twins])
    before, after = (
        Replayer(twin, ControlLog.join(logs), horizon_s=horizon_s, values=guesses)(guess[None])
        for twin, guess in zip(twins, guesses, strict=True)
    )
    shown = numbers_shown(before, _MAX_REPLAYS)
    figures = (
        picture(
            replayed(before, after, name, k, legend=place == 0),
            f"{name}: measured, before and after",
        )
        for place, (name, k) in enumerate(shown)
    )
    seen = int(np.isfinite(before.measured).any(axis=(0, 1)).sum())
    return plots(figures) + omitted(seen - len(shown), "reading")


def _calibration(new: Twin, logs: list[ControlLog]) -> str:
    """How readings lie among predictions drawn from the posterior."""
    try:
        found = range_coverage(new, _some(logs), source="posterior", draws=_DRAWS)
    except Sim2RealError as error:
        return paragraph(f"Not checked: {error}.")
    rows: list[tuple[str | tuple[str, str], ...]] = []
    figures: list[str] = []
    for sensor in found.sensors:
        ranks = ranks_of(found.replay, sensor.name)
        half = float((np.abs(ranks - 0.5) <= 0.25).mean())
        rows.append((sensor.name, f"{100 * half:.0f} %", str(sensor.inside), _sure(sensor)))
        if len(figures) < _MAX_SENSORS:
            figures.append(picture(calibration(found.replay, sensor.name), "calibration"))
    text = paragraph(
        f"{_DRAWS} draws of the posterior predict {found.windows} segments of {found.horizon_s:g} s"
        " with all of the twin's randomness. If the posterior is right, half of the readings lie"
        " inside the middle 50 % of the draws and 95 % inside the middle 95 %, and the ranks of"
        " readings among the draws are uniform."
    )
    head = ("sensor", "inside 50 %", "inside 95 %", "")
    more = omitted(len(found.sensors) - len(figures), "sensor")
    return text + table(head, rows) + plots(figures) + more


def _sure(sensor: SensorCoverage) -> tuple[str, str]:
    """Whether predictions of a sensor are as certain as they should be, and its class."""
    words = sensor.verdict.replace("too narrow", "overconfident")
    return words, "good" if words == "fine" else "bad"


def _some(logs: list[ControlLog]) -> list[ControlLog]:
    """The first logs, up to a total time; at least one."""
    chosen: list[ControlLog] = []
    seconds = 0.0
    for log in logs:
        if chosen and seconds > _CHECKED_S:
            break
        chosen.append(log)
        seconds += float(np.ptp(log.times))
    return chosen
