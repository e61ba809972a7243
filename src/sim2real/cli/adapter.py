"""From a verb's options to its exit code, the same way for every analysis.

An analysis is a function of values: it is called with every option by its name. Its result is
written whole or not at all, and printed as JSON or text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import Field, fields
from datetime import datetime
from inspect import signature
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from sim2real.cli.output import print_json, say
from sim2real.errors import Sim2RealError
from sim2real.files import atomic_folder
from sim2real.report import bar


class Options(Protocol):
    """The dataclass of a verb; all fields but `json` and `out` are passed to the analysis."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def json(self) -> bool:
        """Whether the result is printed as JSON."""


class Found(Protocol):
    """The result of an analysis; an attribute `fine`, if there is one, decides the exit code."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data; with `twin`, the twin's name, if it is saved to a folder."""


class Said(Found, Protocol):
    """A result that is printed as sentences."""

    def sentences(self) -> Iterable[str]:
        """The result, a line each."""


R = TypeVar("R", bound=Found)


def runner_of(analysis: Callable[..., Any]) -> Callable[[Options], int]:
    """Runs an analysis whose result has sentences and, if the verb has `--out`, `save`."""
    return lambda options: carry_out(
        options, analysis, show=say_sentences, keep=lambda found, out: found.save(out)
    )


def say_sentences(found: Said, out: Path) -> None:
    """Print the sentences of a result."""
    for line in found.sentences():
        say(line)


def carry_out(
    options: Options,
    analysis: Callable[..., R],
    *,
    show: Callable[[R, Path], None],
    keep: Callable[[R, Path], None] | None = None,
    runs: str = "",
    place: Callable[[R], Path | None] = lambda found: None,
    fine: Callable[[R], bool] = lambda found: getattr(found, "fine", True),
    **more: Any,
) -> int:
    """Run an analysis; 0 if its result is `fine`, else 1.

    `keep` writes the result to `--out`. With `runs` this is a folder that must be empty or not
    exist, by default `runs/RUNS/TWIN/TIME`; without `runs` the default is what `place` returns, if
    anything. `show` prints the result, given where it was written. `more` are arguments that differ
    from the options of that name.
    """
    out: Path | None = getattr(options, "out", None)
    if runs and out is not None:
        _refuse_full(out)
    inputs = {f.name: getattr(options, f.name) for f in fields(options)} | more
    told = "report" in signature(analysis).parameters
    with bar(analysis.__name__.replace("_", " "), quiet=options.json or not told) as report:
        inputs |= {"report": report} if told else {}
        found = analysis(**{k: v for k, v in inputs.items() if k not in ("json", "out")})
    plain = found.to_dict()
    if runs:
        out = out or Path("runs") / runs / plain["twin"] / f"{datetime.now():%Y%m%d-%H%M%S}"
        plain = {"folder": str(out), **plain}
    out = out or place(found)
    if keep is not None and out is not None:
        if not runs:
            keep(found, out)
        else:
            if out.exists():
                out.rmdir()  # empty, as checked before the work
            with atomic_folder(out) as temporary:
                keep(found, temporary)
    if options.json:
        print_json(plain)
    else:
        show(found, out or Path())
        if keep is not None and out is not None:
            say(f"written: {out}")
    return 0 if fine(found) else 1


def _refuse_full(folder: Path) -> None:
    """Refuse a folder for results that is not empty, before anything is computed."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise Sim2RealError(f"{folder} is not empty; choose another with --out")
