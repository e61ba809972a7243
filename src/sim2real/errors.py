"""The one exception a user's mistake raises, and the nearest valid names it offers."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    OptionsT = TypeVar("OptionsT", bound=DataclassInstance)


class Sim2RealError(Exception):
    """A mistake by the user or in the data, explained in one line.

    The command line prints the message and exits with code 2; no traceback follows.
    """


def nearest(name: str, valid: Iterable[str]) -> str:
    """A phrase naming the valid names closest to `name`, or all when there are few, or ''."""
    names = sorted(set(valid))
    close = difflib.get_close_matches(name, names, cutoff=0.5)
    if not close:
        # A path is often right but for one part: compare the last part alone.
        tails = {n.rsplit("/", 1)[-1]: n for n in names}
        tail = difflib.get_close_matches(name.rsplit("/", 1)[-1], tails)
        close = [tails[t] for t in tail]
    if close:
        return f"; did you mean {', '.join(repr(c) for c in close)}?"
    if 0 < len(names) <= 8:
        return f"; there are {', '.join(repr(n) for n in names)}"
    return ""


def options_as(kind: type[OptionsT], **given: Any) -> OptionsT:
    """A verb's options as a user of the library gives them: paths may be text.

    A name that is no option is a `Sim2RealError`.
    """
    types = {field.name: str(field.type) for field in fields(kind)}
    for name in given.keys() - types.keys():
        raise Sim2RealError(f"there is no option {name!r}{nearest(name, types)}")
    paths = {name for name in given if re.search(r"\bPath\b", types[name])}
    texts = {name for name in paths if isinstance(given[name], str)}
    return kind(**{name: Path(v) if name in texts else v for name, v in given.items()})


def table_at(value: Any, where: str) -> Mapping[str, Any]:
    """`value` if it is a table, as read from TOML or JSON; else an error that says where."""
    if not isinstance(value, Mapping):
        raise Sim2RealError(f"{where} must be a table, not {brief(value)}")
    return value


def number_at(value: Any, where: str) -> float:
    """`value` if it is a finite number; else an error that says where."""
    whole = isinstance(value, int) and abs(value) > 1e300
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or whole or not math.isfinite(value):
        raise Sim2RealError(f"{where} must be a number, not {brief(value)}")
    return float(value)


def one_line(error: BaseException) -> str:
    """What an exception of a library says, as one line that is not too long."""
    return " ".join(str(error).split())[:300]


@contextmanager
def explaining(what: str, *kinds: type[Exception]) -> Iterator[None]:
    """An exception of these kinds, or of any if none is named, becomes a `Sim2RealError`.

    It says what failed, and why. Libraries raise many kinds of exceptions on damaged bytes.
    """
    caught = kinds or (Exception,)
    try:
        yield
    except Sim2RealError:
        raise
    except caught as error:
        missing = isinstance(error, FileNotFoundError)
        why = "no such file" if missing else one_line(error) or type(error).__name__
        raise Sim2RealError(f"{what}: {why}") from None


def brief(value: object) -> str:
    """A value as errors show it: not more than a line."""
    try:
        text = repr(value)
    except ValueError:  # a number of thousands of digits
        return "a huge number"
    return text if len(text) <= 80 else text[:77] + "…"
