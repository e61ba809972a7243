"""Dataclasses as plain data for JSON, and back."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import TypeVar, Union, cast, get_args, get_origin, get_type_hints

from sim2real.errors import Sim2RealError

T = TypeVar("T")


def plain(value: object) -> dict[str, object]:
    """A dataclass as plain data; `of_plain` gives it back."""
    if not is_dataclass(value) or isinstance(value, type):
        raise TypeError(f"{value!r} is no dataclass")
    return asdict(value)


def of_plain(kind: type[T], data: object) -> T:
    """The dataclass of which `plain` and JSON made `data`.

    Its fields are numbers, texts, truths, tuples, lists and dictionaries of these, or dataclasses.
    A field that is missing takes its default; a name that is no field is a `Sim2RealError`.
    """
    return cast(T, _value(kind, data))


def _value(kind: object, data: object) -> object:
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return None if data is None else _value(next(p for p in parts if p is not type(None)), data)
    if isinstance(kind, type) and is_dataclass(kind):
        given = _mapping(data)
        known = {field.name for field in fields(kind)}
        if not set(given) <= known:
            raise Sim2RealError(f"{kind.__name__} has no {', '.join(sorted(set(given) - known))}")
        hints = get_type_hints(kind)
        return kind(**{name: _value(hints[name], part) for name, part in given.items()})
    if origin is dict:
        return {name: _value(parts[1], part) for name, part in _mapping(data).items()}
    if origin in (tuple, list):
        rows = list(data) if isinstance(data, list | tuple) else []
        each = parts if origin is tuple and parts[-1] is not Ellipsis else (parts[0],) * len(rows)
        found = [_value(part, row) for part, row in zip(each, rows, strict=True)]
        return tuple(found) if origin is tuple else found
    return float(data) if kind is float and isinstance(data, int | float) else data


def _mapping(data: object) -> Mapping[str, object]:
    if not isinstance(data, Mapping):
        raise Sim2RealError(f"a table was expected, not {data!r:.60}")
    return data
