"""From recorded columns to a channel in SI: select, make signed, scale, unwrap."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np

from sim2real.arrays import Array, Floats
from sim2real.data.episode import Signal
from sim2real.data.formats.channel_map import ChannelSource, ClockSource, RecordingMap
from sim2real.data.formats.columns.column_table import ColumnTable
from sim2real.errors import Sim2RealError
from sim2real.units import si_unit

_SLICE = re.compile(r"(.*)\[(\d{1,9})?(:)?(\d{1,9})?\]$", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Rows:
    """The rows of one episode in a file."""

    table: ColumnTable
    skip: int = 0
    """Leading rows to leave out."""
    array: str = ""
    """Array that is the episode; '[0]' and '[1:4]' are columns of it."""
    repeat: int | None = None
    """Index on the first axis, where that axis counts repeats."""

    def missing(self, kind: RecordingMap) -> str:
        """What the recording needs and the file does not have; '' if nothing."""
        channels = kind.channels.values()
        clocks = [kind.clock, *(channel.clock for channel in channels if channel.clock)]
        wanted = [column for part in clocks for column in part.columns]
        for column in [*wanted, *(name for part in channels for name in part.columns)]:
            try:
                self._find(column)
            except Sim2RealError as error:
                return str(error)
        return ""

    def repeats(self, kind: RecordingMap) -> int:
        """Number of repeats: the length of the first axis."""
        first = next(iter(kind.channels.values())).columns[0]
        return len(self.table.column(self._find(first)[0]))

    def column(self, column: str, dtype: str = "") -> Array:
        """A column or array slice, (rows, ...), without the skipped rows."""
        name, inside = self._find(column)
        found = self.table.column(name, dtype)
        if self.repeat is not None:
            if found.ndim < 2 or self.repeat >= len(found):
                raise Sim2RealError(f"{column!r} of shape {found.shape} has no axis of repeats")
            found = found[self.repeat]
        if found.ndim < 1:
            raise Sim2RealError(f"{column!r} is a single value, not a column")
        if inside is not None:
            width = found.shape[1] if found.ndim > 1 else 0
            # Python shortens a slice that is too long; here it is a mistake in the map.
            last = (inside.stop or width) - 1 if isinstance(inside, slice) else inside
            first = (inside.start or 0) if isinstance(inside, slice) else inside
            if not first <= last < width:
                raise Sim2RealError(f"{column!r} is outside an array of shape {found.shape}")
            found = found[:, inside]
        return found[self.skip :]

    def _find(self, column: str) -> tuple[str, int | slice | None]:
        """Name of the array and the part of its rows; names that contain brackets come first."""
        if column in self.table.loaders:
            return column, None
        parts = _SLICE.match(column)
        if parts is not None and (parts[2] or parts[3]):
            name = parts[1] or self.array
            if name in self.table.loaders:
                start, end = (int(part) if part else None for part in (parts[2], parts[4]))
                if not parts[3]:
                    return name, start
                return name, slice(start, end)
            column = name
        self.table.column(column)  # raises, and names those that exist
        return column, None


def signal(
    channel: ChannelSource, rows: Rows, clock: ClockSource, *, rate_hz: float, stated_hz: float
) -> Signal:
    """The channel with its time stamps; the rates [Hz] are what those of `clock` stand for."""
    parts = [rows.column(column, channel.dtype) for column in channel.columns]
    if len({len(part) for part in parts}) > 1:
        raise Sim2RealError(f"its columns have {', '.join(str(len(p)) for p in parts)} rows")
    values = parts[0]
    if len(parts) > 1:
        if any(part.ndim > 2 for part in parts):
            raise Sim2RealError("only columns and tables can be placed side by side")
        values = np.column_stack(parts)
    values, unit = _in_si(channel, values)
    if channel.shape is not None:
        if math.prod(channel.shape) * len(values) != values.size:
            raise Sim2RealError(f"samples of shape {values.shape[1:]} do not fit {channel.shape}")
        values = values.reshape(len(values), *channel.shape)
    return Signal(_times(rows, clock, rate_hz, len(values)), values, unit, stated_hz)


def _in_si(channel: ChannelSource, values: Array) -> tuple[Array, str]:
    """Values in SI, and their unit; values that need no change keep their type."""
    factor, offset, unit = si_unit(channel.unit) if channel.convert else (1.0, 0.0, channel.unit)
    if channel.signed_bits:
        values = signed_register(values, channel.signed_bits)
    # What overflows becomes infinite, as it would in the recorder.
    with np.errstate(all="ignore"):
        if (channel.scale, channel.offset) != (1.0, 0.0):
            values = values.astype(np.float64) * channel.scale + channel.offset
        if (factor, offset) != (1.0, 0.0):
            values = values.astype(np.float64) * factor + offset
        if channel.unwrap:
            values = np.unwrap(values.astype(np.float64), axis=0)
        if channel.dtype and values.dtype != channel.dtype:
            whole = values.astype(channel.dtype)
            if whole.dtype.kind in "iub" and not np.array_equal(whole, values):
                raise Sim2RealError(f"its values do not fit {channel.dtype}")
            values = whole
    return values, unit


def signed_register(values: Array, bits: int) -> Array:
    """Unsigned readings of a register as signed numbers."""
    half = 2 ** (bits - 1)
    with np.errstate(all="ignore"):
        whole = values.astype(np.int64)
    if not np.array_equal(whole, values) or np.any((whole < -half) | (whole >= 2 * half)):
        raise Sim2RealError(f"its values do not fit a register of {bits} bits")
    return np.asarray((whole + half) % (2 * half) - half)


def _times(rows: Rows, clock: ClockSource, rate_hz: float, count: int) -> Floats:
    """Time stamps [s] of `count` rows."""
    if not clock.columns:
        if rate_hz <= 0:
            raise Sim2RealError(f"time stamps need a positive rate, not {rate_hz} Hz")
        return (rows.skip + np.arange(count)) / rate_hz
    found = rows.column(clock.columns[0])
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.ndim != 1:
        raise Sim2RealError(f"the time {clock.columns[0]!r} has shape {found.shape}")
    if len(found) != count:
        raise Sim2RealError(f"{len(found)} time stamps do not fit {count} rows")
    # Times already in seconds keep their bits.
    factor = si_unit(clock.unit)[0]
    times = found.astype(np.float64)
    times = times if factor == 1.0 else times * factor
    if not np.all(np.isfinite(times)):
        row = int(np.flatnonzero(~np.isfinite(times))[0])
        raise Sim2RealError(f"the time of row {row + 1 + rows.skip} is not a number")
    return times
