"""Pages of one HTML file, with style and pictures inside."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from sim2real.files import write_text
from sim2real.units import counted

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

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
  gap: 0.5rem; }
.small { grid-template-columns: repeat(auto-fill, minmax(min(100%, 10rem), 1fr)); }
.plots img, .wide img, figure img, video { width: 100%; max-width: 44rem; height: auto; }
figure { margin: 0; break-inside: avoid; } figcaption { font-size: 0.85rem; color: #555; }
.verdict { font-size: 1.15rem; } .from { font-size: 0.8rem; color: #555; }
.told th:nth-child(2) { text-align: left; }
td.words { white-space: normal; text-align: left; min-width: 8rem; }
.cards { display: flex; flex-wrap: wrap; gap: 0.75rem; margin: 1rem 0; padding: 0; }
.cards div { flex: 1 1 8rem; border: 1px solid #ddd; border-radius: 0.5rem;
  padding: 0.6rem 0.9rem; }
.cards b { display: block; font-size: 1.7rem; line-height: 1.2; }
.cards span { font-size: 0.8rem; color: #555; }
.todo li { margin-bottom: 0.6rem; } .todo code { display: block; }
.still { display: none; }
@media print { body { margin: 0; max-width: none; } video { display: none; }
  .still { display: block; } h2 { break-after: avoid; } a { color: inherit; } }
"""


def write_parts(path: Path, title: str, parts: Iterable[str]) -> None:
    """Write parts, each of them HTML, as one page."""
    body = "\n".join(parts)
    write_text(
        path,
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head>"
        f"<body>{body}</body></html>\n",
    )


def paragraph(text: str, style: str = "") -> str:
    """Plain text as a paragraph."""
    return f"<p{_marked(style)}>{html.escape(text)}</p>"


def bullets(lines: Iterable[str]) -> str:
    """Plain lines as a list of sentences."""
    return f"<ul>{''.join(f'<li>{sentence(line)}</li>' for line in lines)}</ul>"


def table(columns: Sequence[str], rows: Iterable[Sequence[str | tuple[str, str]]]) -> str:
    """A table of plain text; a cell may have a class; 'fine' and 'too …' are coloured."""
    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def picture(figure: Figure, words: str) -> str:
    """A figure inside the page; `words` say what it shows."""
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=130)
    data = base64.b64encode(out.getvalue()).decode()
    return f"<img alt='{html.escape(words)}' src='data:image/png;base64,{data}'>"


def plots(pictures: Iterable[str]) -> str:
    """Pictures side by side, as many in a row as fit."""
    return f"<div class='plots'>{''.join(pictures)}</div>"


def omitted(count: int, noun: str) -> str:
    """A note on things that are not plotted; '' if there are none."""
    return paragraph(f"Not plotted: {counted(count, f'more {noun}')}.") if count > 0 else ""


def sentence(text: str) -> str:
    """Plain text as a sentence, escaped."""
    text = html.escape(text[:1].upper() + text[1:])
    return text if text.endswith(("?", ".")) else text + "."


def _cell(cell: str | tuple[str, str]) -> str:
    text, style = (cell, _style(cell)) if isinstance(cell, str) else cell
    return f"<td{_marked(style)}>{html.escape(text)}</td>"


def _marked(style: str) -> str:
    return f" class='{style}'" if style else ""


def _style(cell: str) -> str:
    if cell == "fine":
        return "good"
    return "bad" if cell.startswith("too ") else ""
