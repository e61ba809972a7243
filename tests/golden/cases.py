"""Cases of the golden net: running a command, keeping what it said, and comparing it later.

A case is a table of `commands.toml`. It is run in this process, in a folder of its own that holds
a copy of `made/` and of `examples/bundles`, so that nothing it writes is seen by another case. What
it printed and the files it wrote are kept as plain data, without what depends on the time or the
folder. `compare` holds them against another run, through the table of `renames.toml`.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import os
import re
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
MADE, EXPECTED = HERE / "made", HERE / "expected"
EXAMPLES = HERE.parent.parent / "examples"
IGNORED = "<ignored>"
"""Stands in the expected output for what differs from run to run; it must be there."""
TOLERANCES = {"exact": (1e-9, 1e-12), "numeric": (1e-6, 1e-9), "trained": (1e-3, 1e-6)}
"""Relative and absolute tolerance of numbers, by class; strings and counts are exact in all."""
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w])")


@dataclass(frozen=True, kw_only=True)
class Case:
    """One command, and how what it says is compared."""

    name: str
    argv: tuple[str, ...]
    """Words after `sim2real`; {made}, {examples} and {tmp} stand for folders."""
    tolerance: str = "numeric"
    files: tuple[str, ...] = ()
    """Files that are compared too: JSON, TOML or CSV; relative to the case's folder."""
    ignore: tuple[str, ...] = ()
    """Paths of values that differ from run to run, as `recordings.*.episode`."""
    structure: tuple[str, ...] = ()
    """Paths below which only keys and types are compared."""
    unordered: tuple[str, ...] = ()
    """Paths of lists of named entries whose order depends on the last bits of equal numbers."""
    loose: Mapping[str, float] = field(default_factory=dict)
    """Relative tolerance by path, where it is not the case's."""
    slow: bool = False
    first: tuple[tuple[str, ...], ...] = ()
    """Commands that are run before, and are not compared."""


@dataclass(frozen=True, kw_only=True)
class Renames:
    """Old names and what they are called now; the content of `renames.toml`."""

    keys: Mapping[str, str] = field(default_factory=dict)
    sentences: Mapping[str, str] = field(default_factory=dict)
    fragments: Mapping[str, str] = field(default_factory=dict)
    argv: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    text: tuple[Mapping[str, str], ...] = ()
    added: Mapping[str, list[str]] = field(default_factory=dict)
    """Keys that are new, by the path of their table."""
    changed: Mapping[str, list[str]] = field(default_factory=dict)
    """Paths of numbers that are others since, or gone, by a pattern of cases."""
    cases: Mapping[str, Mapping[str, Mapping[str, str]]] = field(default_factory=dict)

    @classmethod
    def load(cls) -> Renames:
        """The table beside this file."""
        table = tomllib.loads((HERE / "renames.toml").read_text(encoding="utf-8"))
        return cls(**{**table, "text": tuple(table.get("text", ()))})

    def of(self, kind: str, case: str) -> dict[str, str]:
        """Renames of a kind that hold for a case."""
        mine: dict[str, str] = dict(getattr(self, kind))
        for pattern, tables in self.cases.items():
            if fnmatchcase(case, pattern):
                mine |= tables.get(kind, {})
        return mine

    def words(self, words: tuple[str, ...], case: str) -> tuple[str, ...]:
        """A command line with today's names of verbs and options."""
        found = list(words)
        for old, new in self.of("argv", case).items():
            was, size = old.split(), len(old.split())
            k = 0
            while k + size <= len(found):
                if found[k : k + size] == was:
                    found[k : k + size] = new.split()
                    k += len(new.split())
                else:
                    k += 1
        return tuple(found)

    def sentence(self, text: str, case: str) -> str:
        """A string as it is said today."""
        whole = self.of("sentences", case)
        if text in whole:
            return whole[text]
        for old, new in self.of("fragments", case).items():
            text = text.replace(old, new)
        return text

    def keys_added(self, path: str) -> set[str]:
        """Keys that a table may have more than it had."""
        return {key for at, keys in self.added.items() if fnmatchcase(path, at) for key in keys}

    def is_changed(self, path: str, case: str) -> bool:
        """Whether a number is another one since, or gone."""
        return any(
            fnmatchcase(case, of) and fnmatchcase(path, pattern)
            for of, patterns in self.changed.items()
            for pattern in patterns
        )

    def is_text(self, path: str, case: str) -> bool:
        """Whether a string may be any that is not empty."""
        return any(
            fnmatchcase(case, entry["case"]) and fnmatchcase(path, entry["path"])
            for entry in self.text
        )


