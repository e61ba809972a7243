"""Numeric arrays of MATLAB files (level 5, which `save` writes up to -v7).

Only numbers, logicals and text are read. Sizes are checked against the bytes there are, so that a
damaged or hostile file takes no more memory than its content; scipy's reader crashes on some.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from sim2real.arrays import Array
from sim2real.data.formats.columns.column_table import ColumnTable, read_bytes, unpacked_limit
from sim2real.errors import Sim2RealError

_STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8",
           13: "u8", 16: "u1", 17: "u2"}  # fmt: skip
_CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8",
            15: "u8"}  # fmt: skip
_MATRIX, _COMPRESSED, _CHAR = 14, 15, 4
_COMPLEX, _LOGICAL = 0x0800, 0x0200


def read_mat(path: Path) -> ColumnTable:
    """The file's variables; a vector becomes a list, and a 1x1 array is a scalar too."""
    data, digest = read_bytes(path)
    if data[:4] == b"\x89HDF" or b"MATLAB 7.3" in data[:64]:
        raise Sim2RealError("it is a MATLAB file of version 7.3: save it with -v7")
    order = {b"IM": "<", b"MI": ">"}.get(data[126:128])
    if order is None:
        raise Sim2RealError("it is not a level 5 MATLAB file")
    arrays: dict[str, Array] = {}
    left = unpacked_limit(len(data))
    for outer, packed in _elements(data[128:], order):
        kind, content = outer, packed
        if outer == _COMPRESSED:
            unpacked = zlib.decompressobj().decompress(packed, left + 1)
            left -= len(unpacked)
            if left < 0:
                raise Sim2RealError("it decompresses to far more than its own size")
            kind, content = next(_elements(unpacked, order), (0, b""))
        found = _matrix(content, order) if kind == _MATRIX else None
        if found is not None:
            arrays[found[0]] = found[1]
    texts = {name for name, array in arrays.items() if array.dtype.kind == "U"}
    return ColumnTable(
        loaders={name: partial(_given, array) for name, array in arrays.items()},
        scalars={name: array.item() for name, array in arrays.items() if array.size == 1},
        texts=frozenset(texts),
        sha256=digest,
    )


def _given(array: Array, dtype: str) -> Array:
    return array


def _elements(data: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    """Kind and content of each data element."""
    at = 0
    while at + 8 <= len(data):
        kind, size = struct.unpack_from(order + "II", data, at)
        if kind >> 16:  # a small element, with its size in the upper half
            kind, size, start = kind & 0xFFFF, kind >> 16, at + 4
            end = at + 8
            if size > 4:
                raise Sim2RealError("a small data element is too large")
        else:
            start = at + 8
            end = start + size
            if kind != _COMPRESSED:
                end += -size % 8
        if start + size > len(data):
            raise Sim2RealError("it ends in the middle of a variable")
        yield kind, data[start : start + size]
        at = end


def _matrix(data: bytes, order: str) -> tuple[str, Array] | None:
    """Name and content of a numeric or text array; None for cells, structures and others."""
    parts = list(_elements(data, order))
    if len(parts) < 4 or len(parts[0][1]) < 4 or len(parts[1][1]) % 4:
        return None
    flags = struct.unpack_from(order + "I", parts[0][1])[0]
    shape = np.frombuffer(parts[1][1], order + "i4").tolist()
    name = parts[2][1].decode("ascii", errors="strict")
    kind, (stored, content) = flags & 0xFF, parts[3]
    if flags & _COMPLEX or kind not in (*_CLASSES, _CHAR) or stored not in _STORED:
        return None
    found = np.frombuffer(content, order + _STORED[stored])
    if min(shape, default=0) < 0 or math.prod(shape) != len(found):
        raise Sim2RealError(f"variable {name!r}: its shape does not match its {len(found)} values")
    if kind == _CHAR:
        return name, np.array("".join(map(chr, found.tolist())))
    array = found.astype(bool if flags & _LOGICAL else _CLASSES[kind])
    array = array.reshape(shape, order="F")
    # MATLAB has no lists: a row or column of numbers is one.
    return name, array.reshape(-1) if array.ndim == 2 and 1 in array.shape else array
