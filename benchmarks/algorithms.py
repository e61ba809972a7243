"""Have the algorithms of the loop changed since their versions were last raised?

`algorithms.toml`, beside the table of the algorithms, holds a hash of the syntax tree of each of
their modules, without comments, docstrings and the words of errors. A change of a tree is either
another version of the algorithms it is part of, or recorded with the reason why their results are
the same.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import tomli_w

import sim2real
from benchmarks.benchmark import report
from sim2real.errors import Sim2RealError
from sim2real.files import read_toml, write_text
from sim2real.loop import ALGORITHMS, Algorithm
from sim2real.plain import of_plain, plain

PACKAGE = Path(sim2real.__file__).parent
FILE = PACKAGE / "loop" / "algorithms.toml"
_TABLE = "src/sim2real/loop/algorithms.py"
_COMMAND = "python -m benchmarks algorithms"
_TAKEN_ALONE = "loop"
"""Room whose imports are not followed: they lead to its bookkeeping."""
_LONG = 16
"""Digits of a hash that are kept."""


@dataclass(frozen=True, kw_only=True)
class SameResult:
    """A change of modules that changed no result."""

    reason: str
    modules: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class RecordedAlgorithm:
    """An algorithm as it was when its modules were hashed."""

    version: int
    modules: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class RecordedCode:
    """What `algorithms.toml` says."""

    algorithms: Mapping[str, RecordedAlgorithm] = field(default_factory=dict)
    modules: Mapping[str, str] = field(default_factory=dict)
    """Hash of each module. One to a line, so that changes made side by side can be merged."""
    same: tuple[SameResult, ...] = ()

    @classmethod
    def read(cls, file: Path = FILE) -> RecordedCode:
        """What is recorded; nothing where there is no file yet."""
        return of_plain(cls, read_toml(file), str(file)) if file.is_file() else cls()

    @classmethod
    def of(
        cls, algorithms: Sequence[Algorithm] = ALGORITHMS, package: Path = PACKAGE
    ) -> RecordedCode:
        """The code as it is now."""
        parts = {one.name: modules_of(one, package) for one in algorithms}
        return cls(
            algorithms={
                one.name: RecordedAlgorithm(version=one.version, modules=parts[one.name])
                for one in algorithms
            },
            modules={
                module: tree_hash(_path(module, package).read_text(encoding="utf-8"))
                for module in sorted({module for part in parts.values() for module in part})
            },
        )

    def changed_since(self, before: RecordedCode, algorithm: str) -> list[str]:
        """Modules of an algorithm that came, went or changed."""
        known = before.algorithms.get(algorithm)
        mine = set(self.algorithms[algorithm].modules)
        old = set(known.modules) if known else set()
        return sorted(
            module
            for module in mine | old
            if (module in mine) != (module in old)
            or self.modules.get(module) != before.modules.get(module)
        )


def record_algorithms(same: str = "", *, file: Path = FILE) -> int:
    """Record the present code; 1, and nothing recorded, where a change is not explained.

    `same` is the reason why modules that changed give the results they gave.
    """
    before, now = RecordedCode.read(file), RecordedCode.of()
    wrong = unexplained(before, now)
    if same and not wrong:
        raise Sim2RealError("--same: no module changed without another version of its algorithm")
    if wrong and not same:
        for line in wrong:
            report(line)
        return 1
    entries = before.same
    if wrong:
        names = {name for name in now.algorithms if _kept_version(before, now, name)}
        changed = {module for name in names for module in now.changed_since(before, name)}
        entries = (*entries, SameResult(reason=same, modules=tuple(sorted(changed))))
    told = {"algorithms": plain(now.algorithms), "modules": plain(now.modules)}
    text = tomli_w.dumps(told | ({"same": plain(entries)} if entries else {}))
    write_text(file, f"# Written by `{_COMMAND}`; see algorithms.py.\n\n{text}")
    report(f"recorded in {file.name}: {len(now.algorithms)} algorithms")
    return 0


def unexplained(before: RecordedCode, now: RecordedCode) -> list[str]:
    """A line for each algorithm whose modules changed and its version did not."""
    found = []
    for name in now.algorithms:
        changed = now.changed_since(before, name)
        if changed and _kept_version(before, now, name):
            found.append(
                f"{name}: {', '.join(changed)} changed. If results may differ, raise its version in"
                f" {_TABLE} and run `{_COMMAND}`; if not, run `{_COMMAND} --same"
                ' "why they are the same"`'
            )
    return found


def unrecorded(before: RecordedCode, now: RecordedCode) -> list[str]:
    """Algorithms with a raised version, or that came or went, which `record_algorithms` records."""
    every = now.algorithms.keys() | before.algorithms.keys()
    return sorted(name for name in every if not _kept_version(before, now, name))


def _kept_version(before: RecordedCode, now: RecordedCode, name: str) -> bool:
    both = name in before.algorithms and name in now.algorithms
    return both and before.algorithms[name].version == now.algorithms[name].version


def modules_of(algorithm: Algorithm, package: Path = PACKAGE) -> tuple[str, ...]:
    """Modules that an algorithm consists of; a pattern that matches none is a `Sim2RealError`."""
    every = [
        ".".join(path.relative_to(package).with_suffix("").parts)
        for path in sorted(package.rglob("*.py"))
        if path.name != "__init__.py"
    ]
    found: set[str] = set()
    for pattern in algorithm.modules:
        matching = [module for module in every if fnmatchcase(module, pattern.replace("/", "."))]
        if not matching:
            raise Sim2RealError(f"{algorithm.name}: no module is called {pattern}")
        for module in matching:
            _follow(module, package, found)
    return tuple(sorted(found))


def _follow(module: str, package: Path, found: set[str]) -> None:
    """Add a module and all that it imports from its own room."""
    if module in found:
        return
    found.add(module)
    room = module.partition(".")[0]
    if room != _TAKEN_ALONE:
        for other in _imported(_path(module, package), package):
            if other.partition(".")[0] == room:
                _follow(other, package, found)


def _imported(path: Path, package: Path) -> Iterator[str]:
    """Modules of the package that a file imports, as `learn.policy`; not for type checking only."""
    for module, names in _imports(path.read_text(encoding="utf-8"), behind_the_door=False):
        inside, _, place = module.partition(".")
        for name in names if inside == package.name and place else ():
            yield from _home(place, name, package)


def _home(place: str, name: str, package: Path) -> Iterator[str]:
    """The module of a name that is imported from a module, or from the front door of a folder."""
    if _path(place, package).is_file():
        yield place
    elif _path(f"{place}.{name}", package).is_file():
        yield f"{place}.{name}"
    else:
        door = package.joinpath(*place.split("."), "__init__.py").read_text(encoding="utf-8")
        for module, names in _imports(door, behind_the_door=True):
            inside, _, behind = module.partition(".")
            if name in names and inside == package.name:
                yield from _home(behind, name, package)


@cache
def _imports(source: str, *, behind_the_door: bool) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """(module, names) of every `from … import` of a file; those for type checking only are how a
    front door says where its names are, and elsewhere no imports."""
    tree = _parsed(source)
    typing = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for line in node.body
    }
    return tuple(
        (node.module, tuple(alias.name for alias in node.names))
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
        if behind_the_door or node not in typing
    )


@cache
def _parsed(source: str) -> ast.Module:
    return ast.parse(source)


def _path(module: str, package: Path) -> Path:
    return package.joinpath(*module.split(".")).with_suffix(".py")


def tree_hash(source: str) -> str:
    """Hash of what a file does: its syntax without comments, docstrings and the words of errors."""
    return hashlib.sha256(_told(_parsed(source)).encode()).hexdigest()[:_LONG]


def _told(node: object) -> str:
    """A part of a syntax tree, the same in every version of Python: what is empty is left out."""
    if isinstance(node, list):
        return f"[{', '.join(_told(part) for part in node if not _says_only(part))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        return f"Raise({_told(node.exc.func)})"
    parts = [
        f"{name}={_told(value)}"
        for name, value in ast.iter_fields(node)
        if value is not None and value != []
    ]
    return f"{type(node).__name__}({', '.join(parts)})"


def _says_only(node: object) -> bool:
    """Whether a statement is a docstring, or a text under a field."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
