"""Pages of one HTML file, with style and pictures inside, made from the templates beside this."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from sim2real.files import write_text
from sim2real.units import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TEMPLATES = Path(__file__).with_name("templates")


@dataclass(frozen=True)
class Picture:
    """A figure as it is inside a page."""

    words: str
    """What it shows."""
    data: str
    """Address that contains it."""


def picture(figure: Figure, words: str) -> Picture:
    """A figure for a page; `words` say what it shows."""
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=130)
    return Picture(words, embedded(out.getvalue(), "image/png"))


def embedded(content: bytes, kind: str) -> str:
    """An address that contains a file of a MIME type."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def write_html(path: Path, template: str, **values: object) -> None:
    """Write a page from a template and its values."""
    write_text(path, _environment().get_template(template).render(values))


def sentence(text: str) -> str:
    """A text as a sentence."""
    text = text[:1].upper() + text[1:]
    return text if text.endswith(("?", ".")) else text + "."


def _cells(rows: Iterable[Sequence[str | tuple[str, str]]]) -> list[list[tuple[str, str]]]:
    """(text, class) of every cell of a table; 'fine' and 'too …' are coloured."""
    return [[(cell, _style(cell)) if isinstance(cell, str) else cell for cell in r] for r in rows]


def _style(cell: str) -> str:
    if cell == "fine":
        return "good"
    return "bad" if cell.startswith("too ") else ""


@cache
def _environment() -> Environment:
    found = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {"sentence": sentence, "cells": _cells, "counted": counted}
    return found
