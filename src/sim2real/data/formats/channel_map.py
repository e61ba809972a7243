"""Channel maps: small TOML files that say how the columns of a log become channels.

    files = "*.csv"                          # which files of a folder; all by default
    time = { from = "stamp", unit = "us" }   # or { rate_hz = 100 } where there is no time column

    [channels.joint_pos]
    from = ["q1", "q2"]                      # columns side by side; "states[0:2]" slices an array
    unit = "deg"                             # as recorded; channels are in SI

    [provenance]
    robot = "so101"
    task = { from = "trajectory" }           # a scalar of the file, or @file, @folder, @array

Where a folder contains several kinds of files, each `[[recording]]` table extends or replaces what
is above it. The first one that fits a file is used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Annotated

from sim2real.data.formats.file_errors import naming
from sim2real.data.provenance import Provenance
from sim2real.errors import Sim2RealError, explaining, nearest, table_at
from sim2real.files import read_toml
from sim2real.plain import ALONE, Count, NotNegative, of_plain, written_as
from sim2real.units import si_unit

DTYPES = ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint64", "uint32",
          "uint16", "uint8", "bool")  # fmt: skip
PLACES = ("@file", "@folder", "@array", "@repeat")


@dataclass(frozen=True, kw_only=True)
class ScalarSource:
    """A value from the recording itself: a scalar of the file, or a name."""

    source: Annotated[str, written_as("from")]
    """Name of a scalar in the file, or one of @file, @folder, @array, @repeat."""
    match: str = ""
    """Pattern whose first group is the value; '' for the whole text."""

    def __post_init__(self) -> None:
        if self.source.startswith("@") and self.source not in PLACES:
            raise Sim2RealError(f"unknown {self.source!r}{nearest(self.source, PLACES)}")
        with explaining("'match' is not a pattern", re.error, RecursionError, OverflowError):
            groups = re.compile(self.match).groups
        if self.match and groups != 1:
            raise Sim2RealError("'match' needs one group in brackets, such as '^([a-z]+)_'")


Columns = Annotated[tuple[str, ...], ALONE, written_as("from")]
Rate = NotNegative | ScalarSource
"""A number [Hz], or where the recording has it."""


@dataclass(frozen=True, kw_only=True)
class ClockSource:
    """Where time stamps come from."""

    columns: Columns = ()
    """The time column; empty if only a rate is known."""
    unit: str = "s"
    """Recorded unit of the time column."""
    rate_hz: Rate = 0.0
    """Rate that turns row numbers into times where there is no time column [Hz]."""
    stated_hz: Rate = 0.0
    """Rate the source claims to have recorded at [Hz]; `rate_hz` if that is given."""

    def __post_init__(self) -> None:
        if len(self.columns) > 1 or bool(self.columns) == bool(self.rate_hz):
            raise Sim2RealError("it needs either 'from', with a single column, or 'rate_hz'")
        if _si(self.unit) != "s":
            raise Sim2RealError(f"{self.unit!r} is not a unit of time")
        object.__setattr__(self, "stated_hz", self.stated_hz or self.rate_hz)


@dataclass(frozen=True, kw_only=True)
class ChannelSource:
    """How a channel is made: selected, made signed, scaled, converted to SI, unwrapped."""

    columns: Columns
    """Columns or array slices, side by side."""
    unit: str = ""
    """Recorded unit, after `scale` and `offset`; the channel is in SI."""
    convert: bool = True
    """Whether to convert to SI; otherwise the channel keeps its recorded unit."""
    scale: float = 1.0
    """Factor on the recorded values."""
    offset: float = 0.0
    """Added after the factor."""
    signed_bits: Count = 0
    """Width of a signed register that was read as unsigned; 0 for none."""
    unwrap: bool = False
    """Whether to remove jumps by a full turn, from a channel in rad."""
    dtype: str = ""
    """Type of the values; '' for that of the file."""
    shape: tuple[Count, ...] | None = None
    """Shape of one sample, if it is not a plain list."""
    file: str = ""
    """File in the folder that holds it, where several files make one episode."""
    clock: Annotated[ClockSource | None, written_as("time")] = None
    """Its own time stamps, if they differ from those of the recording."""

    def __post_init__(self) -> None:
        if not self.columns or "" in self.columns:
            raise Sim2RealError("'from' must be a column name or a list of column names")
        if self.signed_bits > 32:
            raise Sim2RealError(f"a register has at most 32 bits, not {self.signed_bits}")
        if self.dtype and self.dtype not in DTYPES:
            raise Sim2RealError(f"no dtype {self.dtype!r}{nearest(self.dtype, DTYPES)}")
        si = _si(self.unit) if self.convert else self.unit
        if self.unwrap and si != "rad":
            raise Sim2RealError(f"only angles can be unwrapped, and its unit is {self.unit!r}")
        if self.file and (PurePosixPath(self.file).name != self.file or self.file in ("..", ".")):
            raise Sim2RealError(f"'file' must be a file name in the folder, not {self.file!r}")


@dataclass(frozen=True, kw_only=True)
class RecordingMap:
    """One kind of recording: its files, their channels and their provenance."""

    files: Annotated[tuple[str, ...], ALONE] = ("*",)
    """Patterns of file names, or of folder names where channels name their files."""
    header: bool = True
    """Whether the first line of a CSV file names its columns."""
    rows: str = ""
    """Key of the list of records in a JSON object."""
    episodes: str = ""
    """Pattern of array names, each array an episode; '[0]' and '[1:4]' are columns of it."""
    repeats: bool = False
    """Whether the first axis of the arrays counts repeats, each of them an episode."""
    skip: Count = 0
    """Leading rows to skip."""
    clock: Annotated[ClockSource, written_as("time")]
    channels: Mapping[str, ChannelSource]
    provenance: Mapping[str, object] = field(default_factory=dict)
    """Fields of the provenance; each `ScalarSource` is looked up in the recording."""
    outcome: str | ScalarSource = ""
    id: str = ""
    """Id of the only episode, in a map that `write_csv` wrote; the content must match."""

    def __post_init__(self) -> None:
        if not self.channels:
            raise Sim2RealError("it has no channels: add a table like [channels.joint_pos]")
        if len({bool(channel.file) for channel in self.channels.values()}) > 1:
            raise Sim2RealError("either all channels have a 'file' or none")
        outside = any(name.startswith("/") or ".." in name.split("/") for name in self.files)
        if outside or not self.files or not all(PurePosixPath(name).parts for name in self.files):
            raise Sim2RealError(
                f"'files' must be patterns of names inside the folder, not {list(self.files)}"
            )
        if self.together and (self.episodes or self.repeats):
            raise Sim2RealError("channels with a 'file' cannot make several episodes")

    @property
    def together(self) -> tuple[str, ...]:
        """Files of a folder that make one episode; empty if each file is one."""
        return tuple(sorted({channel.file for channel in self.channels.values()} - {""}))

    def fits(self, path: Path) -> bool:
        """Whether the name of a file or folder matches."""
        return any(path.absolute().match(pattern) for pattern in self.files)


@dataclass(frozen=True, kw_only=True)
class ChannelMap:
    """The kinds of recordings in a folder, in order of preference."""

    recordings: tuple[RecordingMap, ...]

    @classmethod
    def load(cls, path: Path | str) -> ChannelMap:
        """The channel map in a TOML file; a mistake in it is a `Sim2RealError`."""
        path = Path(path)
        with naming(path):
            return cls.of_tables(read_toml(path))

    @classmethod
    def of_tables(cls, data: Mapping[str, object]) -> ChannelMap:
        """A channel map from plain data, as TOML gives it."""
        shared = {name: value for name, value in data.items() if name != "recording"}
        kinds = data.get("recording", [{}])
        if not isinstance(kinds, list) or not kinds:
            raise Sim2RealError("'recording' must be a list of tables: [[recording]]")
        found = []
        for number, kind in enumerate(kinds, 1):
            where = f"recording {number}" if len(kinds) > 1 else "the map"
            merged = _merged(shared, table_at(kind, where))
            given = table_at(merged.get("provenance", {}), "'provenance'")
            merged["provenance"] = _provenance(given)
            found.append(of_plain(RecordingMap, merged, where))
        return cls(recordings=tuple(found))


def _merged(shared: Mapping[str, object], own: Mapping[str, object]) -> dict[str, object]:
    """Tables merged key by key; the recording's own values count."""
    merged = dict(shared)
    for name, value in own.items():
        merged[name] = value
        if name in ("channels", "provenance", "time") and isinstance(value, Mapping):
            merged[name] = {**table_at(shared.get(name, {}), name), **value}
    return merged


def _si(unit: str) -> str:
    """The SI unit that a recorded unit is converted to."""
    try:
        return si_unit(unit).unit
    except Sim2RealError as error:
        raise Sim2RealError(f"{error} (convert = false keeps it as it is)") from None


def _provenance(data: Mapping[str, object]) -> dict[str, object]:
    """The fields, with a `ScalarSource` for each `{ from = … }`; the others are checked."""
    fixed: dict[str, object] = {"kind": "real"}
    found: dict[str, object] = {}
    for name, value in data.items():
        if isinstance(value, Mapping) and "from" in value:
            found[name] = of_plain(ScalarSource, value, f"provenance: {name}")
            fixed[name] = {"kind": "real", "seed": 0}.get(name, "")
        elif isinstance(value, Mapping):
            entries = {
                key: of_plain(ScalarSource, entry, f"provenance: {name}.{key}")
                if isinstance(entry, Mapping) and "from" in entry
                else entry
                for key, entry in value.items()
            }
            known = {key: v for key, v in entries.items() if not isinstance(v, ScalarSource)}
            found[name], fixed[name] = entries, known
        else:
            found[name] = fixed[name] = value
    Provenance.from_dict(fixed)
    return found