def load_cases() -> list[Case]:
    """Every case of `commands.toml`."""
    table = tomllib.loads((HERE / "commands.toml").read_text(encoding="utf-8"))
    found = []
    for entry in table["case"]:
        values = dict(entry)
        values["argv"] = tuple(values["argv"])
        values["first"] = tuple(tuple(words) for words in values.get("first", ()))
        for name in ("files", "structure", "unordered"):
            values[name] = tuple(values.get(name, ()))
        values["ignore"] = (*table.get("ignore", ()), *values.get("ignore", ()))
        values.pop("why", None)
        found.append(Case(**values))
    return found


def lay_out(folder: Path) -> None:
    """Copies of what was made and of the example bundles, for a case to work with."""
    shutil.copytree(MADE, folder / "made")
    shutil.copytree(EXAMPLES / "bundles", folder / "bundles")


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Work in a folder, without variables that would change what a command does."""
    before, lake = Path.cwd(), os.environ.pop("SIM2REAL_LAKE", None)
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
        if lake is not None:
            os.environ["SIM2REAL_LAKE"] = lake


def call(words: tuple[str, ...]) -> tuple[int, str, str]:
    """(exit code, standard output, standard error) of a command, run in this process."""
    from sim2real.cli import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(list(words))
        except SystemExit as end:
            code = int(end.code or 0)
    return code, out.getvalue(), err.getvalue()


def run_case(case: Case, folder: Path, renames: Renames | None = None) -> dict[str, Any]:
    """What a case says, as plain data; `folder` is empty and the case's own."""
    renames = renames or Renames()
    lay_out(folder)
    ids = json.loads((MADE / "ids.json").read_text(encoding="utf-8"))

    def words(argv: tuple[str, ...]) -> tuple[str, ...]:
        places = {"made": "made", "examples": "bundles", "tmp": ".", **ids}
        filled = (
            re.sub(r"\{(\w+)\}", lambda match: places[match[1]], word).removeprefix("./")
            for word in argv
        )
        return renames.words(tuple(filled), case.name)

    with inside(folder):
        for argv in case.first:
            code, _, said = call(words(argv))
            if code not in (0, 1):
                raise AssertionError(f"{' '.join(argv)}: exit code {code}: {said}")
        code, out, err = call(words(case.argv))
        named = renames.of("files", case.name)
        found: dict[str, Any] = {"exit": code}
        try:
            found["stdout"] = json.loads(out) if out.strip() else None
        except json.JSONDecodeError:
            found["stdout"] = out.splitlines()
        errors = [line for line in err.splitlines() if line.startswith("error: ")]
        if errors:
            found["errors"] = errors
        if case.files:
            found["files"] = {
                name: _content(Path(_one(named.get(name, name)))) for name in case.files
            }
    plain = _plain(found, str(folder.resolve()), str(folder))
    return dict(plain)


def _one(pattern: str) -> str:
    """The file that a pattern names; itself where there is none, for a clear mistake."""
    if not any(sign in pattern for sign in "*?["):
        return pattern
    return next((str(path) for path in sorted(Path().glob(pattern))), pattern)


def _content(path: Path) -> Any:
    if not path.is_file():
        return f"<no file {path.name}>"
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        return json.loads(text)
    if path.suffix == ".toml":
        return tomllib.loads(text)
    rows = list(csv.reader(io.StringIO(text)))
    return [[_value(cell) for cell in row] for row in rows]


def _value(cell: str) -> Any:
    try:
        return float(cell)
    except ValueError:
        return cell


def _plain(value: Any, *folders: str) -> Any:
    """Data without the folder it was made in, and with nothing that JSON does not know."""
    if isinstance(value, Mapping):
        return {_plain(key, *folders): _plain(part, *folders) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part, *folders) for part in value]
    if isinstance(value, str):
        for folder in folders:
            value = value.replace(folder, "{tmp}")
        return value
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, bool | int | float) or value is None:
        return value
    return str(value)


def without_ignored(case: Case, value: Any, path: str = "") -> Any:
    """Output with a mark in place of every value that differs from run to run."""
    if path and any(fnmatchcase(path, pattern) for pattern in case.ignore):
        return IGNORED
    if isinstance(value, dict):
        return {key: without_ignored(case, part, _below(path, key)) for key, part in value.items()}
    if isinstance(value, list):
        return [without_ignored(case, part, _below(path, k)) for k, part in enumerate(value)]
    return value


