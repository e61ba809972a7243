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
_GUESSES = ("isinstance", "issubclass", "getattr", "hasattr")
_SEAM = re.compile(r"_*(robot|policy|worlds|engine|executor)$")
"""Names of variables and attributes that hold what somebody else may have made."""
_SEAM_CLASS = re.compile(r"(Robot|StandIn|Policy|Bundle|Worlds|Engine|Executor)$")
"""Names of the classes that stand behind them."""
_OPENERS = (
    "evaluation/opened.py", "policy/bundle.py",  # policies, and bundles among them
    "robot/connect.py", "robot/lerobot.py",  # robots, and LeRobot's among them
    "worlds/registry.py", "testing/engine_promises.py",  # engines, and what tries any engine
    "scale/named_executor.py",
)  # fmt: skip
"""Files that may look at what they were given: they open it."""
_SCHEMES = ("unit:", "lerobot:", "tcp://")
"""What begins a robot's address."""
_TESTS_OF_TEXT = ("startswith", "endswith", "removeprefix", "partition", "split")
_SERIES = ("readings", "command", "commands")
"""Fields that, beside `times`, make a class hold the series of a recording."""
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

    def guesses(self) -> list[str]:
        """Places where a seam is guessed at instead of asked what it declares.

        They are calls of `isinstance`, `issubclass`, `getattr` and `hasattr` on a variable or an
        attribute that is named after a seam, or with a class that stands behind one; and tests of a
        text against the beginning of a robot's address, or the name of a task. A file that opens
        such a thing may do so, and `tasks/` and `reality/` may know tasks by name.
        """
        tasks = _task_names(self.sources)
        found = []
        for source in self.sources:
            opens = source.path.as_posix() in _OPENERS
            named = () if source.room in ("tasks", "reality") else tasks
            texts = (*(() if opens or source.room == "reality" else _SCHEMES), *named)
            for node in ast.walk(source.tree):
                if (not opens and _guesses(node)) or _tests_text(node, texts):
                    found.append(f"{source.path}:{getattr(node, 'lineno', 0)}")
        return sorted(found)

    def conversions(self) -> list[str]:
        """Functions `to_dict` and `from_dict` that somebody wrote by hand; what a protocol asks for
        is not written, it is declared."""
        return sorted(
            f"{source.path}:{node.lineno}"
            for source in self.sources
            for kind in ast.walk(source.tree)
            if isinstance(kind, ast.ClassDef)
            and "Protocol" not in [_last_name(base) for base in kind.bases]
            for node in kind.body
            if isinstance(node, ast.FunctionDef) and node.name in ("to_dict", "from_dict")
        )

    def log_types(self) -> list[str]:
        """Classes that hold the time series of a recording between the lake and its residuals.

        They are the dataclasses, outside of `data/` (what is stored) and `reality/`, with a field
        `times` and a field for readings or commands.
        """
        return sorted(
            node.name
            for source in self.sources
            if source.room not in ("data", "reality")
            for node in ast.walk(source.tree)
            if isinstance(node, ast.ClassDef) and _holds_series(node)
        )

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


def _guesses(node: ast.AST) -> bool:
    """Whether a node guesses what stands behind a seam."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args):
        return False
    if node.func.id not in _GUESSES:
        return False
    kinds = node.args[1:] if node.func.id in ("isinstance", "issubclass") else []
    named = [_last_name(part) for kind in kinds for part in ast.walk(kind)]
    return bool(_SEAM.search(_last_name(node.args[0]))) or any(map(_SEAM_CLASS.search, named))


def _last_name(node: ast.AST) -> str:
    """The last part of a dotted name; '' of anything else."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _tests_text(node: ast.AST, texts: tuple[str, ...]) -> bool:
    """Whether a node decides something by one of some texts."""
    parts: list[ast.expr | None] = []
    if isinstance(node, ast.Compare):
        parts = [node.left, *node.comparators]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        parts = list(node.args) if node.func.attr in _TESTS_OF_TEXT else []
    elif isinstance(node, ast.MatchValue):
        parts = [node.value]
    elif isinstance(node, ast.Dict):
        parts = list(node.keys)
    constants = [part for top in parts if top is not None for part in ast.walk(top)]
    return any(isinstance(part, ast.Constant) and part.value in texts for part in constants)


def _task_names(sources: tuple[Source, ...]) -> tuple[str, ...]:
    """Names of the built-in tasks: the class attribute `name` of what lies in `tasks/`."""
    return tuple(
        node.value.value
        for source in sources
        if source.room == "tasks"
        for kind in ast.walk(source.tree)
        if isinstance(kind, ast.ClassDef)
        for node in kind.body
        if isinstance(node, ast.Assign)
        and [_last_name(target) for target in node.targets] == ["name"]
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _holds_series(node: ast.ClassDef) -> bool:
    called = [part.func if isinstance(part, ast.Call) else part for part in node.decorator_list]
    if "dataclass" not in map(_last_name, called):
        return False
    names = {_last_name(part.target) for part in node.body if isinstance(part, ast.AnnAssign)}
    return "times" in names and bool(names & set(_SERIES))


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
    guesses, conversions, log_types = package.guesses(), package.conversions(), package.log_types()
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
        result("isinstance_on_seams", len(guesses), "places", "<= 0", _first(iter(guesses))),
        result("to_dict", len(conversions), "functions", "<= 3", _first(iter(conversions))),
        result("log_types", len(log_types), "classes", "<= 1", _first(iter(log_types))),
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
