"""The files of a LeRobot data set: path templates and Parquet, with all input checked."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sim2real.arrays import Array
from sim2real.data.formats.columns.column_table import unpacked_limit
from sim2real.errors import Sim2RealError, explaining

INDEX_FEATURES = ("timestamp", "frame_index", "episode_index", "index", "task_index")
"""Features of every data set, which say where a frame belongs."""
TIME_FEATURE = "sim2real.time"
"""Feature with the true time of each frame [s], in data sets that sim2real wrote."""
_FIELD = re.compile(r"\{([a-z_]+)(?::0(\d)d)?\}")
_log = logging.getLogger(__name__)


def filled(template: str, values: Mapping[str, object]) -> PurePosixPath:
    """A path template such as 'data/chunk-{chunk_index:03d}/…' with its fields filled in.

    Fields are texts or zero-padded numbers; the path cannot leave its folder.
    """

    def fill(field: re.Match[str]) -> str:
        value = values.get(field[1])
        if isinstance(value, str) and field[2] is None:
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return f"{value:0{field[2] or 1}d}"
        raise Sim2RealError(f"the path {template!r} has the unknown field {field[1]!r}")

    text = _FIELD.sub(fill, template)
    path = PurePosixPath(text)
    unsafe = path.is_absolute() or ".." in path.parts or not path.parts
    if unsafe or any(sign in text for sign in "{}\\:\0") or len(text) > 1000:
        raise Sim2RealError(f"the path {template!r} leads outside the data set")
    return path


def read_parquet(file: Path, columns: list[str]) -> pa.Table:
    """Some columns of a Parquet file; a missing one or a damaged file is a `Sim2RealError`."""
    with explaining(f"{file} is not readable Parquet"):
        most = unpacked_limit(file.stat().st_size)
        with pq.ParquetFile(file) as parquet:
            there = parquet.schema_arrow
            wanted = list(dict.fromkeys(columns))
            for name in wanted:
                if name not in there.names:
                    raise Sim2RealError(f"{file} has no column {name!r}")
            # Few rows at a time where one may be an image: a small file can repeat it endlessly.
            rows = 65536 if not any(_is_wide(there.field(name).type) for name in wanted) else 64
            batches, size = [], 0
            for batch in parquet.iter_batches(rows, columns=wanted):
                size += batch.nbytes + batch.num_rows
                if size > most:
                    raise Sim2RealError(f"{file} unpacks to more than {most} bytes")
                batches.append(batch)
        table = pa.Table.from_batches(batches, pa.schema([there.field(name) for name in wanted]))
        table.validate(full=True)
        return table


def _is_wide(kind: pa.DataType) -> bool:
    """Whether a cell may hold any number of bytes."""
    number = pa.types.is_primitive(kind) or pa.types.is_boolean(kind)
    fixed = pa.types.is_fixed_size_list(kind) and pa.types.is_primitive(kind.value_type)
    return not (number or fixed)


def numeric_column(column: pa.ChunkedArray, where: str) -> Array | None:
    """The values (rows, ...) of a column of numbers or nested lists of numbers.

    None, with a warning, for text and for lists of different lengths.
    """
    array = column.combine_chunks()
    shape = [len(array)]
    while True:
        kind = array.type
        if isinstance(kind, pa.BaseExtensionType):
            array = array.storage
            continue
        if array.null_count:
            raise Sim2RealError(f"{where} has empty cells")
        if pa.types.is_fixed_size_list(kind):
            width = kind.list_size
        elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
            widths = pc.unique(pc.list_value_length(array)).to_pylist()
            if len(widths) > 1:
                _log.warning("%s is left out: its lists differ in length", where)
                return None
            width = widths[0] if widths else 0
        else:
            break
        array = array.flatten()
        shape.append(width)
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    if not number:
        _log.warning("%s is left out: it is %s, not numbers", where, kind)
        return None
    return np.asarray(array.to_numpy(zero_copy_only=False)).reshape(shape)


def picture_column(column: pa.ChunkedArray, where: str) -> pa.Array:
    """The encoded images in a column of {bytes, path}, or of bytes."""
    array = column.combine_chunks()
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if pa.types.is_struct(array.type):
        if array.type.get_field_index("bytes") < 0:
            raise Sim2RealError(f"{where} contains no images")
        array = array.field("bytes")
    if not (pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type)):
        raise Sim2RealError(f"{where} contains no images")
    if array.null_count:
        raise Sim2RealError(f"{where} refers to images in other files, which are not read")
    return array