def compare(case: Case, expected: Any, got: Any, renames: Renames) -> list[str]:
    """Every difference between expected and got, a line each; paths have the old names."""
    return list(_differences(case, expected, got, renames, "", shape_only=False))


def _differences(
    case: Case, expected: Any, got: Any, renames: Renames, path: str, *, shape_only: bool
) -> Iterator[str]:
    if expected == IGNORED or any(fnmatchcase(path, pattern) for pattern in case.ignore):
        return
    if renames.is_changed(path, case.name):
        return
    shape_only = shape_only or any(fnmatchcase(path, pattern) for pattern in case.structure)
    if isinstance(expected, dict) and isinstance(got, dict):
        named = {**renames.of("keys", case.name)}
        if path == "files":  # names of files are not keys
            named = {}
        today = {named.get(key, key): key for key in expected}
        for now, key in today.items():
            below = _below(path, key)
            if now not in got:
                if renames.is_changed(below, case.name):
                    continue
                yield f"{below}: expected key {now!r}, and it is missing"
            else:
                yield from _differences(
                    case, expected[key], got[now], renames, below, shape_only=shape_only
                )
        for extra in got.keys() - today.keys() - renames.keys_added(path):
            yield f"{_below(path, extra)}: an additional key, got {_short(got[extra])}"
    elif isinstance(expected, list) and isinstance(got, list):
        if len(expected) != len(got) and not shape_only:
            yield f"{path}: expected {len(expected)} entries, got {len(got)}"
        if shape_only and bool(expected) != bool(got):
            yield f"{path}: expected {_short(expected)}, got {_short(got)}"
        if any(fnmatchcase(path, pattern) for pattern in case.unordered):
            expected, got = (sorted(rows, key=lambda row: row["name"]) for rows in (expected, got))
        for k, (was, now) in enumerate(zip(expected, got, strict=False)):
            yield from _differences(case, was, now, renames, _below(path, k), shape_only=shape_only)
    elif not _alike(case, expected, got, renames, path, shape_only=shape_only):
        yield f"{path}: expected {_short(expected)}, got {_short(got)}"


def _alike(
    case: Case, expected: Any, got: Any, renames: Renames, path: str, *, shape_only: bool
) -> bool:
    """Whether two values that hold no others are the same."""
    if isinstance(expected, bool) or isinstance(got, bool):
        return type(expected) is type(got) and (shape_only or expected == got)
    numbers = isinstance(expected, int | float) and isinstance(got, int | float)
    if numbers:
        return shape_only or _close(case, expected, got, path)
    if isinstance(expected, str) and isinstance(got, str):
        if shape_only or renames.is_text(path, case.name):
            return bool(got) == bool(expected)
        said = renames.sentence(expected, case.name)
        return said == got or _same_but_for_digits(said, got)
    if shape_only and (expected is None or got is None):
        return isinstance(expected, int | float | None) and isinstance(got, int | float | None)
    return type(expected) is type(got) and (shape_only or expected == got)


def _close(case: Case, expected: float, got: float, path: str) -> bool:
    relative, absolute = TOLERANCES[case.tolerance]
    for pattern, value in case.loose.items():
        if fnmatchcase(path, pattern):
            relative, absolute = value, max(absolute, 1e-3 * value)
    return math.isclose(expected, got, rel_tol=relative, abs_tol=absolute)


def _same_but_for_digits(expected: str, got: str) -> bool:
    """Whether sentences differ in numbers only, and in these by no more than a unit at the end."""
    if _NUMBER.sub("#", expected) != _NUMBER.sub("#", got):
        return False
    pairs = zip(_NUMBER.findall(expected), _NUMBER.findall(got), strict=True)
    return all(_nearly(was, now) for was, now in pairs)


def _nearly(was: str, now: str) -> bool:
    if "." not in was:
        return was == now
    places = len(was.partition(".")[2].partition("e")[0])
    scale = 10.0 ** int(was.partition("e")[2] or 0)
    return abs(float(was) - float(now)) <= 1.01 * scale * 10.0**-places


def _below(path: str, key: Any) -> str:
    return f"{path}.{key}" if path else str(key)


def _short(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 120 else text[:117] + "…"
