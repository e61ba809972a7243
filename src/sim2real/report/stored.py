"""Results that were stored, and the page of any result."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim2real.errors import Sim2RealError, nearest
from sim2real.files import read_json
from sim2real.report.attribution_plots import write_attribution
from sim2real.report.gap_page import write_gap
from sim2real.report.identification_page import write_page
from sim2real.report.loop_page import write_loop
from sim2real.report.page import picture, sentence, write_html
from sim2real.report.plots import drift_evidence, expected_knowledge, success_by_parameter
from sim2real.report.ranges_page import write_ranges
from sim2real.results import Result, header

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = {
    "attribution": "attribution:GapAttribution",
    "comparison": "evaluation:Comparison",
    "diagnosis": "doctor:Diagnosis",
    "drift": "robot:DriftReport",
    "evaluation": "evaluation:Evaluation",
    "failures": "attribution:Explanation",
    "gap": "gap:Gap",
    "identification": "identification:Identification",
    "loop": "loop:LoopResult",
    "plan": "plan:MotionPlan",
    "power": "evaluation:TrialPlan",
    "prediction": "evaluation:Expectation",
    "ranges": "gap:Ranges",
    "ranking": "evaluation:RankedTable",
}
"""Where the class of each kind of result is, as `room:Class`; it is loaded when it is asked for."""
_PAGES: dict[str, Callable[[Path, Any], None]] = {
    "attribution": write_attribution,
    "gap": write_gap,
    "identification": write_page,
    "loop": write_loop,
    "ranges": write_ranges,
}
_FIGURES: dict[str, Callable[[Any], Figure]] = {
    "drift": drift_evidence,
    "evaluation": success_by_parameter,
    "plan": expected_knowledge,
}


def result_class(kind: str) -> type[Result]:
    """The class of a kind of result; another kind is a `Sim2RealError`."""
    if kind not in KINDS:
        raise Sim2RealError(
            f"{kind!r} is no kind of result that this version knows: update sim2real"
            f"{nearest(kind, KINDS)}"
        )
    room, _, name = KINDS[kind].partition(":")
    found: type[Result] = getattr(import_module(f"sim2real.{room}"), name)
    return found


def load_result(path: Path | str) -> Result:
    """The result in a file that `save` wrote, or the only one in a folder, whatever its kind."""
    path = Path(path)
    if path.is_dir():
        there = [file for file in sorted(path.glob("*.json")) if _is_result(file)]
        if len(there) != 1:
            names = f": {', '.join(file.name for file in there)}" if there else ""
            raise Sim2RealError(f"{path} holds {len(there)} results{names}; name a file")
        path = there[0]
    kind, _ = header(read_json(path), str(path))
    return result_class(kind).load(path)


def report_of(result: Result | Path | str, out: Path | str | None = None) -> Path:
    """Write the page of a result, or of a file with one; the page.

    It is written to `out`, by default beside the file as KIND.html.
    """
    if out is None:
        if isinstance(result, Result):
            raise Sim2RealError("say where the page goes: this result is not in a file")
        place = Path(result)
        folder = place if place.is_dir() else place.parent
    found = result if isinstance(result, Result) else load_result(result)
    path = folder / f"{found.result_kind}.html" if out is None else Path(out)
    _PAGES.get(found.result_kind, _write_any)(path, found)
    return path


def _write_any(path: Path, found: Result) -> None:
    """The page of a result that has none of its own: what it says, and its figure."""
    kind = found.result_kind
    said = getattr(found, "sentences", None)
    figure = _FIGURES.get(kind)
    write_html(
        path,
        "result.html",
        title=sentence(kind).rstrip("."),
        lines=[line.strip() for line in said() if line.strip()] if said else [],
        figure=picture(figure(found), kind) if figure else None,
        rows=[(name, str(value)) for name, value in found.to_dict().items() if _short(value)],
    )


def _short(value: object) -> bool:
    return isinstance(value, str | int | float) and len(str(value)) < 200


def _is_result(file: Path) -> bool:
    try:
        header(read_json(file), str(file))
    except Sim2RealError:
        return False
    return True
