"""The page of a loop: success before and after, what the gap was made of, and what is left."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from sim2real.attribution import Attribution, Failures
from sim2real.data import read_recording
from sim2real.errors import Sim2RealError
from sim2real.gap import Ranges
from sim2real.learn import Policy
from sim2real.logs import aligned
from sim2real.loop import episodes_of, run_of
from sim2real.randomize import drawn
from sim2real.report.attribution_plots import waterfall
from sim2real.report.identification_page import predicted
from sim2real.report.identify_plots import numbers_shown, replayed
from sim2real.report.page import (
    NEW,
    OLD,
    REAL,
    WARN,
    picture,
    plots,
    sentence,
    table,
    write_parts,
)
from sim2real.report.ranges_page import belief_of
from sim2real.report.replay_film import film_of
from sim2real.tasks import find_task
from sim2real.twin import Twin

if TYPE_CHECKING:
    from pathlib import Path

    from sim2real.data import Episode
    from sim2real.evaluation import Prediction
    from sim2real.loop import KeptResult, LoopResult, Round

REPORT_FILE = "report.html"
_HORIZON_S = 0.5
_MOST_REPLAYS = 6
_DRAWS = 512
_STYLE = """<style>
.small { grid-template-columns: repeat(auto-fill, minmax(min(100%, 10rem), 1fr)); }
figure { margin: 0; break-inside: avoid; } figcaption { font-size: 0.85rem; color: #555; }
.plots img, figure img, video { width: 100%; max-width: 44rem; height: auto; }
.verdict { font-size: 1.15rem; } .from { font-size: 0.8rem; color: #555; }
.cards { display: flex; flex-wrap: wrap; gap: 0.75rem; margin: 1rem 0; padding: 0; }
.cards div { flex: 1 1 8rem; border: 1px solid #ddd; border-radius: 0.5rem;
  padding: 0.6rem 0.9rem; }
.cards b { display: block; font-size: 1.7rem; line-height: 1.2; }
.cards span { font-size: 0.8rem; color: #555; }
.todo li { margin-bottom: 0.6rem; } .todo code { display: block; }
.still { display: none; }
@media print { video { display: none; } .still { display: block; } h2 { break-after: avoid; }
  a { color: inherit; } }
</style>"""


def write_loop(path: Path, closed: LoopResult) -> None:
    """Write the page as one file that needs nothing else; links to episodes are relative."""
    title = f"{closed.task} on {closed.robot}"
    parts = [
        _STYLE,
        f"<h1>{html.escape(title)}</h1>",
        f"<p class='verdict {'good' if closed.met else 'bad'}'>{sentence(closed.why)}</p>",
        _cards(closed),
        _figure(
            picture(_success(closed), "success in simulation and on the robot"),
            "Success with 95 % intervals; of the prediction 90 %.",
            _links(closed, (b for one in closed.rounds for b in one.batches)),
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
        ("in simulation", _percent(first.sim.result), _between(first.sim.result)),
        ("on the robot, before", _percent(first.real.to_dict()), _between(first.real.to_dict())),
    ]
    if last is not first:
        if last.predicted is not None:
            cards.append(("predicted", *_said(last.predicted)))
        cards.append(
            ("on the robot, after", _percent(last.real.to_dict()), _between(last.real.to_dict()))
        )
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
        name = "as trained first" if number == 0 else f"round {number + 1}"
        sim = one.sim.result
        rows.append((f"{name}: simulation", sim["value"], sim["low"], sim["high"], OLD))
        if one.predicted is not None:
            said = one.predicted
            rows.append((f"{name}: predicted", said.median, said.low, said.high, NEW))
        rows.append(
            (f"{name}: robot ({len(one.won)})", one.real.value, one.real.low, one.real.high, REAL)
        )
    figure = Figure(figsize=(7, 0.42 * len(rows) + 0.9), layout="constrained")
    axis = figure.subplots()
    for place, (_, value, low, high, colour) in enumerate(rows):
        axis.barh(place, 100 * value, color=colour, height=0.55, alpha=0.85)
        axis.plot([100 * low, 100 * high], [place, place], color=WARN, linewidth=1.6)
        axis.text(102, place, f"{value:.0%}", va="center", fontsize=9)
    axis.axvline(100 * closed.target, color=WARN, linewidth=1, linestyle=":")
    axis.set_yticks(range(len(rows)), [row[0] for row in rows], fontsize=9)
    axis.invert_yaxis()
    axis.set_xlim(0, 112)
    axis.set_xlabel("success [%]; dotted: the target", fontsize=8)
    axis.spines[["top", "right"]].set_visible(False)
    return figure


def _attributed(closed: LoopResult) -> Iterator[str]:
    if closed.attribution is None:
        return
    yield "<h2>What the gap was made of</h2>"
    tried = _links(closed, [*closed.rounds[0].batches, closed.recorded])
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
        yield "<ul>" + "".join(f"<li>{sentence(s)}</li>" for s in found.sentences()) + "</ul>"


def _replays(closed: LoopResult) -> Iterator[str]:
    known = _last_known(closed)
    if known is None:
        return
    before, after = Twin.load(find_task(closed.task).twin), Twin.load(known.folder / "twin")
    logs = [aligned(episode, before) for episode in episodes_of(closed.recorded)]
    yield "<h2>Real signals against simulated ones</h2>"
    checked = known.result["held_back"]
    units = {sensor.name: sensor.unit or "1" for sensor in logs[0].contract.sensors}
    rows = [
        (
            f"{name} [{units[name]}]",
            f"{e['before']:.3g}",
            f"{e['after']:.3g}",
            f"{e['after'] / e['before']:.2f}",
        )
        for name, e in checked["sensors"].items()
        if e["before"]
    ]
    yield (
        "<p>Root mean square error of predictions over"
        f" {checked['horizon_s']:g} s of recordings that were held back.</p>"
    )
    yield table(("sensor", "before", "after", "ratio"), rows)
    old, new = predicted((before, after), logs, _HORIZON_S)
    links = _links(closed, [closed.recorded])
    figures = [
        _figure(
            picture(replayed(old, new, name, k, legend=place == 0), f"{name}, replayed"),
            f"{html.escape(name)}: measured, and replayed before and after.",
            links,
        )
        for place, (name, k) in enumerate(numbers_shown(old, _MOST_REPLAYS))
    ]
    yield plots(figures)


def _believed(closed: LoopResult) -> Iterator[str]:
    known = _last_known(closed)
    if known is None:
        return
    twin = Twin.load(known.folder / "twin")
    if twin.posterior is None:
        return
    trained = Policy.open(run_of(closed.rounds[-1].policy)).run
    wider = Twin.load(trained.twin) if trained.twin and trained.source == "posterior" else twin
    draws = drawn(wider, "posterior", count=_DRAWS, seed=0).numpy()
    ranges = Ranges(twin=twin, source="posterior", draws=draws)
    recorded = [closed.recorded, *(b for one in closed.rounds[:-1] for b in one.batches)]
    yield "<h2>What was believed, and what is known now</h2>"
    names = twin.posterior.names
    panels = [
        picture(belief_of(ranges, k), f"{parameter.name}: prior and posterior")
        for k, parameter in enumerate(twin.parameters)
        if parameter.name in names
    ]
    yield _figure(
        f"<div class='plots small'>{''.join(panels)}</div>",
        "Grey: the prior. Blue: what the last policy was trained with, its middle 95 % as a bar,"
        " and below it that of the posterior. Dotted: the value in the twin as written.",
        _links(closed, recorded),
    )


def _films(closed: LoopResult) -> Iterator[str]:
    task, twin = find_task(closed.task), Twin.load(find_task(closed.task).twin)
    chosen = [
        (_first(closed.rounds[0], won=False), "as trained first: it fails"),
        (_first(closed.rounds[-1], won=True), "afterwards: it succeeds"),
    ]
    if len(closed.rounds) == 1 or all(episode is None for episode, _ in chosen):
        return
    yield "<h2>A failure and its cure</h2><p>Drawn in the twin from the robot's own readings.</p>"
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
            lines.append(f"{unjudged} more were not judged, and count as failed above")
        lines += [str(diagnosis) for diagnosis in found.diagnoses]
        yield "<ul>" + "".join(f"<li>{sentence(line)}</li>" for line in lines) + "</ul>"
        for kind in found.kinds:
            links = ", ".join(f"<a href='#{e}'>{e[:8]}</a>" for e in kind.episodes)
            words = "; ".join(kind.sentences()[1:])
            yield f"<h3>{len(kind.episodes)} like {kind.episodes[0][:8]}: {kind.dimension}</h3>"
            yield f"<p>{sentence(words)}</p>"
            yield "<ul>" + "".join(f"<li>{html.escape(str(p))}</li>" for p in kind.phases) + "</ul>"
            yield f"<p class='from'>{links}</p>"


def _advised(closed: LoopResult) -> Iterator[str]:
    yield "<h2>What to do next</h2>"
    if not closed.advice:
        yield "<p>Nothing follows from the evidence: deploy, and watch for drift.</p>"
        return
    items = "".join(
        f"<li><b>{html.escape(one.do)}</b>: {html.escape(one.why)}"
        + (f"<code>{html.escape(one.command)}</code>" if one.command else "")
        + "</li>"
        for one in closed.advice
    )
    yield f"<ol class='todo'>{items}</ol>"


def _unexplained(closed: LoopResult) -> Iterator[str]:
    """What nobody knows: said even where it is little."""
    yield "<h2>What was not explained</h2>"
    lines = []
    if closed.attribution is not None:
        for key, unit in (("success", "points of success"), ("error", "% of the error")):
            rest = closed.attribution.result[key].get("unexplained")
            if rest:
                lines.append(
                    f"{rest['value']:.1f} [{rest['low']:.1f}, {rest['high']:.1f}] {unit} are"
                    " explained by nothing that was identified"
                )
    known = _last_known(closed)
    if known is not None:
        told = known.result["identifiability"]
        combined = [name for names in told["only_in_combination"] for name in names]
        some = {*told["identifiable"], *combined}
        lost = [name for name in told["shrinkage"] if name not in some]
        if lost:
            lines.append(f"not told by the recordings: {', '.join(lost)}")
        for names in told["only_in_combination"]:
            lines.append(f"told only together, and each as its prior likes it: {', '.join(names)}")
        lines += list(known.result["notes"])
    for number, one in enumerate(closed.rounds):
        for entry in one.ladder.result["steps"]:
            if not entry["passed"]:
                lines.append(
                    f"{_name(number)}, {entry['step']} of the ladder was not passed: {entry['why']}"
                )
    yield "<ul>" + "".join(f"<li>{sentence(line)}</li>" for line in lines or ["nothing"]) + "</ul>"


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
    """The first attempt of a round that ended so."""
    wanted = "success" if won else "failure"
    episodes = (episode for batch in one.batches for episode in episodes_of(batch))
    return next((episode for episode in episodes if episode.outcome == wanted), None)


def _last_known(closed: LoopResult) -> KeptResult | None:
    known = [one.known for one in closed.rounds if one.known is not None]
    return known[-1] if known else None


def _links(closed: LoopResult, steps: Iterable[KeptResult]) -> str:
    ids = [str(e) for done in steps for e in done.result["episodes"]]
    shown = ", ".join(f"<a href='#{e}'>{e[:8]}</a>" for e in ids[:4])
    more = f" and {len(ids) - 4} more" if len(ids) > 4 else ""
    return f"From {shown}{more}."


def _figure(inner: str, words: str, links: str) -> str:
    caption = f"{words} <span class='from'>{links}</span>"
    return f"<figure>{inner}<figcaption>{caption}</figcaption></figure>"


def _name(number: int) -> str:
    return "as trained first" if number == 0 else f"round {number + 1}"


def _percent(rate: dict[str, Any]) -> str:
    return f"{rate['value']:.0%}"


def _said(prediction: Prediction) -> tuple[str, str]:
    sure = f"{100 * prediction.confidence:g} % sure"
    return f"{prediction.median:.0%}", f"{prediction.low:.0%} to {prediction.high:.0%}, {sure}"


def _between(rate: dict[str, Any]) -> str:
    return f"{rate['low']:.0%} to {rate['high']:.0%}, n = {rate['n']}"
