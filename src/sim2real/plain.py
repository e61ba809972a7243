"""Values as plain data, as JSON and TOML have it, and back.

`plain` turns a value into plain data, and `of_plain` turns plain data into a value. A class that
declares its fields needs no code to be written or read:

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True, kw_only=True)
... class Spring(PlainData, also=("period_s",)):
...     stiffness: Positive
...     ends: tuple[float, float] = (0.0, 1.0)
...
...     @property
...     def period_s(self) -> float:
...         return self.stiffness**-0.5
>>> Spring(stiffness=4.0).to_dict()
{'stiffness': 4.0, 'ends': [0.0, 1.0], 'period_s': 0.5}
>>> of_plain(Spring, {"stiffness": 4, "ends": [0, 2]})
Spring(stiffness=4.0, ends=(0.0, 2.0))
>>> of_plain(Spring, {"stifness": 4}, "the spring")
Traceback (most recent call last):
sim2real.errors.Sim2RealError: the spring has no 'stifness'; did you mean 'stiffness'?
"""

from __future__ import annotations

import math
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from datetime import date
from enum import Enum
from functools import cache
from pathlib import Path
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    Self,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from sim2real.errors import Sim2RealError, brief, nearest, number_at, table_at

T = TypeVar("T")


@dataclass(frozen=True)
class Least:
    """A mark of a number that must not be smaller; with `above` it must be larger."""

    number: float
    above: bool = False

    def holds(self, value: float) -> bool:
        """Whether a value is not too small."""
        return value > self.number if self.above else value >= self.number


@dataclass(frozen=True)
class NullIs:
    """A mark of a number that may be infinite: JSON has null for it."""

    number: float


@dataclass(frozen=True)
class WrittenAs:
    """A mark of a field that has another name in files."""

    name: str


@dataclass(frozen=True)
class Alone:
    """A mark of a list whose only entry may be given without the list."""


NotNegative = Annotated[float, Least(0)]
Positive = Annotated[float, Least(0, above=True)]
Count = Annotated[int, Least(0)]
AtLeastOne = Annotated[int, Least(1)]
Low = Annotated[float, NullIs(-math.inf)]
High = Annotated[float, NullIs(math.inf)]


class PlainData:
    """A dataclass that converts to plain data and back.

    `also` names properties, and methods without arguments, that are written beside the fields;
    `without` names fields that are not written. A `lenient` class ignores names that it does not
    know, as in files of other programs. A class variable `kind`, '' in a base class, is written
    too: it says which subclass the data describe.
    """

    _also: ClassVar[tuple[str, ...]] = ()
    _without: ClassVar[tuple[str, ...]] = ()
    _lenient: ClassVar[bool] = False

    def __init_subclass__(
        cls, *, also: Sequence[str] = (), without: Sequence[str] = (), lenient: bool = False
    ) -> None:
        super().__init_subclass__()
        cls._lenient = lenient
        cls._also = (*cls._also, *also)
        cls._without = (*cls._without, *without)

    def to_dict(self) -> dict[str, object]:
        """Plain data for JSON."""
        return _told(self)

    @classmethod
    def from_dict(cls, data: object, where: str = "") -> Self:
        """The value that plain data describe; `where` is what errors call them.

        A name that is no field, a missing one, or a value of another type is a `Sim2RealError`.
        """
        return cast(Self, _made(cls, data, where or cls.__name__.lower()))


