"""Results: what analyses find, as frozen values that are kept in files.

A result holds every number that its page shows. `save` writes it to one JSON file, and `load` gives
an equal value back, weeks later and where neither MuJoCo nor torch is installed:

>>> import tempfile
>>> from dataclasses import dataclass
>>> @dataclass(frozen=True, kw_only=True, eq=False)
... class Wobble(Result, kind="wobble"):
...     hz: float
>>> found = Wobble(hz=float("inf"))
>>> with tempfile.TemporaryDirectory() as folder:
...     path = found.save(f"{folder}/wobble.json")
...     Wobble.load(path) == found
True

The file has what `to_dict` says, for people and other programs, and beside it the kind, the schema
and the `fields`, from which it is read. A schema grows with every change after which an older
version could not read the file.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from sim2real.arrays import Array
from sim2real.errors import Sim2RealError, brief, explaining, table_at
from sim2real.files import read_json, write_json
from sim2real.plain import PlainData, is_tagged, of_plain

_LISTED = 32
"""Most numbers of an array that are written as a list."""
_ARRAY = ("dtype", "shape", "values")
_NUMBERS = ("nan", "inf", "-inf")


class Result(PlainData):
    """What an analysis found.

    A subclass is a dataclass with `eq=False`: results are equal if all of their fields are, arrays
    and nan included. A field with `compare=False` belongs to the work and not to the result: it has
    a default, and is not kept.
    """

    result_kind: ClassVar[str] = ""
    """What it is called in files, as 'gap'."""
    result_schema: ClassVar[int] = 1
    result_file: ClassVar[str] = ""
    """Its name in a folder, by default KIND.json."""

    def __init_subclass__(
        cls, *, kind: str = "", version: int = 1, file: str = "", **more: Any
    ) -> None:
        super().__init_subclass__(**more)
        cls.result_kind, cls.result_schema = kind or cls.result_kind, version
        cls.result_file = file or f"{cls.result_kind}.json"

    @property
    def id(self) -> str:
        """Hash of everything in it."""
        text = json.dumps(self.stored(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def stored(self) -> dict[str, object]:
        """The content of its file without the words for people: kind, schema and fields."""
        return {
            "kind": self.result_kind,
            "schema": self.result_schema,
            "fields": _whole(self),
        }

    def save(self, path: Path | str) -> Path:
        """Write it to a file `….json`, or into a folder, with what belongs to it; the file."""
        path = Path(path)
        if path.suffix != ".json":
            self.save_beside(path)
            path /= self.result_file
        write_json(path, {**self.to_dict(), **self.stored()})
        return path

    def save_beside(self, folder: Path) -> None:
        """Write the files that belong to it, if there are any, into its folder."""

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """The result in a file or folder; another kind or a newer schema is a `Sim2RealError`."""
        path = Path(path)
        path = path / cls.result_file if path.is_dir() else path
        return cls.restored(read_json(path), str(path))

    @classmethod
    def restored(cls, data: object, where: str) -> Self:
        """The result that `stored` gave."""
        kind, found = header(data, where)
        if kind != cls.result_kind:
            raise Sim2RealError(f"{where} is a result of kind {kind!r}, not {cls.result_kind!r}")
        schema = found["schema"]
        if not isinstance(schema, int) or schema > cls.result_schema:
            raise Sim2RealError(
                f"{where} is a {kind} of schema {brief(schema)}, and this version reads up to"
                f" {cls.result_schema}: update sim2real"
            )
        return of_plain(cls, _opened(found["fields"], where), where, exact=True)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and bool(_whole(self) == _whole(other))

    def __hash__(self) -> int:
        return hash((self.result_kind, self.id))


def header(data: object, where: str) -> tuple[str, Mapping[str, Any]]:
    """(kind, content) of the file of a result; anything else is a `Sim2RealError`."""
    found = table_at(data, where)
    missing = [name for name in ("kind", "schema", "fields") if name not in found]
    if missing:
        raise Sim2RealError(
            f"{where} is not the result of an analysis: it has no {missing[0]!r}; make it again"
            " with this version of sim2real"
        )
    return str(found["kind"]), found


def _whole(value: Any) -> Any:
    """Plain data from which a value is restored exactly."""
    if is_dataclass(value) and not isinstance(value, type):
        kind = {"kind": getattr(value, "kind", "")} if is_tagged(type(value)) else {}
        kept = [part.name for part in fields(value) if part.init and part.compare]
        return kind | {name: _whole(getattr(value, name)) for name in kept}
    if isinstance(value, Mapping):
        return {str(key): _whole(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_whole(part) for part in value]
    if isinstance(value, Enum | np.generic):
        return _whole(value.value if isinstance(value, Enum) else value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": str(value)}
    if isinstance(value, np.ndarray):
        return _listed(value)
    return str(value) if isinstance(value, Path) else value


def _listed(array: Array) -> dict[str, object]:
    """An array: few numbers as a list, many or odd ones as their bytes."""
    kind = array.dtype.str
    plain = array.size <= _LISTED and np.isfinite(array).all()
    values: object = array.ravel().tolist()
    if not plain:
        values = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return dict(zip(_ARRAY, (kind, list(array.shape), values), strict=True))


def _opened(data: Any, where: str) -> Any:
    """Stored data with their arrays and odd numbers."""
    if isinstance(data, list):
        return [_opened(part, where) for part in data]
    if not isinstance(data, dict):
        return data
    if data.keys() == {*_ARRAY}:
        with explaining(f"{where}: an array is damaged", ValueError, TypeError):
            kind, values = np.dtype(data["dtype"]), data["values"]
            if kind.kind not in "biuf":
                raise ValueError(f"it is of type {kind}")
            flat = (
                np.frombuffer(base64.b64decode(values, validate=True), kind).copy()
                if isinstance(values, str)
                else np.array(values, kind)
            )
            return flat.reshape(data["shape"])
    if data.keys() == {"number"} and data["number"] in _NUMBERS:
        return float(data["number"])
    return {name: _opened(part, where) for name, part in data.items()}
