"""`shape`: how the package is built, counted in its source, without running any of it.

A *room* is a package in `src/sim2real`. A *deep import* reaches into another room past its front
door: by `import`, `from … import`, a module's name in a string, a module taken from a room as an
object, or a front door that hands one out.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from benchmarks.benchmark import Options, Result, side_by_side
from benchmarks.machine import ROOT

_NO_FRONT_DOOR = ("cli", "reality")
"""Rooms that nobody imports from."""
_NOT_PRODUCT = "testing"
"""The room whose lines do not count: it is for people's own tests."""
_TEMPLATES = ("*.html", "*.j2", "*.jinja", "*.jinja2")
_DOTTED = re.compile(r"\.*[A-Za-z_]\w*(\.\w+)*(:\w+(\.\w+)*)?")
_ANY = re.compile(r"\bAny\b")
_LONG = 60
"""Lines of a function that is long."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """One file of the package."""

    package: Path
    """Folder of the package."""
    path: Path
    """The file, from that folder."""

    @cached_property
    def text(self) -> str:
        """What is written in it."""
        return (self.package / self.path).read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        """It parsed."""
        return ast.parse(self.text)

    @property
    def room(self) -> str:
        """The room it is in; '' for a file beside the rooms."""
        return self.path.parts[0] if len(self.path.parts) > 1 else ""

    @property
    def front_door(self) -> bool:
        """Whether it is the first page of a room."""
        return len(self.path.parts) == 2 and self.path.name == "__init__.py"

    @property
    def inside(self) -> tuple[str, ...]:
        """The package that its relative imports begin from."""
        return (self.package.name, *self.path.parts[:-1])

    @property
    def lines(self) -> int:
        """Lines of it."""
        return self.text.count("\n")


@dataclass(frozen=True, kw_only=True)
class Package:
    """A package's sources, and what can be counted in them."""

    folder: Path
    sources: tuple[Source, ...]
    rooms: frozenset[str] = field(default_factory=frozenset)

    @classmethod
    def read(cls, folder: Path) -> Package:
        """All of a package's files."""
        paths = sorted(path.relative_to(folder) for path in folder.rglob("*.py"))
        rooms = {
            path.parts[0] for path in paths if len(path.parts) == 2 and path.stem == "__init__"
        }
        sources = tuple(Source(package=folder, path=path) for path in paths)
        return cls(folder=folder, sources=sources, rooms=frozenset(rooms))

    def is_module(self, dotted: tuple[str, ...]) -> bool:
        """Whether a name is that of a file or a folder of the package."""
        place = self.folder.joinpath(*dotted[1:])
        return place.with_suffix(".py").is_file() or place.is_dir()

    def deep(self, dotted: tuple[str, ...], room: str) -> bool:
        """Whether a module's name lies inside of another room than `room`."""
        return (
            len(dotted) > 2
            and dotted[0] == self.folder.name
            and dotted[1] in self.rooms
            and dotted[1] != room
        )

    def deep_imports(self) -> set[tuple[str, str]]:
        """(file, what it reaches for) of every deep import."""
        return {(str(s.path), name) for s in self.sources for name in _reached(self, s)}

    def class_names_reused(self) -> list[str]:
        """Names that more than one class has, private ones too."""
        nodes = (node for source in self.sources for node in ast.walk(source.tree))
        names = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))
        return sorted(name for name, count in names.items() if count > 1)

    def anys(self) -> int:
        """Uses of `Any` under whatever name, in annotations that are strings too."""
        return sum(_anys(source.tree) for source in self.sources)

    def type_ignores(self) -> int:
        """Places where types are not checked."""
        return sum(len(re.findall(r"(type|mypy): *ignore", s.text)) for s in self.sources)

    def functions(self) -> list[int]:
        """Lines of every function, those within others too."""
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
        nodes = (node for source in self.sources for node in ast.walk(source.tree))
        return [(n.end_lineno or n.lineno) - n.lineno + 1 for n in nodes if isinstance(n, kinds)]

    def front_doors(self) -> dict[str, Source]:
        """The first pages of rooms that others import from."""
        return {s.room: s for s in self.sources if s.front_door and s.room not in _NO_FRONT_DOOR}

    def lines(self) -> int:
        """Lines of the product: sources and templates."""
        sources = [s.lines for s in self.sources if s.room != _NOT_PRODUCT]
        templates = [
            path.read_text(encoding="utf-8").count("\n")
            for pattern in _TEMPLATES
            for path in self.folder.rglob(pattern)
        ]
        return sum(sources) + sum(templates)


