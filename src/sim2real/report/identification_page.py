"""The page of an identification: the parameters, their uncertainty, and the better predictions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from sim2real.report.identify_plots import (
    FAR_STD,
    all_beliefs,
    belief,
    calibration,
    replayed,
    singular_values,
    unit_of,
)
from sim2real.report.page import Picture, picture, write_html

if TYPE_CHECKING:
    from pathlib import Path

    from sim2real.gap import RangeCoverage, SensorCoverage
    from sim2real.identification import Identifiability, Identification, IdentifiedParameter
    from sim2real.replay import ReplayedNumbers

_MAX_DENSITIES = 12
"""Most parameters with a density plot each; more share one plot."""
_MAX_SENSORS = 12


def write_page(path: Path, found: Identification) -> None:
    """Write the page as one self-contained file."""
    known, checked = found.identifiability, found.calibration
    far = [f"{one.name} ({one.shift:+.1f})" for one in found.estimates if abs(one.shift) > FAR_STD]
    write_html(
        path,
        "identification.html",
        found=found,
        far=far,
        far_std=FAR_STD,
        parameters=[_row(one) for one in found.estimates],
        beliefs=_beliefs(found),
        advice=_advice(known),
        told=list(_told(known)),
        singular_values=picture(singular_values(known), "singular values of the sensitivities"),
        replayed=replays(found.replays),
        calibrated=[] if checked is None else [_calibrated(one) for one in checked.sensors],
        calibrations=[] if checked is None else list(_calibrations(checked)),
    )


def _row(one: IdentifiedParameter) -> tuple[str | tuple[str, str], ...]:
    notes = ["outside its prior"] if abs(one.shift) > FAR_STD else []
    notes += ["at a bound"] if one.at_bound else []
    return (
        one.name,
        f"{one.before:.4g}",
        f"{one.value:.4g}",
        f"{1.96 * one.std:.2g}",
        unit_of(one.unit, one.operation),
        f"{one.shift:+.1f}",
        (", ".join(notes), "words bad"),
    )


def _beliefs(found: Identification) -> list[Picture]:
    if len(found.estimates) > _MAX_DENSITIES:
        return [picture(all_beliefs(found), "posterior of every parameter")]
    return [
        picture(belief(one, legend=place == 0), f"prior and posterior of {one.name}")
        for place, one in enumerate(found.estimates)
    ]


def _advice(known: Identifiability) -> list[str]:
    lines = known.advice("TWIN")
    if known.combinations:
        groups = "; ".join(" with ".join(group) for group in known.combinations)
        lines.insert(0, f"only in combination: {groups}")
    return lines


def _told(known: Identifiability) -> Iterator[tuple[str | tuple[str, str], ...]]:
    for k in np.argsort(known.shrinkage):
        words, style = _words(known, known.names[k])
        left, alone = (f"{100 * of[k]:.0f} %" for of in (known.shrinkage, known.alone))
        yield known.names[k], (words, f"words {style}"), left, alone


def _words(known: Identifiability, name: str) -> tuple[str, str]:
    if name in known.identifiable:
        return "yes", "good"
    if name in known.together:
        return "only in combination", "bad"
    return ("no effect", "bad") if name in known.without_effect else ("too little effect", "bad")


def replays(numbers: ReplayedNumbers) -> list[Picture]:
    """Segments as measured, and as predicted before and after."""
    return [
        picture(replayed(one, legend=place == 0), f"{one.name}: measured, before and after")
        for place, one in enumerate(numbers.shown)
    ]


def _calibrated(sensor: SensorCoverage) -> tuple[str | tuple[str, str], ...]:
    return sensor.name, f"{100 * sensor.ranks.half:.0f} %", str(sensor.inside), _sure(sensor)


def _calibrations(found: RangeCoverage) -> Iterator[Picture]:
    for sensor in found.sensors[:_MAX_SENSORS]:
        yield picture(calibration(sensor), "calibration")


def _sure(sensor: SensorCoverage) -> tuple[str, str]:
    """Whether predictions of a sensor are as certain as they should be, and its class."""
    words = sensor.verdict.replace("too narrow", "overconfident")
    return words, "good" if words == "fine" else "bad"
