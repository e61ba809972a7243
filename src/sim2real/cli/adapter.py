"""From a verb's options to its exit code, the same way for every analysis.

An analysis is a function of values: it is called with every option by its name. What it found is
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
    """The dataclass of a verb; `json` and `out` are the command line's own, all else is passed."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def json(self) -> bool:
        """Whether the result is printed as JSON."""


class Found(Protocol):
    """What an analysis gives; `fine`, if it has that, says whether all is well."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data; of one that goes to a folder with `twin`, the twin's name."""


class Said(Found, Protocol):
    """What an analysis gives, if it says it in sentences."""

    def sentences(self) -> Iterable[str]:
        """What was found, a line each."""


class Saved(Said, Protocol):
    """The same, if the verb has `--out`."""

    def save(self, path: Path, /) -> None:
        """Write it to a file."""


R = TypeVar("R", bound=Found)


def runner_of(analysis: Callable[..., Saved]) -> Callable[[Options], int]:
    """What runs an analysis that says in sentences what it found."""
    return lambda options: carry_out(
        options, analysis, show=say_sentences, keep=lambda found, out: found.save(out)
    )


def say_sentences(found: Said, out: Path) -> None:
    """Print what was found, a line each."""
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
    """Run an analysis; 0 if what it found is `fine`, else 1.

    `keep` writes what was found to `--out`: a folder, by default `runs/RUNS/TWIN/TIME`, that must
    be empty or not exist, or without `runs` a place of another kind, by default what `place` says,
    if anything. `show` prints it, given where it is kept. `more` are arguments that are no option
    as it stands.
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
        _write(found, keep, out, folder=bool(runs))
    if options.json:
        print_json(plain)
    else:
        show(found, out or Path())
        if keep is not None and out is not None:
            say(f"written: {out}")
    return 0 if fine(found) else 1


def _refuse_full(folder: Path) -> None:
    """Refuse a folder for results that holds something already, before anything is computed."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise Sim2RealError(f"{folder} is not empty; choose another with --out")


def _write(found: R, keep: Callable[[R, Path], None], out: Path, *, folder: bool) -> None:
    if not folder:
        keep(found, out)
        return
    if out.exists():
        out.rmdir()  # empty: it was looked at before the work
    with atomic_folder(out) as temporary:
        keep(found, temporary)
