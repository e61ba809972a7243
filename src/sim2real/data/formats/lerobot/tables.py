"""The Parquet tables of a LeRobot data set: frames, tasks and episodes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sim2real.arrays import Array
from sim2real.data.formats.lerobot.stats import Stats

CHUNK_FILES = 1000
"""Most files in one folder."""
DATA_MB = 100
"""Size a Parquet file may grow to [MiB]."""
FILE = "chunk-{chunk_index:03d}/file-{file_index:03d}"
DATA_BYTES = DATA_MB << 20


def placed(number: int) -> dict[str, int]:
    """Chunk and index of the file with that number."""
    chunk, file = divmod(number, CHUNK_FILES)
    return {"chunk_index": chunk, "file_index": file}


class DataFiles:
    """Parquet files of many episodes each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.number = 0
        self.batch: list[tuple[dict[str, Array], dict[str, object]]] = []
        self.bytes = 0

    def add(self, columns: dict[str, Array], row: dict[str, object]) -> None:
        """Add an episode's columns; `row` will say where they are."""
        size = sum(values.nbytes for values in columns.values())
        if self.bytes + size > DATA_BYTES:
            self.flush()
        self.batch.append((columns, row))
        self.bytes += size

    def flush(self) -> None:
        """Write the episodes that were added since the last file into a new one."""
        if not self.batch:
            return
        names = self.batch[0][0]
        table = pa.table(
            {n: _column(np.concatenate([columns[n] for columns, _ in self.batch])) for n in names}
        )
        path = self.folder / (FILE.format(**placed(self.number)) + ".parquet")
        path.parent.mkdir(parents=True, exist_ok=True)
        # A dictionary helps columns with repeated values only.
        pq.write_table(
            table, path, compression="snappy", use_dictionary=["episode_index", "task_index"]
        )
        for _, row in self.batch:
            row.update({f"data/{name}": value for name, value in placed(self.number).items()})
        self.batch, self.bytes, self.number = [], 0, self.number + 1


def write_episodes(
    folder: Path, rows: Sequence[Mapping[str, object]], stats: Mapping[str, Sequence[Stats]]
) -> None:
    """Write the table of episodes: where each is, and the statistics of its features."""
    columns = {name: pa.array([row[name] for row in rows]) for name in rows[0]}
    for name, entries in stats.items():
        for key in entries[0]:
            columns[f"stats/{name}/{key}"] = _nested(np.stack([entry[key] for entry in entries]))
    table = pa.table(columns)
    each = max(1, table.num_rows * DATA_BYTES // max(table.nbytes, 1))
    for number, start in enumerate(range(0, table.num_rows, each)):
        part = table.slice(start, each)
        for name, value in placed(number).items():
            column = pa.array(np.full(part.num_rows, value))
            part = part.append_column(f"meta/episodes/{name}", column)
        path = folder / (FILE.format(**placed(number)) + ".parquet")
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(part, path, compression="snappy")


def _column(values: Array) -> pa.Array:
    """Values (rows, ...) as a column: numbers, lists of fixed length, or lists of lists."""
    if values.size == len(values):
        return pa.array(values.reshape(-1))
    if values.ndim == 2:
        return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])
    return _nested(values)


def _nested(values: Array) -> pa.Array:
    array = pa.array(values.reshape(-1))
    for axis in range(values.ndim - 1, 0, -1):
        rows = int(np.prod(values.shape[:axis]))
        offsets = np.arange(rows + 1, dtype=np.int32) * values.shape[axis]
        array = pa.ListArray.from_arrays(pa.array(offsets), array)
    return array


def write_tasks(file: Path, tasks: list[str]) -> None:
    """Write the table of tasks, with their texts as the row labels of pandas."""
    label = "__index_level_0__"
    table = pa.table({"task_index": np.arange(len(tasks)), label: tasks})
    columns: list[dict[str, str | None]] = [
        {"name": "task_index", "field_name": "task_index", "pandas_type": "int64"},
        {"name": None, "field_name": label, "pandas_type": "unicode"},
    ]
    for column, kind in zip(columns, ("int64", "object"), strict=True):
        column.update({"numpy_type": kind, "metadata": None})
    pandas = {"index_columns": [label], "column_indexes": [], "columns": columns}
    pandas |= {"creator": {"library": "pyarrow", "version": pa.__version__}}
    pandas |= {"pandas_version": "2.2.0"}
    pq.write_table(table.replace_schema_metadata({"pandas": json.dumps(pandas)}), file)
