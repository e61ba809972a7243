"""From a verb's options to its exit code, the same way for every analysis.

An analysis is a function of values: it is called with what the options name, opened, and with every
other option by its name. What it found is written whole or not at all, and printed as JSON or text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import Field, fields
from datetime import datetime
from inspect import signature
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from sim2real.cli.output import print_json, say
from sim2real.data import read_logs
from sim2real.errors import Sim2RealError
from sim2real.files import atomic_folder
from sim2real.policy.bundle import Bundle, open_twin
from sim2real.report.progress import bar

_OURS = ("json", "out", "channels")
"""Options that are the command line's own."""
_LOGS = {"logs", "held_back"}


class Options(Protocol):
    """The dataclass of a verb."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def json(self) -> bool:
        """Whether the result is printed as JSON."""


class Found(Protocol):
    """What an analysis gives."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""


R = TypeVar("R", bound=Found)


def carry_out(
    options: Options,
    analysis: Callable[..., R],
    *,
    show: Callable[[R, Path], None],
    keep: Callable[[R, Path], None] | None = None,
    runs: str = "",
    fine: Callable[[R], bool] = lambda found: True,
    **more: Any,
) -> int:
    """Run an analysis; 0 if what it found is `fine`, else 1.

    `keep` writes what was found to `--out`: a folder, by default `runs/RUNS/TWIN/TIME`, that must
    be empty or not exist, or without `runs` a file that may be left out. `show` prints it, given
    where it is kept. `more` are arguments that are no option as it stands.
    """
    inputs = _opened(options, more)
    out: Path | None = getattr(options, "out", None)
    if runs:
        out = out or Path("runs") / runs / inputs["twin"].name / f"{datetime.now():%Y%m%d-%H%M%S}"
        refuse_full(out)
    channels: Path | None = getattr(options, "channels", None)
    for name in _LOGS & inputs.keys():
        inputs[name] = read_logs(inputs[name], channels=channels) if inputs[name] else []
    told = "report" in signature(analysis).parameters
    with bar(analysis.__name__.replace("_", " "), quiet=options.json or not told) as report:
        found = analysis(**inputs, **({"report": report} if told else {}))
    if keep is not None and out is not None:
        _written(found, keep, out, folder=bool(runs))
    if options.json:
        print_json(({"folder": str(out)} if runs else {}) | found.to_dict())
    else:
        show(found, out or Path())
        if keep is not None and out is not None:
            say(f"written: {out}")
    return 0 if fine(found) else 1


def refuse_full(folder: Path) -> None:
    """Refuse a folder for results that holds something already, before anything is computed."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise Sim2RealError(f"{folder} is not empty; choose another with --out")


def _opened(options: Options, more: dict[str, Any]) -> dict[str, Any]:
    """What an analysis takes, by name: twins and bundles as values, logs still to be read."""
    found = {f.name: getattr(options, f.name) for f in fields(options) if f.name not in _OURS}
    for name, opened in (("twin", open_twin), ("bundle", Bundle.open)):
        if name in found and name not in more:
            found[name] = opened(found[name])
    return found | more


def _written(found: R, keep: Callable[[R, Path], None], out: Path, *, folder: bool) -> None:
    if not folder:
        keep(found, out)
        return
    if out.exists():
        out.rmdir()  # empty: it was looked at before the work
    with atomic_folder(out) as temporary:
        keep(found, temporary)
