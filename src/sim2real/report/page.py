"""Pages that need nothing else: one HTML file with its style and pictures in it."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from matplotlib.backends.backend_agg import FigureCanvasAgg

from sim2real.files import atomic_path, write_text

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

OLD, NEW, REAL, WARN = "#b0b0b0", "#1f5fa8", "#222222", "#c0392b"
"""Colours: before, after, measured, and what is wrong."""
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 60rem; margin: 2rem auto;
  padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; font-size: 0.9rem; display: block; overflow-x: auto; }
td, th { padding: 0.25rem 0.75rem 0.25rem 0; text-align: right; white-space: nowrap; }
td:first-child, th:first-child { text-align: left; }
tr { border-bottom: 1px solid #ddd; } img { max-width: 100%; height: auto; }
code { font-size: 0.9em; overflow-wrap: anywhere; }
.good { color: #1a7f37; } .bad { color: #c0392b; }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 20rem), 1fr));
  gap: 0.5rem; } .plots img { width: 100%; max-width: 32rem; }
@media print { body { margin: 0; max-width: none; } }
"""


def write_parts(path: Path, title: str, parts: Iterable[str]) -> None:
    """Write parts, HTML each, as one page."""
    body = "\n".join(parts)
    write_text(
        path,
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head>"
        f"<body>{body}</body></html>\n",
    )


def table(columns: Sequence[str], rows: Iterable[Sequence[str | tuple[str, str]]]) -> str:
    """A table of plain text; a cell may come with its class, and one that says 'fine' or 'too …' is
    marked."""
    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def picture(figure: Figure, words: str) -> str:
    """A figure inside the page; `words` say what it shows."""
    FigureCanvasAgg(figure)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=130)
    data = base64.b64encode(out.getvalue()).decode()
    return f"<img alt='{html.escape(words)}' src='data:image/png;base64,{data}'>"


def plots(pictures: Iterable[str]) -> str:
    """Pictures side by side, as many in a row as there is room for."""
    return f"<div class='plots'>{''.join(pictures)}</div>"


def write_picture(path: Path, figure: Figure) -> None:
    """Write a figure as a file of its own, in the format that its name says."""
    FigureCanvasAgg(figure)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=110, format=path.suffix.lstrip("."))


def sentence(text: str) -> str:
    """Words as a sentence, safe to stand in a page."""
    text = html.escape(text[:1].upper() + text[1:])
    return text if text.endswith(("?", ".")) else text + "."


def _cell(cell: str | tuple[str, str]) -> str:
    text, style = (cell, _style(cell)) if isinstance(cell, str) else cell
    marked = f" class='{style}'" if style else ""
    return f"<td{marked}>{html.escape(text)}</td>"


def _style(cell: str) -> str:
    if cell == "fine":
        return "good"
    return "bad" if cell.startswith("too ") else ""
