"""The page of a loop: success before and after, what the gap was made of, and what remains."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sim2real.report.attribution_plots import waterfall
from sim2real.report.identification_page import replays
from sim2real.report.page import Picture, embedded, picture, write_html
from sim2real.report.panels import LABEL, NEW, OLD, REAL, WARN, panel
from sim2real.report.ranges_page import beliefs

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from sim2real.attribution import Attribution, Failures
    from sim2real.evaluation import Prediction
    from sim2real.intervals import Rate
    from sim2real.loop import AttemptFilm, LoopResult

REPORT_FILE = "report.html"


def write_loop(path: Path, closed: LoopResult) -> None:
    """Write the page as one self-contained file; links to episodes are relative."""
    evidence = closed.evidence
    tried = [episode for one in closed.rounds for episode in one.episodes]
    before = [episode for one in closed.rounds[:-1] for episode in one.episodes]
    write_html(
        path,
        "loop.html",
        result=closed,
        cards=list(_cards(closed)),
        success=picture(_success(closed), "success in simulation and on the robot"),
        attempts=tried,
        shares=list(_shares(closed)),
        replayed=replays(evidence.replays) if evidence else [],
        beliefs=list(_beliefs(closed)),
        known_from=[*closed.motions, *before],
        films=[_film(closed, film) for film in evidence.films] if evidence else [],
        failed=list(_failed(closed)),
        unexplained=[*_unexplained(closed)],
        steps=[(step.name, f"{step.seconds:.1f}") for step in closed.done],
    )


def _cards(closed: LoopResult) -> Iterator[tuple[str, str, str]]:
    first, last = closed.first, closed.last
    yield "in simulation", *_measured(first.sim)
    yield "on the robot, before", *_measured(first.real)
    if last is not first:
        if last.predicted is not None:
            yield "predicted", *_said(last.predicted)
        yield "on the robot, after", *_measured(last.real)
        if last.expected is not None:
            yield "expected from now on", *_said(last.expected)
    yield "robot time", f"{closed.trials} trials", f"and {closed.recorded_s:.0f} s of motion"


def _success(closed: LoopResult) -> Figure:
    """Every policy: in simulation, as predicted, and on the robot, with intervals."""
    rows: list[tuple[str, float, float, float, str]] = []
    for number, one in enumerate(closed.rounds):
        name = _name(number)
        rows.append((f"{name}: simulation", one.sim.value, one.sim.low, one.sim.high, OLD))
        if one.predicted is not None:
            said = one.predicted
            rows.append((f"{name}: predicted", said.median, said.low, said.high, NEW))
        rows.append(
            (f"{name}: robot ({len(one.won)})", one.real.value, one.real.low, one.real.high, REAL)
        )
    figure, axis = panel(7, 0.42 * len(rows) + 0.9)
    for place, (_, value, low, high, colour) in enumerate(rows):
        axis.barh(place, 100 * value, color=colour, height=0.55, alpha=0.85)
        axis.plot([100 * low, 100 * high], [place, place], color=WARN, linewidth=1.6)
        axis.text(102, place, f"{value:.0%}", va="center", fontsize=9)
    axis.axvline(100 * closed.target, color=WARN, linewidth=1, linestyle=":")
    axis.set_yticks(range(len(rows)), [row[0] for row in rows], fontsize=9)
    axis.invert_yaxis()
    axis.set_xlim(0, 112)
    axis.set_xlabel("success [%]; dotted: the target", fontsize=LABEL)
    axis.spines[["top", "right"]].set_visible(False)
    return figure


def _shares(closed: LoopResult) -> Iterator[tuple[str, Attribution | None, Picture | None]]:
    """What each part of the gap was made of."""
    found = closed.attribution
    if found is None:
        return
    for part, words in (
        (found.success, "Success lost from training to the robot, by dimension of the gap."),
        (found.trajectory, "Error of the twin's predictions, by dimension."),
    ):
        yield words, part, picture(waterfall(part), words) if part else None


def _beliefs(closed: LoopResult) -> Iterator[Picture]:
    """What is believed of the identified parameters."""
    found = closed.evidence.beliefs if closed.evidence else None
    if found is not None:
        known = [k for k, one in enumerate(found.all_parameters) if one.posterior is not None]
        yield from beliefs(found, known)


def _film(closed: LoopResult, film: AttemptFilm) -> tuple[AttemptFilm, str, str]:
    """A film, with its video and its still inside the page."""
    if film.problem:
        return film, "", ""
    video, still = ((closed.folder / name).read_bytes() for name in (film.video, film.still))
    return film, embedded(video, "video/mp4"), embedded(still, "image/jpeg")


def _failed(closed: LoopResult) -> Iterator[tuple[str, Failures, int]]:
    """The failures of each round, and how many attempts nobody judged."""
    for number, one in enumerate(closed.rounds):
        if one.failures is not None:
            yield _name(number), one.failures, len(one.won) - one.failures.tried


def _unexplained(closed: LoopResult) -> Iterator[str]:
    """What remains unknown, even if it is little."""
    if closed.attribution is not None:
        for part, unit in (
            (closed.attribution.success, "points of success"),
            (closed.attribution.trajectory, "% of the error"),
        ):
            if part is not None and (rest := part.unexplained) is not None:
                yield (
                    f"{rest.value:.1f} [{rest.low:.1f}, {rest.high:.1f}] {unit} are not explained"
                    " by any identified parameter"
                )
    if closed.identification is not None:
        known = closed.identification.identifiability
        combined = {name for names in known.combinations for name in names}
        lost = [name for name in known.names if name not in {*known.identifiable, *combined}]
        if lost:
            yield f"not identified from the recordings: {', '.join(lost)}"
        for names in known.combinations:
            yield (
                "identified only in combination, so the prior decides the individual values:"
                f" {', '.join(names)}"
            )
        yield from closed.identification.notes
    for number, one in enumerate(closed.rounds):
        for step in one.ladder.steps:
            if not step.passed:
                needed = f"; to pass it, {step.to_pass}" if step.to_pass else ""
                yield f"{_name(number)}: the step {step.step} was not passed: {step.why}{needed}"


def _name(number: int) -> str:
    return "first policy" if number == 0 else f"round {number + 1}"


def _measured(rate: Rate) -> tuple[str, str]:
    return f"{rate.value:.0%}", f"{rate.low:.0%} to {rate.high:.0%}, n = {rate.n}"


def _said(prediction: Prediction) -> tuple[str, str]:
    sure = f"{100 * prediction.confidence:g} % sure"
    return f"{prediction.median:.0%}", f"{prediction.low:.0%} to {prediction.high:.0%}, {sure}"
