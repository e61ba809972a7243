"""One call of a function with plain data: what it is, and the key that its result is kept under."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from sim2real import __version__
from sim2real.errors import Sim2RealError, brief, one_line
from sim2real.plain import plain

_SHORT = 12
"""Digits of a key in the name of a shard that has no other."""


@dataclass(frozen=True, kw_only=True)
class Shard:
    """A call that knows nothing of others: what it gives depends only on what is written here."""

    work: str
    """The function, as `package.module:function`. Its result must be plain data."""
    args: tuple[object, ...] = ()
    """Arguments by place: numbers, texts, booleans, None, and lists and tables of these."""
    inputs: Mapping[str, object] = field(default_factory=dict)
    """Arguments by name, likewise."""
    files: Mapping[str, Path] = field(default_factory=dict)
    """Arguments that are files or folders. They are known by their content, travel through the
    store, and the function gets the path of a copy that it must not change."""
    version: str = "1"
    """Version of the algorithm: another one has other results."""
    name: str = ""
    """What people call it; no part of its key."""

    def __post_init__(self) -> None:
        module, _, function = self.work.partition(":")
        if not all(part.isidentifier() for part in (*module.split("."), *function.split("."))):
            raise Sim2RealError(f"{self.work!r} is no function: write it as package.module:name")
        try:
            canonical(self.given)
        except (TypeError, ValueError, RecursionError) as error:
            raise Sim2RealError(
                f"the arguments of {self.name or self.work} are not plain data: {one_line(error)}"
            ) from None

    @classmethod
    def of(cls, function: Callable[..., object], **parts: Any) -> Shard:  # fields of a shard
        """A call of a function, which must stand in a module that workers can import."""
        return cls(work=place_of(function), **parts)

    @cached_property
    def given(self) -> dict[str, Any]:
        """The arguments as JSON has them, so that they are the same wherever it is done."""
        content = {"args": self.args, "inputs": dict(self.inputs)}
        found: dict[str, Any] = json.loads(json.dumps(content, allow_nan=False, default=_plain))
        return found

    @cached_property
    def digests(self) -> dict[str, str]:
        """Hash of the content of each of its files and folders."""
        return {name: digest_of(Path(path)) for name, path in self.files.items()}

    @cached_property
    def key(self) -> str:
        """Hash of everything that decides the result."""
        content = {
            "work": self.work,
            **self.given,
            "files": self.digests,
            "version": self.version,
            "software": __version__,
        }
        return hashlib.sha256(canonical(content)).hexdigest()

    @property
    def label(self) -> str:
        """What messages call it: its name, or its function and the beginning of its key."""
        return self.name or f"{self.work.partition(':')[2]}-{self.key[:_SHORT]}"


def _plain(value: object) -> object:
    found = plain(value)
    if found is value:
        raise TypeError(f"{brief(value)} is a {type(value).__name__}")
    return found


def canonical(data: object) -> bytes:
    """Plain data as JSON of one form: equal data are equal bytes."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode()


def place_of(function: Callable[..., object]) -> str:
    """A function as `module:name`; one that workers cannot import is a `Sim2RealError`."""
    module, name = function.__module__, function.__qualname__
    if module == "__main__":
        script = sys.modules["__main__"]
        spec, file = getattr(script, "__spec__", None), getattr(script, "__file__", None)
        module = spec.name if spec else Path(file).stem if file else ""
    if not module or not all(part.isidentifier() for part in name.split(".")):
        raise Sim2RealError(f"{name} cannot be found by workers: define it in a file, by its name")
    return f"{module}:{name}"


def function_at(place: str) -> Callable[..., object]:
    """The function that `place_of` names."""
    module, _, path = place.partition(":")
    try:
        found: Any = import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise Sim2RealError(f"there is no {place}: {one_line(error)}") from None
    function: Callable[..., object] = found
    return function


def files_in(path: Path) -> dict[str, Path]:
    """Files by their names from a folder, sorted; of a file, the file alone."""
    if path.is_file():
        return {path.name: path}
    if not path.is_dir():
        raise Sim2RealError(f"no such file or folder: {path}")
    found = [one for one in path.rglob("*") if one.is_file()]
    return {one.relative_to(path).as_posix(): one for one in sorted(found)}


def digest_of(path: Path) -> str:
    """Hash of the names and the content of a folder's files, or of one file."""
    digest = hashlib.sha256(b"folder" if path.is_dir() else b"file")
    for name, file in files_in(path).items():
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        digest.update(canonical([name, content]))
    return digest.hexdigest()
