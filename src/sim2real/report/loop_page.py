"""The page of a loop: success before and after, what the gap was made of, and what remains."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sim2real.attribution import Attribution, Failures
from sim2real.data import read_recording
from sim2real.errors import Sim2RealError
from sim2real.gap import Ranges
from sim2real.learn import TrainedPolicy
from sim2real.logs import aligned
from sim2real.loop import episodes_of, run_of
from sim2real.randomize import drawn
from sim2real.report.attribution_plots import waterfall
from sim2real.report.identification_page import errors, replays
from sim2real.report.page import (
    bullets,
    picture,
    plots,
    sentence,
    table,
    write_parts,
)
from sim2real.report.panels import LABEL, NEW, OLD, REAL, WARN, panel
from sim2real.report.ranges_page import beliefs
from sim2real.report.replay_film import film_of
from sim2real.tasks import find_task
from sim2real.twin import Twin

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from sim2real.data import Episode
    from sim2real.evaluation import Prediction
    from sim2real.loop import KeptResult, LoopResult, Round

REPORT_FILE = "report.html"
_HORIZON_S = 0.5
_DRAWS = 512


def write_loop(path: Path, closed: LoopResult) -> None:
    """Write the page as one self-contained file; links to episodes are relative."""
    title = f"{closed.task} on {closed.robot}"
    parts = [
        f"<h1>{html.escape(title)}</h1>",
        f"<p class='verdict {'good' if closed.met else 'bad'}'>{sentence(closed.why)}</p>",
        _cards(closed),
        _figure(
            picture(_success(closed), "success in simulation and on the robot"),
            "Success with 95 % intervals; predictions with 90 %.",
            _links(b for one in closed.rounds for b in one.batches),
        ),
        *_attributed(closed),
        *_replays(closed),
        *_believed(closed),
        *_films(closed),
        *_failed(closed),
        *_advised(closed),
        *_unexplained(closed),
        *_made_of(closed),
    ]
    write_parts(path, title, parts)


def _cards(closed: LoopResult) -> str:
    first, last = closed.rounds[0], closed.rounds[-1]
    cards = [
        ("in simulation", *_measured(first.sim.result)),
        ("on the robot, before", *_measured(first.real.to_dict())),
    ]
    if last is not first:
        if last.predicted is not None:
            cards.append(("predicted", *_said(last.predicted)))
        cards.append(("on the robot, after", *_measured(last.real.to_dict())))
        if last.expected is not None:
            cards.append(("expected from now on", *_said(last.expected)))
    cards.append(
        ("robot time", f"{closed.trials} trials", f"and {closed.recorded_s:.0f} s of motion")
    )
    inner = "".join(
        f"<div><span>{html.escape(name)}</span><b>{html.escape(value)}</b>"
        f"<span>{html.escape(more)}</span></div>"
        for name, value, more in cards
    )
    return f"<div class='cards'>{inner}</div>"


def _success(closed: LoopResult) -> Figure:
    """Every policy: in simulation, as predicted, and on the robot, with intervals."""
    rows: list[tuple[str, float, float, float, str]] = []
    for number, one in enumerate(closed.rounds):
        name = _name(number)
        sim = one.sim.result
        rows.append((f"{name}: simulation", sim["value"], sim["low"], sim["high"], OLD))
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


def _attributed(closed: LoopResult) -> Iterator[str]:
    if closed.attribution is None:
        return
    yield "<h2>What the gap was made of</h2>"
    tried = _links([*closed.rounds[0].batches, closed.recorded])
    for key, words in (
        ("success", "Success lost from training to the robot, by dimension of the gap."),
        ("error", "Error of the twin's predictions, by dimension."),
    ):
        data = closed.attribution.result[key]
        if "shares" not in data:
            yield f"<p>{sentence(data['why'])}</p>"
            continue
        found = Attribution.from_dict(data)
        yield _figure(picture(waterfall(found), words), words, tried)
        yield bullets(found.sentences())


def _replays(closed: LoopResult) -> Iterator[str]:
    known = _last_known(closed)
    if known is None:
        return
    before, after = Twin.load(find_task(closed.task).twin), Twin.load(known.folder / "twin")
    logs = [aligned(episode, before) for episode in episodes_of(closed.recorded)]
    yield "<h2>Real against simulated signals</h2>"
    checked = known.result["held_back"]
    sensors = ((name, e["before"], e["after"]) for name, e in checked["sensors"].items())
    yield errors(sensors, logs[0], checked["horizon_s"])
    yield _figure(
        replays((before, after), logs, _HORIZON_S),
        "Measured, and predicted before and after.",
        _links([closed.recorded]),
    )


def _believed(closed: LoopResult) -> Iterator[str]:
    known = _last_known(closed)
    if known is None:
        return
    twin = Twin.load(known.folder / "twin")
    if twin.posterior is None:
        return
    trained = TrainedPolicy.open(run_of(closed.rounds[-1].policy)).run
    wider = Twin.load(trained.twin) if trained.twin and trained.source == "posterior" else twin
    draws = drawn(wider, "posterior", count=_DRAWS, seed=0).numpy()
    ranges = Ranges(twin=twin, source="posterior", draws=draws)
    recorded = [closed.recorded, *(b for one in closed.rounds[:-1] for b in one.batches)]
    yield "<h2>Parameters before and now</h2>"
    names = twin.posterior.names
    yield _figure(
        beliefs(ranges, (k for k, p in enumerate(twin.parameters) if p.name in names)),
        "Grey: the prior. Blue: the draws for the last policy's training; the bar is their middle"
        " 95 %, the line below it that of the posterior. Dotted: the nominal value.",
        _links(recorded),
    )


def _films(closed: LoopResult) -> Iterator[str]:
    task, twin = find_task(closed.task), Twin.load(find_task(closed.task).twin)
    chosen = [
        (_first(closed.rounds[0], won=False), "first policy: it fails"),
        (_first(closed.rounds[-1], won=True), "last policy: it succeeds"),
    ]
    if len(closed.rounds) == 1 or all(episode is None for episode, _ in chosen):
        return
    yield "<h2>A failure, and a success</h2><p>Rendered in the twin from the robot's readings.</p>"
    films = []
    for episode, words in chosen:
        if episode is not None:
            caption = f"{html.escape(words)} <a href='#{episode.id}'>{episode.id[:8]}</a>"
            try:
                films.append(film_of(episode, twin, task, caption))
            except Sim2RealError as error:
                films.append(f"<p>{html.escape(words)}: not filmed, {html.escape(str(error))}</p>")
    yield plots(films)


def _failed(closed: LoopResult) -> Iterator[str]:
    for number, one in enumerate(closed.rounds):
        if one.failures is None:
            continue
        found = Failures.from_dict(one.failures.result)
        yield f"<h2>Why trials failed, {_name(number)}</h2>"
        lines = [f"{found.failed} of {found.tried} trials failed"]
        if unjudged := len(one.won) - found.tried:
            lines.append(
                f"{unjudged} more have no outcome and count as failures in the figures above"
            )
        lines += [str(diagnosis) for diagnosis in found.diagnoses]
        yield bullets(lines)
        for kind in found.kinds:
            links = ", ".join(f"<a href='#{e}'>{e[:8]}</a>" for e in kind.episodes)
            words = "; ".join(kind.sentences()[1:])
            yield f"<h3>{len(kind.episodes)} like {kind.episodes[0][:8]}: {kind.dimension}</h3>"
            yield f"<p>{sentence(words)}</p>"
            yield bullets(map(str, kind.phases))
            yield f"<p class='from'>{links}</p>"


def _advised(closed: LoopResult) -> Iterator[str]:
    yield "<h2>What to do next</h2>"
    if not closed.advice:
        yield "<p>Nothing to improve: deploy, and watch for drift.</p>"
        return
    items = "".join(
        f"<li><b>{html.escape(one.do)}</b>: {html.escape(one.why)}"
        + (f"<code>{html.escape(one.command)}</code>" if one.command else "")
        + "</li>"
        for one in closed.advice
    )
    yield f"<ol class='todo'>{items}</ol>"


def _unexplained(closed: LoopResult) -> Iterator[str]:
    """What remains unknown, even if it is little."""
    yield "<h2>What was not explained</h2>"
    lines = []
    if closed.attribution is not None:
        for key, unit in (("success", "points of success"), ("error", "% of the error")):
            rest = closed.attribution.result[key].get("unexplained")
            if rest:
                lines.append(
                    f"{rest['value']:.1f} [{rest['low']:.1f}, {rest['high']:.1f}] {unit} are not"
                    " explained by any identified parameter"
                )
    known = _last_known(closed)
    if known is not None:
        found = known.result["identifiability"]
        combined = [name for names in found["only_in_combination"] for name in names]
        some = {*found["identifiable"], *combined}
        lost = [name for name in found["shrinkage"] if name not in some]
        if lost:
            lines.append(f"not identified from the recordings: {', '.join(lost)}")
        for names in found["only_in_combination"]:
            lines.append(
                "identified only in combination, so the prior decides the individual values:"
                f" {', '.join(names)}"
            )
        lines += list(known.result["notes"])
    for number, one in enumerate(closed.rounds):
        for entry in one.ladder.result["steps"]:
            if not entry["passed"]:
                lines.append(
                    f"{_name(number)}: the step {entry['step']} was not passed: {entry['why']}"
                )
    yield bullets(lines or ["nothing"])


def _made_of(closed: LoopResult) -> Iterator[str]:
    """Every episode behind the figures, and every step."""
    yield "<h2>Episodes</h2>"
    rows = []
    for done in [closed.recorded, *(b for one in closed.rounds for b in one.batches)]:
        for path in sorted(done.folder.rglob("*.arrow")):
            episode = read_recording(path)
            link = html.escape(str(path.relative_to(closed.folder)))
            rows.append(
                f"<tr id='{episode.id}'><td><a href='{link}'>{episode.id[:12]}</a></td>"
                f"<td>{html.escape(done.step.kind)}</td>"
                f"<td>{html.escape(episode.outcome or '')}</td>"
                f"<td>{episode.duration_s:.1f} s</td></tr>"
            )
    head = "<tr><th>episode</th><th>made by</th><th>outcome</th><th>length</th></tr>"
    yield f"<table>{head}{''.join(rows)}</table>"
    yield "<h2>Steps</h2>"
    steps = [done for one in closed.rounds for done in one.steps]
    if closed.attribution is not None:
        steps.append(closed.attribution)
    yield table(("step", "seconds"), [(done.folder.name, f"{done.seconds:.1f}") for done in steps])


def _first(one: Round, *, won: bool) -> Episode | None:
    """The first attempt of a round with that outcome."""
    wanted = "success" if won else "failure"
    episodes = (episode for batch in one.batches for episode in episodes_of(batch))
    return next((episode for episode in episodes if episode.outcome == wanted), None)


def _last_known(closed: LoopResult) -> KeptResult | None:
    known = [one.known for one in closed.rounds if one.known is not None]
    return known[-1] if known else None


def _links(steps: Iterable[KeptResult]) -> str:
    ids = [str(e) for done in steps for e in done.result["episodes"]]
    shown = ", ".join(f"<a href='#{e}'>{e[:8]}</a>" for e in ids[:4])
    more = f" and {len(ids) - 4} more" if len(ids) > 4 else ""
    return f"From {shown}{more}."


def _figure(inner: str, words: str, links: str) -> str:
    caption = f"{words} <span class='from'>{links}</span>"
    return f"<figure>{inner}<figcaption>{caption}</figcaption></figure>"


def _name(number: int) -> str:
    return "first policy" if number == 0 else f"round {number + 1}"


def _measured(rate: Mapping[str, Any]) -> tuple[str, str]:
    return f"{rate['value']:.0%}", f"{rate['low']:.0%} to {rate['high']:.0%}, n = {rate['n']}"


def _said(prediction: Prediction) -> tuple[str, str]:
    sure = f"{100 * prediction.confidence:g} % sure"
    return f"{prediction.median:.0%}", f"{prediction.low:.0%} to {prediction.high:.0%}, {sure}"