def plain(value: Any) -> Any:
    """A value as dictionaries, lists, texts, numbers, booleans and None.

    Numbers that JSON cannot hold become None. A value of an unknown type is returned unchanged.
    """
    if is_dataclass(value) and not isinstance(value, type):
        return value.to_dict() if hasattr(value, "to_dict") else _told(value)
    if isinstance(value, Mapping):
        return {plain(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Path):
        return str(value)
    return plain(value.tolist()) if hasattr(value, "tolist") else value  # of NumPy, or a tensor


def of_plain(kind: type[T], data: object, where: str = "") -> T:
    """The dataclass that `data` describe; see `PlainData.from_dict`.

    Its fields are numbers, texts, booleans, words, lists, tables of these, or dataclasses.
    """
    return cast(T, _value(kind, data, where or kind.__name__))


def _told(value: Any) -> dict[str, object]:
    hidden = getattr(value, "_without", ())
    found = {
        part.name: plain(getattr(value, part.name))
        for part in fields(value)
        if part.name not in hidden
    }
    if _tagged(type(value)):
        found = {"kind": value.kind} | found
    for name in getattr(value, "_also", ()):
        more = getattr(value, name)
        found[name] = plain(more() if callable(more) else more)
    return found


def _value(kind: object, data: object, where: str) -> object:
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _marked(parts[0], parts[1:], data, where)
    if origin in (Union, types.UnionType):
        return _one_of(parts, data, where)
    if origin is Literal:
        return _word(parts, data, where)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(_word([one.value for one in kind], data, where))
    if isinstance(kind, type) and issubclass(kind, PlainData):
        return kind.from_dict(data, where)  # it may have its own
    if isinstance(kind, type) and is_dataclass(kind):
        return _made(kind, data, where)
    if origin in (tuple, list):
        return _row(origin, parts, data, where)
    if getattr(origin, "__module__", "") == "numpy":
        return _array(data, where)
    if origin in (dict, Mapping):
        return {
            str(name): _value(parts[1], part, f"{where}: {name!r}")
            for name, part in table_at(data, where).items()
        }
    return _single(kind, data, where)


_SINGLE: dict[object, tuple[type, str]] = {
    str: (str, "text"), Path: (str, "text"), bool: (bool, "true or false"),
    int: (int, "a whole number"),
}  # fmt: skip


def _single(kind: object, data: object, where: str) -> object:
    """A number, a text or a boolean; data of any other type are returned unchanged."""
    if kind is float:
        return number_at(data, where)
    if kind is str and isinstance(data, date):  # TOML has a type for it
        return data.isoformat()
    wanted, name = _SINGLE.get(kind, (object, ""))
    if not isinstance(data, wanted) or (kind is int and isinstance(data, bool)):
        raise Sim2RealError(f"{where} must be {name}, not {brief(data)}")
    return Path(data) if kind is Path and isinstance(data, str) else data


def _marked(kind: object, marks: Sequence[object], data: object, where: str) -> object:
    for mark in marks:
        if isinstance(mark, NullIs) and (data is None or data == mark.number):
            return mark.number
        if isinstance(mark, Alone) and not isinstance(data, list):
            data = [data]
    found = _value(kind, data, where)
    for mark in marks:
        if isinstance(mark, Least) and not mark.holds(cast(float, found)):
            least = f"{'more than' if mark.above else 'at least'} {mark.number:g}"
            raise Sim2RealError(f"{where} must be {least}, not {brief(found)}")
    return found


def _one_of(parts: Sequence[object], data: object, where: str) -> object:
    """The value of the first type that fits; a table becomes a dataclass."""
    if data is None and types.NoneType in parts:
        return None
    tables = [part for part in parts if is_dataclass(part)]
    others = [part for part in parts if part is not types.NoneType and part not in tables]
    chosen = tables if tables and (isinstance(data, Mapping) or not others) else others
    for part in chosen[:-1]:
        try:
            return _value(part, data, where)
        except Sim2RealError:
            continue
    return _value(chosen[-1], data, where)


def _word(known: Sequence[object], data: object, where: str) -> object:
    for one in known:
        if one == data and isinstance(one, bool) == isinstance(data, bool):
            return one
    raise Sim2RealError(f"{where}: {brief(data)} is unknown{nearest(str(data), map(str, known))}")


def _row(origin: object, parts: Sequence[object], data: object, where: str) -> object:
    if not isinstance(data, list | tuple):
        raise Sim2RealError(f"{where} must be a list, not {brief(data)}")
    many = origin is list or (len(parts) == 2 and parts[1] is Ellipsis)
    each = [parts[0]] * len(data) if many else parts
    if len(each) != len(data):
        raise Sim2RealError(f"{where} must have {len(each)} values, not {len(data)}")
    rows = [
        _value(part, row, f"{where} {_called(row, number)}" if is_dataclass(part) else where)
        for number, (part, row) in enumerate(zip(each, data, strict=True), 1)
    ]
    return rows if origin is list else tuple(rows)


def _array(data: object, where: str) -> object:
    """Numbers in rows that are equally long; null is nan."""
    import numpy as np

    try:
        return np.array(data, dtype=float)
    except (TypeError, ValueError):
        raise Sim2RealError(f"{where} must be numbers, not {brief(data)}") from None


def _called(row: object, number: int) -> str:
    name = row.get("name") if isinstance(row, Mapping) else None
    return repr(name) if isinstance(name, str) else str(number)


def _made(kind: type, data: object, where: str) -> object:
    values = dict(table_at(data, where))
    if _tagged(kind):
        kind = _heir(kind, values.pop("kind", None), where)
    declared = _declared(kind)
    for name in getattr(kind, "_also", ()):
        values.pop(name, None)
    for name in values:
        if name not in declared and not getattr(kind, "_lenient", False):
            raise Sim2RealError(f"{where} has no {name!r}{nearest(str(name), declared)}")
    found = {}
    for name, (part, hint) in declared.items():
        if name in values:
            found[part.name] = _value(hint, values[name], f"{where}: {name}")
        elif part.default is MISSING and part.default_factory is MISSING:
            raise Sim2RealError(f"{where} needs {name!r}")
    try:
        return kind(**found)
    except Sim2RealError as error:
        said = str(error)
        raise Sim2RealError(said if said.startswith(where) else f"{where}: {said}") from None


@cache
def _declared(kind: type) -> dict[str, tuple[Field[object], object]]:
    """Fields of a dataclass and their types, by the names that files have for them."""
    hints = get_type_hints(kind, include_extras=True)
    found = {}
    for part in fields(kind):
        if part.init:
            marks = getattr(hints[part.name], "__metadata__", ())
            name = next((mark.name for mark in marks if isinstance(mark, WrittenAs)), part.name)
            found[name] = (part, hints[part.name])
    return found


def _tagged(kind: type) -> bool:
    """Whether a class variable `kind` tells the class from its siblings."""
    mine = isinstance(getattr(kind, "kind", None), str)
    return mine and "kind" not in {part.name for part in fields(kind)}


def _heir(kind: type, name: object, where: str) -> type:
    kinds: dict[object, type] = {heir.kind: heir for heir in _heirs(kind) if heir.kind}
    if name is None and kind in kinds.values():
        return kind
    if name is None:
        raise Sim2RealError(f"{where} needs a 'kind'{nearest('', map(str, kinds))}")
    if name not in kinds:
        raise Sim2RealError(
            f"{where}: kind {brief(name)} is unknown{nearest(str(name), map(str, kinds))}"
        )
    return kinds[name]


def _heirs(kind: Any) -> Iterator[Any]:
    yield kind
    for heir in kind.__subclasses__():
        yield from _heirs(heir)
