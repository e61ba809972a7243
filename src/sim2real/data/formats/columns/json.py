"""Columns of JSON files: a list of records, or an object of lists and scalars."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np

from sim2real.arrays import Array
from sim2real.data.formats.columns.column_table import ColumnTable, read_bytes
from sim2real.errors import Sim2RealError, explaining, nearest


def read_json_table(path: Path, *, rows: str = "") -> ColumnTable:
    """The file's columns: of the list of records under `rows` or at the top, or of an object of
    lists. Without `rows`, the only list of records in an object is used.
    """
    data, digest = read_bytes(path)
    content = json.loads(data)
    scalars: dict[str, object] = {}
    if isinstance(content, dict):
        scalars = {k: v for k, v in content.items() if isinstance(v, bool | int | float | str)}
        if rows and rows not in content:
            raise Sim2RealError(f"no key {rows!r}{nearest(rows, content)}")
        records = [rows] if rows else [k for k, v in content.items() if _records(v)]
        if len(records) > 1:
            raise Sim2RealError(
                f"several lists of records ({', '.join(records[:4])}): choose one with 'rows'"
            )
        content = content[records[0]] if records else content
    if _records(content):
        columns: dict[str, list[object]] = {name: [] for name in content[0]}
        for number, record in enumerate(content):
            if not isinstance(record, dict) or record.keys() != columns.keys():
                raise Sim2RealError(f"the keys of record {number} differ from those of the first")
            for name, value in record.items():
                columns[name].append(value)
    elif isinstance(content, dict) and not rows:
        columns = {name: value for name, value in content.items() if isinstance(value, list)}
    else:
        raise Sim2RealError("it is neither a list of records nor an object of lists")
    texts = frozenset(n for n, c in columns.items() if c and isinstance(c[0], str | dict))
    loaders = {name: partial(_numbers, name, column) for name, column in columns.items()}
    return ColumnTable(loaders=loaders, scalars=scalars, texts=texts, sha256=digest)


def _records(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _numbers(name: str, column: list[object], dtype: str) -> Array:
    column = [float("nan") if value is None else value for value in column]
    what = f"column {name!r}: its rows have different lengths"
    with explaining(what, ValueError, OverflowError):
        found = np.array(column)
    if found.dtype.kind not in "biuf":
        raise Sim2RealError(f"column {name!r} holds values that are not numbers")
    return found
