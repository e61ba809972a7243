"""What happened on a robot, on disk while it happens.

Periods are written to an Arrow stream a second at a time. Whatever ends the process, what was
flushed is readable: see `sim2real.data.formats.recording`.
"""

from __future__ import annotations

import io
import itertools
import json
import os
import threading
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from sim2real.arrays import Floats
from sim2real.contract import Contract
from sim2real.data import Provenance
from sim2real.errors import Sim2RealError, one_line
from sim2real.files import write_json
from sim2real.robot.supervisor import OPERATOR

FLUSH_S = 1.0
"""Longest time that a period waits to be on disk."""
_ROWS_AT_ONCE = 25
"""Periods that are encoded together, which takes a few tens of microseconds."""


class Recording:
    """A file that grows by a row per period.

    Rows are encoded every few periods; a thread of its own writes, and waits for the disk.
    """

    def __init__(self, path: Path, units: Mapping[str, str], source: Provenance) -> None:
        """Begin a recording of channels with these units; `path` must not exist."""
        self.path = path
        self._names = list(units)
        self._rows: list[tuple[float, tuple[int, ...], Floats]] = []
        schema = pa.schema(
            [("time", pa.float64())] + [(name, pa.list_(pa.float64())) for name in units],
            metadata={"units": json.dumps(dict(units)), "provenance": source.to_json()},
        )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("xb")
        except OSError as error:
            raise Sim2RealError(f"cannot record to {path}: {error.strerror or error}") from None
        self._chunks = _Chunks()
        self._stream = pa.ipc.new_stream(self._chunks, schema)
        self._schema = schema
        self._problem = ""
        self._oldest_s, self._any = 0.0, False
        self._ending = threading.Event()
        self._writer = threading.Thread(target=self._write, name="recording", daemon=True)
        self._writer.start()

    @classmethod
    def of(cls, contract: Contract, path: Path, source: Provenance) -> Recording:
        """Begin a recording of a robot's readings, goals and commands by its contract."""
        units = {f"sensor/{sensor.name}": sensor.unit for sensor in contract.sensors}
        units |= {f"goal/{goal.name}": "" for goal in contract.goals}
        command = contract.commands[0].unit if contract.commands else ""
        units |= {"observation": "", "action": "", "wanted": command, "command": command}
        return cls(path, units | {"late": "s"}, source)

    def add(self, time_s: float, values: Mapping[str, object]) -> None:
        """Add one period; a channel that `values` lacks stays empty in it.

        A disk that takes no more is a `Sim2RealError`: what cannot be recorded does not run.
        """
        if self._problem:
            raise Sim2RealError(f"cannot record to {self.path}: {self._problem}")
        if not self._rows:
            self._oldest_s = time.monotonic()
        self._any = True
        parts = [np.asarray(values.get(name, ()), float).ravel() for name in self._names]
        sizes = tuple(part.size for part in parts)
        self._rows.append((time_s, sizes, np.concatenate(parts)))
        if len(self._rows) >= _ROWS_AT_ONCE or time.monotonic() - self._oldest_s > 0.25 * FLUSH_S:
            self._encode()

    def close(self) -> None:
        """End the recording, with everything on disk. One without a period is removed."""
        if self._file.closed:
            return
        self._ending.set()
        self._writer.join()
        if not self._problem:
            self._encode()
            self._stream.close()
            self._save()
        self._file.close()
        if not self._any:
            self.path.unlink(missing_ok=True)
        if self._problem:
            raise Sim2RealError(f"cannot record to {self.path}: {self._problem}")

    def _write(self) -> None:
        while not self._problem and not self._ending.wait(0.2 * FLUSH_S):
            self._save()

    def _save(self) -> None:
        """Put what was encoded on disk; the loop does not wait for it."""
        try:
            self._file.write(self._chunks.take())
            self._file.flush()
            os.fsync(self._file.fileno())
        except Exception as error:  # whatever it is, nothing is recorded from here on
            self._problem = one_line(error) or type(error).__name__

    def _encode(self) -> None:
        waiting, self._rows = self._rows, []
        # Rows of the same shape are written as one block: few calls, little time.
        for sizes, group in itertools.groupby(waiting, key=lambda row: row[1]):
            rows = list(group)
            block = np.stack([row[2] for row in rows])
            columns = [pa.array(np.array([row[0] for row in rows]))]
            begin = 0
            for size in sizes:
                ends = np.arange(len(rows) + 1, dtype=np.int32) * size
                part = np.ascontiguousarray(block[:, begin : begin + size]).ravel()
                columns.append(pa.ListArray.from_arrays(ends, part))
                begin += size
            self._stream.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._schema))


class _Chunks(io.RawIOBase):
    """A file in memory that one thread writes and another empties."""

    def __init__(self) -> None:
        self._waiting: deque[bytes] = deque()

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, data: bytes | pa.Buffer) -> int:
        """Add bytes."""
        added = bytes(data)
        self._waiting.append(added)
        return len(added)

    def take(self) -> bytes:
        """All that was added since the last time."""
        return b"".join(self._waiting.popleft() for _ in range(len(self._waiting)))


def write_outcome(path: Path, outcome: str, *, stopped: str, **figures: object) -> None:
    """Keep beside a recording how it ended, with what was measured on the way.

    Unless the operator stopped it, the reason of a stop is part of its episode's provenance.
    """
    told: dict[str, object] = {"outcome": outcome, "stopped": stopped, **figures}
    if stopped and stopped != OPERATOR:
        told["provenance"] = {"stopped": stopped}
    write_json(path.with_suffix(".json"), told)
