"""What happened on a robot, on disk while it happens.

Periods go to an Arrow stream, a fraction of a second at a time, and a process of its own waits for
the disk. Whatever ends the program, what was encoded is readable: see
`sim2real.data.formats.recording`.
"""

from __future__ import annotations

import io
import itertools
import json
import os
import subprocess
import sys
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
from sim2real.robot import disk_writer
from sim2real.robot.supervisor import OPERATOR

ENCODE_S = 0.25
"""Longest time that a period waits to be encoded [s]."""
_ROWS_AT_ONCE = 25
"""Periods that are encoded together, which takes a few tens of microseconds."""
_SLOWEST_DISK_S = 2.0
"""How long encoded periods may wait for a disk that does not keep up [s]."""


class Recording:
    """A file that grows by a row per period.

    Rows are encoded every few periods and given to `disk_writer`. A thread would do no better than
    the loop itself: both would wait for each other.
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
            with path.open("xb") as file:
                self._writer = subprocess.Popen(
                    [sys.executable, "-I", "-S", str(Path(disk_writer.__file__))],
                    stdin=subprocess.PIPE,
                    stdout=file,
                    stderr=subprocess.PIPE,
                    start_new_session=True,  # an interrupt at the terminal is not for it
                )
        except OSError as error:
            raise Sim2RealError(f"cannot record to {path}: {error.strerror or error}") from None
        assert self._writer.stdin is not None
        self._pipe = self._writer.stdin.fileno()
        os.set_blocking(self._pipe, False)
        self._left = b""
        """What the writer has not taken yet."""
        self._left_s = 0.0
        """Since when [s]."""
        self._chunks = _Chunks()
        self._stream = pa.ipc.new_stream(self._chunks, schema)
        self._schema = schema
        self._problem = ""
        self._oldest_s, self._any = 0.0, False

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
        if len(self._rows) >= _ROWS_AT_ONCE or time.monotonic() - self._oldest_s > ENCODE_S:
            self._encode()
            self._give()

    def close(self) -> None:
        """End the recording, with everything on disk. One without a period is removed."""
        if self._writer.returncode is not None:
            return
        if not self._problem:
            self._encode()
            self._stream.close()
            os.set_blocking(self._pipe, True)
            self._give()
        assert self._writer.stdin is not None
        self._writer.stdin.close()
        self._ended()
        if not self._any:
            self.path.unlink(missing_ok=True)
        if self._problem:
            raise Sim2RealError(f"cannot record to {self.path}: {self._problem}")

    def _give(self) -> None:
        """Give what was encoded to the writer, as far as it takes it at once."""
        self._left = (self._left + self._chunks.take()) if self._left else self._chunks.take()
        try:
            while self._left:
                self._left = self._left[os.write(self._pipe, self._left) :]
            self._left_s = 0.0
        except BlockingIOError:
            now_s = time.monotonic()
            self._left_s = self._left_s or now_s
            if now_s - self._left_s > _SLOWEST_DISK_S:
                self._problem = "the disk does not keep up"
        except OSError as error:
            self._problem = one_line(error)
            self._ended()

    def _ended(self) -> None:
        """Wait for the end of the writer, and learn what went wrong."""
        assert self._writer.stderr is not None
        said = self._writer.stderr.read().decode(errors="replace").strip()
        self._writer.stderr.close()
        if self._writer.wait():
            self._problem = said or f"its writer ended with {self._writer.returncode}"

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
    """A file in memory, emptied from time to time."""

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