def _reached(package: Package, source: Source) -> Iterator[str]:
    """Modules inside of other rooms that a file reaches for, by whatever means."""
    objects: dict[str, tuple[str, ...]] = {package.folder.name: (package.folder.name,)}
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    objects[alias.asname] = tuple(alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            base = _base(source, node)
            objects |= {a.asname or a.name: (*base, a.name) for a in node.names}
    for node in ast.walk(source.tree):
        for dotted in _names(package, source, node, objects):
            if package.deep(dotted, source.room):
                yield ".".join(dotted)
            elif source.front_door and package.deep(dotted, "") and _handed_out(node):
                yield f"{'.'.join(dotted)} as an object"


def _handed_out(node: ast.AST) -> bool:
    """Whether a front door takes a module of its own room as an object, for others to have."""
    named = isinstance(node, ast.Import) and any(alias.asname for alias in node.names)
    return named or isinstance(node, ast.ImportFrom)


def _names(
    package: Package, source: Source, node: ast.AST, objects: dict[str, tuple[str, ...]]
) -> Iterator[tuple[str, ...]]:
    """Names of modules that a node imports, spells out, or takes from a room."""
    if isinstance(node, ast.Import):
        yield from (tuple(alias.name.split(".")) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = _base(source, node)
        if not source.front_door or base[1:2] != (source.room,):
            yield base
        for alias in node.names:
            if package.is_module((*base, alias.name)):
                yield (*base, alias.name)
    elif isinstance(node, ast.Attribute):
        dotted = _chain(node, objects)
        if package.is_module(dotted):
            yield dotted
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield from _spelt(package, source, node.value)


def _base(source: Source, node: ast.ImportFrom) -> tuple[str, ...]:
    """The module that names are imported from."""
    start = source.inside[: len(source.inside) - node.level + 1] if node.level else ()
    return (*start, *(node.module.split(".") if node.module else ()))


def _chain(node: ast.Attribute, objects: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The dotted name of an attribute of what was imported; () of anything else."""
    parts: list[str] = []
    value: ast.expr = node
    while isinstance(value, ast.Attribute):
        parts.append(value.attr)
        value = value.value
    if not isinstance(value, ast.Name) or value.id not in objects:
        return ()
    return (*objects[value.id], *reversed(parts))


def _spelt(package: Package, source: Source, text: str) -> Iterator[tuple[str, ...]]:
    """A module's name in a string, whole, from a package, or from the place it is in."""
    if "." not in text or not _DOTTED.fullmatch(text):
        return
    name = text.split(":", maxsplit=1)[0]
    level = len(name) - len(name.lstrip("."))
    parts = tuple(name.lstrip(".").split("."))
    if level:
        starts = [source.inside[: len(source.inside) - level + 1], (package.folder.name,)]
        found = [(*start, *parts) for start in starts]
    else:
        found = [parts, (package.folder.name, *parts)]
    for dotted in found:
        for length in range(len(dotted), 2, -1):  # what follows may be a name in the module
            if package.is_module(dotted[:length]):
                yield dotted[:length]
                return


def _anys(tree: ast.Module) -> int:
    aliases = {"Any"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in ("typing", "typing_extensions"):
            aliases |= {a.asname for a in node.names if a.name == "Any" and a.asname}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and _is_any(node.value, aliases):
            aliases |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    spelt = sum(len(_ANY.findall(text)) for text in _string_annotations(tree))
    return spelt + sum(_is_any(node, aliases) for node in ast.walk(tree))


def _is_any(node: ast.AST, aliases: set[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in aliases and isinstance(node.ctx, ast.Load)
    return isinstance(node, ast.Attribute) and node.attr == "Any"


def _string_annotations(tree: ast.Module) -> Iterator[str]:
    """Texts in annotations, and what a cast is to."""
    for node in ast.walk(tree):
        found: list[ast.expr | None] = []
        if isinstance(node, ast.AnnAssign | ast.arg):
            found.append(node.annotation)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.append(node.returns)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found += node.args[:1] if node.func.id == "cast" else []
        for annotation in found:
            for part in ast.walk(annotation) if annotation else ():
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.value


def public_names(door: Source) -> int:
    """Names that a front door exports: its `__all__`, or else all it has without an underscore."""
    listed: ast.expr | None = None
    for node in door.tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AnnAssign | ast.AugAssign) else targets
        if any(isinstance(t, ast.Name) and t.id == "__all__" for t in targets):
            listed = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
    names = listed.elts if isinstance(listed, ast.List | ast.Tuple) else []
    if names and all(isinstance(part, ast.Constant) for part in names):
        return len(names)
    return len({name for name in _bound(door.tree) if not name.startswith("_")})


def _bound(tree: ast.Module) -> Iterator[str]:
    """Names that a module binds, and those it would load when asked."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module != "__future__":
            yield from (alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.Dict):  # where a lazy front door finds its names
            keys = [key.value for key in node.keys if isinstance(key, ast.Constant)]
            yield from (key for key in keys if isinstance(key, str) and key.isidentifier())


def _front_doors_with_doctest(package: Package) -> int:
    doors = package.front_doors().values()
    return sum(">>>" in (ast.get_docstring(door.tree) or "") for door in doors)


def measure(folder: Path) -> list[Result]:
    """Every figure of a package."""
    package = Package.read(folder)
    deep, reused = sorted(package.deep_imports()), package.class_names_reused()
    lengths, doors = package.functions(), package.front_doors()
    longest = max(package.sources, key=lambda source: source.lines)
    long = sum(length > _LONG for length in lengths)
    widest = max(doors.values(), key=public_names)
    undocumented = sorted(
        room for room, door in doors.items() if ">>>" not in (ast.get_docstring(door.tree) or "")
    )

    def result(name: str, value: float, unit: str, target: str, note: str = "") -> Result:
        return Result(name=f"shape.{name}", value=value, unit=unit, target=target, note=note)

    return [
        result("deep_imports", len(deep), "imports", "<= 0", _first(f"{a}: {b}" for a, b in deep)),
        result("class_names_reused", len(reused), "names", "<= 3", _first(iter(reused))),
        result("any", package.anys(), "uses", "<= 150"),
        result("type_ignores", package.type_ignores(), "places", "<= 9"),
        result("longest_file", longest.lines, "lines", "<= 500", str(longest.path)),
        result(
            "functions_over_60_lines", long / max(1, len(lengths)), "share", "<= 0.01",
            f"{long} of {len(lengths)}",
        ),
        result(
            "front_doors_with_doctest", _front_doors_with_doctest(package), "rooms",
            f">= {len(doors)}", _first(f"without: {room}" for room in undocumented),
        ),
        result("public_names_max", public_names(widest), "names", "<= 25", widest.room),
        result("lines_src", package.lines(), "lines", "<= 45500"),
    ]  # fmt: skip


def _first(names: Iterator[str], most: int = 3) -> str:
    """The first few of some names, and how many there are."""
    found = list(names)
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return ", ".join(found[:most]) + more


def _run(shard: str, options: Options) -> list[Result]:
    return measure(ROOT / "src" / "sim2real")


MEASUREMENT = side_by_side(lambda options: ("package",), _run)
