"""What pages of the documentation show: blocks of code, commands, code in a sentence, links."""

import ast
import importlib
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from tests.repository import ROOT

PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "examples").rglob("README.md")),
]
COMMENTED = sorted((ROOT / "examples").rglob("*.toml"))
"""Files whose comments show commands."""
PROGRAMS = ("sim2real", "sim2real-reality", "python -m benchmarks", "make", "pip install")
IMPORTED_WHOLE = ("sim2real.tasks.gym",)
"""Modules that are imported for what that registers."""
_FENCE = re.compile(r"```(\w*)$")
_PROMPT = re.compile(r"^(\$ )?(\.venv/bin/)?")
_SPAN = re.compile(r"`([^`]+)`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_GENERATED = re.compile(r"<!-- (\S+) -->")


def name_of(page: Path) -> str:
    """A page's name: its path in the repository, without `docs/`."""
    return page.relative_to(ROOT).as_posix().removeprefix("docs/")


@dataclass(frozen=True, kw_only=True)
class Block:
    """Lines of code on a page, fenced or indented."""

    page: str
    line: int
    """Number of its first line, which is the fence where there is one."""
    end: int
    """Number of the line after its last."""
    language: str
    """As the fence says; of an indented block python where it begins with an import, else empty."""
    text: str

    @property
    def name(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command as a page shows it; words in capitals and `…` stand for what the reader knows."""

    page: str
    line: int
    text: str
    """One line without prompt; alternatives are divided by `|`, options may stand in brackets."""

    @property
    def name(self) -> str:
        return f"{self.page}:{self.line} {self.text}"

    def variants(self) -> list[list[str]]:
        """Its words, once for each choice of alternatives, with the options in brackets."""
        depth, choices = 0, []
        for given in shlex.split(self.text, comments=True):
            word = given
            if word.startswith("["):
                depth, word = depth + 1, word[1:]
            if depth and word.endswith("]"):
                depth, word = depth - 1, word[:-1]
            choices.append([one for one in word.split("|") if one != "…"] or [word])
        return [list(words) for words in product(*choices)]


def blocks(page: Path) -> Iterator[Block]:
    """Blocks of a page in order."""
    lines = page.read_text(encoding="utf-8").splitlines()
    number = 0
    while number < len(lines):
        first, fence = number + 1, _FENCE.match(lines[number])
        if fence:
            inside = []
            while not lines[number + 1].startswith("```"):
                number += 1
                inside.append(lines[number])
            number += 2
            yield _block(page, first, number, fence[1], inside)
            continue
        inside = []
        while number < len(lines) and (lines[number].startswith("    ") or _within(lines, number)):
            inside.append(lines[number][4:])
            number += 1
        if inside:
            python = inside[0].startswith(("from ", "import "))
            yield _block(page, first, number, "python" if python else "", inside)
        else:
            number += 1


def _block(page: Path, first: int, end: int, language: str, inside: list[str]) -> Block:
    return Block(
        page=name_of(page), line=first, end=end + 1, language=language, text="\n".join(inside)
    )


def _within(lines: list[str], number: int) -> bool:
    """Whether an empty line has indented ones on both sides."""
    around = lines[number - 1 : number] + lines[number + 1 : number + 2]
    return not lines[number] and len(around) == 2 and all(x.startswith("    ") for x in around)


def commands(page: Path) -> Iterator[Command]:
    """Commands in blocks that are not of another language."""
    for block in blocks(page):
        if block.language not in ("", "sh", "bash", "console"):
            continue
        joined = block.text.replace("\\\n", " ").splitlines()
        number = block.line + bool(block.language)
        for text in joined:
            command = _PROMPT.sub("", text.strip())
            if command.startswith(tuple(f"{program} " for program in PROGRAMS)):
                yield Command(page=name_of(page), line=number, text=command)
            number += 1


def commented(file: Path) -> Iterator[Command]:
    """Commands that stand by themselves in comments of a file."""
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        text = line.removeprefix("#").strip()
        if line.startswith("#") and text.startswith(tuple(f"{program} " for program in PROGRAMS)):
            yield Command(page=name_of(file), line=number, text=text)


@dataclass(frozen=True, kw_only=True)
class Span:
    """Code in a sentence, a table or a heading."""

    page: str
    line: int
    text: str

    @property
    def name(self) -> str:
        return f"{self.page}:{self.line} {self.text}"


def spans(page: Path) -> Iterator[Span]:
    """Code in sentences, tables and headings that people wrote."""
    for number, line in _sentences(page):
        for text in _SPAN.findall(line):
            yield Span(page=name_of(page), line=number, text=text)


def mentions(page: Path) -> Iterator[Command]:
    """Commands in sentences and tables."""
    for span in spans(page):
        command = _PROMPT.sub("", span.text).replace("\\|", "|")
        if command.startswith(tuple(f"{program} " for program in PROGRAMS)):
            yield Command(page=span.page, line=span.line, text=command)


def links(page: Path) -> Iterator[Span]:
    """Links to other pages, files and headings of the repository."""
    for number, line in _sentences(page):
        for target in _LINK.findall(line):
            if "://" not in target:
                yield Span(page=name_of(page), line=number, text=target)


def anchors(page: Path) -> set[str]:
    """What links to a page may end with: headings, as web pages name them, and marks of its own."""
    found = set()
    for _, line in _sentences(page):
        found |= set(re.findall(r'<a id="([^"]+)">', line))
        if line.startswith("#"):
            title = re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower())
            found.add(title.replace(" ", "-"))
    return found


def _sentences(page: Path) -> Iterator[tuple[int, str]]:
    """Lines outside of blocks of code and of tables that a program wrote."""
    code = {number for block in blocks(page) for number in range(block.line, block.end)}
    generated = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        mark = _GENERATED.fullmatch(line)
        if mark:
            generated = mark[1] != "end"
        elif number not in code and not generated:
            yield number, line


def past_front_doors(code: str) -> list[str]:
    """Imports of the package that reach past the front door of a room."""
    wrong = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            names = [(alias.name, None) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [(node.module or "", alias.name) for alias in node.names]
        else:
            continue
        for module, name in names:
            if module.partition(".")[0] != "sim2real" or module in IMPORTED_WHOLE:
                continue
            public = getattr(importlib.import_module(module), "__all__", ())
            if module.count(".") > 1 or (name is not None and name not in public):
                wrong.append(f"{module}:{name}")
    return wrong
