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

`msgspec` converts and checks what holds no dataclass: numbers and their ranges, texts, words, and
lists of these. Tables are read here, so that errors name the place and the nearest valid name.
"""

from __future__ import annotations

import math
import re
import types
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import MISSING, Field, fields, is_dataclass
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

import msgspec
from msgspec import Meta

from sim2real.errors import Sim2RealError, brief, nearest, table_at

T = TypeVar("T")
_EMPTY: tuple[object, ...] = ("", None, [], {})
_EXACT = ContextVar("exact", default=False)


NotNegative = Annotated[float, Meta(ge=0)]
Positive = Annotated[float, Meta(gt=0)]
Count = Annotated[int, Meta(ge=0)]
AtLeastOne = Annotated[int, Meta(ge=1)]
Low = Annotated[float, Meta(extra={"null": -math.inf})]
"""A number that may be infinite: JSON has null for it."""
High = Annotated[float, Meta(extra={"null": math.inf})]
MaybeNan = Annotated[float, Meta(extra={"null": math.nan})]
"""A number that may be unknown: JSON has null for it."""
ALONE = Meta(extra={"alone": True})
"""Says of a list that its only entry may be given without the list."""


def written_as(name: str) -> Meta:
    """Says of a field, in its `Annotated` type, that it has another name in files."""
    return Meta(extra={"name": name})


class PlainData:
    """A dataclass that converts to plain data and back.

    `also` names what is written beside the fields: properties, methods without arguments, and
    attributes of these, as "trials.seed", or "number=trials.seed" to give it a name; "remainder?"
    is left out where it is None or empty. `without` names fields that are not written; a `sparse`
    class writes nothing that is None or empty. A `lenient` class ignores names that it does not
    know, as in files of other programs; `former` names what files of earlier versions have, which
    is ignored. `schema` is the newest that this version reads. A class
    variable `kind`, '' in a base class, is written too: it says which subclass the data describe.
    """

    _also: ClassVar[Mapping[str, str]] = {}
    _without: ClassVar[tuple[str, ...]] = ()
    _sparse: ClassVar[bool] = False
    _lenient: ClassVar[bool] = False
    _former: ClassVar[tuple[str, ...]] = ()
    _schema: ClassVar[int | None] = None

    def __init_subclass__(
        cls,
        *,
        also: Sequence[str] = (),
        without: Sequence[str] = (),
        sparse: bool = False,
        lenient: bool = False,
        former: Sequence[str] = (),
        schema: int | None = None,
    ) -> None:
        super().__init_subclass__()
        named = [entry.rpartition("=") for entry in also]
        paths = {name or path.rpartition(".")[2]: path.rstrip("?") for name, _, path in named}
        cls._also = {**cls._also, **paths}
        cls._without = (*cls._without, *without)
        cls._sparse, cls._lenient, cls._schema = sparse, lenient, schema
        cls._former = tuple(former)

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


def of_plain(kind: type[T], data: object, where: str = "", *, exact: bool = False) -> T:
    """The dataclass that `data` describe; see `PlainData.from_dict`.

    Its fields are numbers, texts, booleans, words, lists, tables of these, or dataclasses. With
    `exact` numbers may be infinite or nan, and arrays may be arrays already.
    """
    token = _EXACT.set(exact)
    try:
        return cast(T, _value(kind, data, where or kind.__name__))
    finally:
        _EXACT.reset(token)


def _told(value: Any) -> dict[str, object]:
    more = getattr(value, "_also", {})
    hidden = {*getattr(value, "_without", ()), *(name.rstrip("?") for name in more)}
    paths = {part.name: part.name for part in fields(value) if part.name not in hidden}
    found: dict[str, object] = {"kind": value.kind} if is_tagged(type(value)) else {}
    for name, path in (paths | more).items():
        part = value
        for step in path.split("."):
            part = None if part is None else getattr(part, step)
        part = plain(part() if callable(part) else part)
        if not name.endswith("?") or part not in _EMPTY:
            found[name.removesuffix("?")] = part
    if getattr(value, "_sparse", False):
        return {name: part for name, part in found.items() if part not in _EMPTY}
    return found


def _value(kind: Any, data: object, where: str) -> object:
    origin, parts = get_origin(kind), get_args(kind)
    if extra := _extra(kind):
        if "null" in extra and (data is None or data == extra["null"]):
            return extra["null"]
        if "alone" in extra and not isinstance(data, list):
            data = [data]
        rest = [mark for mark in parts[1:] if not mark.extra]
        return _value(Annotated[parts[0], *rest] if rest else parts[0], data, where)
    if is_dataclass(kind):
        read = getattr(kind, "from_dict", None)  # it may have its own
        return read(data, where) if read else _made(cast(type, kind), data, where)
    if origin in (dict, Mapping):
        return {
            str(name): _value(parts[1], part, f"{where}: {name!r}")
            for name, part in table_at(data, where).items()
        }
    if kind is object:
        return data
    if _simple(kind):
        return _converted(kind, data, where)
    return (_one_of if origin in (Union, types.UnionType) else _row)(kind, parts, data, where)


@cache
def _simple(kind: object) -> bool:
    """Whether msgspec can convert to a type: it holds no dataclass, and no `extra` of ours."""
    if kind is object or _extra(kind) or is_dataclass(kind) or get_origin(kind) in (dict, Mapping):
        return False
    return all(map(_simple, get_args(kind)))


def _converted(kind: Any, data: object, where: str) -> object:
    """A number, a text, a boolean, an array, a word of a few, or lists of these."""
    if kind is str and isinstance(data, date):  # TOML has a type for it
        return data.isoformat()
    try:
        found = msgspec.convert(data, kind, dec_hook=_decoded)
    except msgspec.ValidationError as error:
        said, _, path = str(error).partition(" - at `$")
        for place in re.findall(r"\[(\d+)\]", path):
            data = cast(Sequence[object], data)[int(place)]
        raise Sim2RealError(f"{where}{_expected(kind, said, data)}") from None
    for number in () if _EXACT.get() else _numbers(found):
        if not math.isfinite(number):
            raise Sim2RealError(f"{where} must be a number, not {number}")
    return found


def _decoded(kind: type, data: object) -> object:
    """What msgspec does not know: a path, or an array of numbers (null is nan)."""
    if kind is Path:
        return Path(msgspec.convert(data, str))
    import numpy as np

    if isinstance(data, np.ndarray) and _EXACT.get():
        return data
    try:
        return np.array(data, dtype=float)
    except (TypeError, ValueError):
        raise msgspec.ValidationError("Expected `numbers`") from None


def _numbers(found: object) -> Iterator[float]:
    if isinstance(found, float):
        yield found
    elif isinstance(found, list | tuple):
        for part in found:
            yield from _numbers(part)


_KINDS = {
    "float": "a number", "int": "a whole number", "str": "text", "bool": "true or false",
    "array": "a list", "object": "a table", ">=": "at least", ">": "more than",
}  # fmt: skip
"""Words of msgspec, and ours."""


def _expected(kind: object, said: str, data: object) -> str:
    """What msgspec says of data that it refuses, in our words."""
    if said.startswith("Invalid enum value"):
        return f": {brief(data)} is unknown{nearest(str(data), _words(kind))}"
    wanted = said.removeprefix("Expected ").partition(", got")[0]
    if least := re.fullmatch(r"`\w+` (>=?) ([-\d.]+)", wanted):
        wanted = f"{_KINDS[least[1]]} {float(least[2]):g}"
    wanted = re.sub(r"\w+", lambda word: _KINDS.get(word[0], word[0]), wanted)
    return f" must be {wanted.replace('`', '').replace(' | ', ' or ')}, not {brief(data)}"


def _words(kind: Any) -> list[str]:
    """All words that a type allows."""
    if get_origin(kind) is Literal:
        return [str(word) for word in get_args(kind)]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [str(one.value) for one in kind]
    return [word for part in get_args(kind) for word in _words(part)]


def _extra(kind: object) -> dict[str, Any]:
    """What the marks of a type say that msgspec leaves to us."""
    found: dict[str, Any] = {}
    for mark in getattr(kind, "__metadata__", ()):
        found |= getattr(mark, "extra", None) or {}
    return found


def _one_of(kind: object, parts: Sequence[Any], data: object, where: str) -> object:
    """The value of the first type that fits; a table becomes a dataclass."""
    if data is None and types.NoneType in parts:
        return None
    tables = [part for part in parts if not _simple(part)]
    others = [part for part in parts if part is not types.NoneType and part not in tables]
    if others and not isinstance(data, Mapping):
        return _value(Union[(*others,)], data, where)
    for part in tables[:-1]:
        try:
            return _value(part, data, where)
        except Sim2RealError:
            continue
    return _value(tables[-1], data, where)


def _row(kind: object, parts: Sequence[Any], data: object, where: str) -> object:
    """A list of tables, or of what has marks."""
    if not isinstance(data, list | tuple):
        raise Sim2RealError(f"{where} must be a list, not {brief(data)}")
    many = get_origin(kind) is list or parts[-1] is Ellipsis
    each = [parts[0]] * len(data) if many else parts
    if len(each) != len(data):
        raise Sim2RealError(f"{where} must be a list of length {len(each)}, not {brief(data)}")
    rows = [
        _value(part, row, f"{where} {_called(row, number)}")
        for number, (part, row) in enumerate(zip(each, data, strict=True), 1)
    ]
    return rows if get_origin(kind) is list else tuple(rows)


def _called(row: object, number: int) -> str:
    name = row.get("name") if isinstance(row, Mapping) else None
    return repr(name) if isinstance(name, str) else str(number)


def _made(kind: type, data: object, where: str) -> object:
    values = dict(table_at(data, where))
    if is_tagged(kind):
        kind = _heir(kind, values.pop("kind", None), where)
    declared = _declared(kind)
    if newest := getattr(kind, "_schema", None):
        _refuse_newer(values, newest, where)
    known = {*declared, *(name.rstrip("?") for name in getattr(kind, "_also", ()))}
    former = getattr(kind, "_former", ())
    for name in values:
        if name not in known and name not in former and not getattr(kind, "_lenient", False):
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


def _refuse_newer(values: Mapping[str, object], newest: int, where: str) -> None:
    schema = values.get("schema")
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise Sim2RealError(f"{where}: its schema must be a number from 1 on, not {brief(schema)}")
    if schema > newest:
        raise Sim2RealError(
            f"{where} has schema {schema}, and this version reads up to {newest}: update sim2real"
        )


@cache
def _declared(kind: type) -> dict[str, tuple[Field[object], object]]:
    """Fields of a dataclass and their types, by the names that files have for them."""
    hints = get_type_hints(kind, include_extras=True)
    found = {}
    for part in fields(kind):
        if part.init:
            hint = hints[part.name]
            found[_extra(hint).get("name", part.name)] = (part, hint)
    return found


def is_tagged(kind: type) -> bool:
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
