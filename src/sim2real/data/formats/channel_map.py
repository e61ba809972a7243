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
from dataclasses import dataclass, field, fields
from pathlib import Path, PurePosixPath

from sim2real.data.formats.file_errors import naming
from sim2real.data.provenance import Provenance
from sim2real.errors import Sim2RealError, nearest, number_at, table_at
from sim2real.files import read_toml
from sim2real.units import si_unit

DTYPES = ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint64", "uint32",
          "uint16", "uint8", "bool")  # fmt: skip
PLACES = ("@file", "@folder", "@array", "@repeat")


@dataclass(frozen=True, kw_only=True)
class ScalarSource:
    """A value from the recording itself: a scalar of the file, or a name."""

    source: str
    """Name of a scalar in the file, or one of @file, @folder, @array, @repeat."""
    match: str = ""
    """Pattern whose first group is the value; '' for the whole text."""


@dataclass(frozen=True, kw_only=True)
class ClockSource:
    """Where time stamps come from."""

    columns: tuple[str, ...] = ()
    """The time column; empty if only a rate is known."""
    unit: str = "s"
    """Recorded unit of the time column."""
    rate_hz: float | ScalarSource = 0.0
    """Rate that turns row numbers into times where there is no time column [Hz]."""
    stated_hz: float | ScalarSource = 0.0
    """Rate the source claims to have recorded at [Hz]; `rate_hz` if that is given."""


@dataclass(frozen=True, kw_only=True)
class ChannelSource:
    """How a channel is made: selected, made signed, scaled, converted to SI, unwrapped."""

    columns: tuple[str, ...]
    """Columns or array slices, side by side."""
    unit: str = ""
    """Recorded unit, after `scale` and `offset`; the channel is in SI."""
    convert: bool = True
    """Whether to convert to SI; otherwise the channel keeps its recorded unit."""
    scale: float = 1.0
    """Factor on the recorded values."""
    offset: float = 0.0
    """Added after the factor."""
    signed_bits: int = 0
    """Width of a signed register that was read as unsigned; 0 for none."""
    unwrap: bool = False
    """Whether to remove jumps by a full turn, from a channel in rad."""
    dtype: str = ""
    """Type of the values; '' for that of the file."""
    shape: tuple[int, ...] | None = None
    """Shape of one sample, if it is not a plain list."""
    file: str = ""
    """File in the folder that holds it, where several files make one episode."""
    clock: ClockSource | None = None
    """Its own time stamps, if they differ from those of the recording."""


@dataclass(frozen=True, kw_only=True)
class RecordingMap:
    """One kind of recording: its files, their channels and their provenance."""

    files: tuple[str, ...] = ("*",)
    """Patterns of file names, or of folder names where channels name their files."""
    header: bool = True
    """Whether the first line of a CSV file names its columns."""
    rows: str = ""
    """Key of the list of records in a JSON object."""
    episodes: str = ""
    """Pattern of array names, each array an episode; '[0]' and '[1:4]' are columns of it."""
    repeats: bool = False
    """Whether the first axis of the arrays counts repeats, each of them an episode."""
    skip: int = 0
    """Leading rows to skip."""
    clock: ClockSource
    channels: Mapping[str, ChannelSource]
    provenance: Mapping[str, object] = field(default_factory=dict)
    """Fields of the provenance; each `ScalarSource` is looked up in the recording."""
    outcome: str | ScalarSource = ""
    id: str = ""
    """Id of the only episode, in a map that `write_csv` wrote; the content must match."""

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
            return cls.from_dict(read_toml(path))

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> ChannelMap:
        """A channel map from plain data, as TOML gives it."""
        shared = {name: value for name, value in data.items() if name != "recording"}
        kinds = data.get("recording", [{}])
        if not isinstance(kinds, list) or not kinds:
            raise Sim2RealError("'recording' must be a list of tables: [[recording]]")
        found = []
        for number, kind in enumerate(kinds, 1):
            where = f"recording {number}" if len(kinds) > 1 else "the map"
            found.append(_recording(_merged(shared, table_at(kind, where)), where))
        return cls(recordings=tuple(found))


def _merged(shared: Mapping[str, object], own: Mapping[str, object]) -> dict[str, object]:
    """Tables merged key by key; the recording's own values count."""
    merged = dict(shared)
    for name, value in own.items():
        merged[name] = value
        if name in ("channels", "provenance", "time") and isinstance(value, Mapping):
            merged[name] = {**table_at(shared.get(name, {}), name), **value}
    return merged


def _recording(data: Mapping[str, object], where: str) -> RecordingMap:
    data = _renamed(data, "time", "clock")
    _check_keys(data, RecordingMap, where, clock="time")
    if "clock" not in data:
        raise Sim2RealError(f"{where} needs 'time', as {{ from = \"t\" }} or {{ rate_hz = 100 }}")
    channels = {
        name: _channel(table_at(entry, f"channel {name!r}"), f"channel {name!r}")
        for name, entry in table_at(data.get("channels", {}), "'channels'").items()
    }
    if not channels:
        raise Sim2RealError(f"{where} has no channels: add a table like [channels.joint_pos]")
    if len({bool(channel.file) for channel in channels.values()}) > 1:
        raise Sim2RealError(f"{where}: either all channels have a 'file' or none")
    episodes = _text(data, "episodes", where)
    found = RecordingMap(
        files=_texts(data.get("files", "*"), f"{where}: 'files'"),
        header=_flag(data, "header", where, default=True),
        rows=_text(data, "rows", where),
        episodes=episodes,
        repeats=_flag(data, "repeats", where, default=False),
        skip=_count(data, "skip", where),
        clock=_clock(table_at(data["clock"], f"{where}: 'time'"), f"{where}: 'time'"),
        channels=channels,
        provenance=_provenance(table_at(data.get("provenance", {}), "'provenance'")),
        outcome=_scalar_or_text(data.get("outcome", ""), f"{where}: 'outcome'"),
        id=_text(data, "id", where),
    )
    if found.together and (found.episodes or found.repeats):
        raise Sim2RealError(f"{where}: channels with a 'file' cannot make several episodes")
    return found


def _channel(data: Mapping[str, object], where: str) -> ChannelSource:
    data = _renamed(_renamed(data, "from", "columns"), "time", "clock")
    _check_keys(data, ChannelSource, where, columns="from", clock="time")
    if "columns" not in data:
        raise Sim2RealError(f"{where} needs 'from': the column to read")
    bits, dtype = _count(data, "signed_bits", where), _text(data, "dtype", where)
    if bits > 32:
        raise Sim2RealError(f"{where}: a register has at most 32 bits, not {bits}")
    if dtype and dtype not in DTYPES:
        raise Sim2RealError(f"{where}: no dtype {dtype!r}{nearest(dtype, DTYPES)}")
    unit, file = _text(data, "unit", where), _text(data, "file", where)
    unwrap = _flag(data, "unwrap", where, default=False)
    convert = _flag(data, "convert", where, default=True)
    si = _si(unit, where) if convert else unit
    if unwrap and si != "rad":
        raise Sim2RealError(f"{where}: only angles can be unwrapped, and its unit is {unit!r}")
    if file and (PurePosixPath(file).name != file or file in ("..", ".")):
        raise Sim2RealError(f"{where}: 'file' must be a name in the folder, not {file!r}")
    shape = data.get("shape")
    if shape is not None and not (
        isinstance(shape, list) and all(isinstance(n, int) and n >= 0 for n in shape)
    ):
        raise Sim2RealError(f"{where}: 'shape' must be a list of whole numbers, not {shape!r}")
    return ChannelSource(
        columns=_columns(data["columns"], f"{where}: 'from'"),
        unit=unit,
        convert=convert,
        scale=number_at(data.get("scale", 1.0), f"{where}: 'scale'"),
        offset=number_at(data.get("offset", 0.0), f"{where}: 'offset'"),
        signed_bits=bits,
        unwrap=unwrap,
        dtype=dtype,
        shape=None if shape is None else tuple(shape),
        file=file,
        clock=_clock(table_at(data["clock"], f"{where}: 'time'"), f"{where}: 'time'")
        if "clock" in data
        else None,
    )


def _clock(data: Mapping[str, object], where: str) -> ClockSource:
    data = _renamed(data, "from", "columns")
    _check_keys(data, ClockSource, where, columns="from")
    columns = _columns(data["columns"], f"{where}: 'from'") if "columns" in data else ()
    rate = _scalar_or_number(data.get("rate_hz", 0.0), f"{where}: 'rate_hz'")
    if len(columns) > 1 or bool(columns) == bool(rate):
        raise Sim2RealError(f"{where} needs either 'from', a single column, or 'rate_hz'")
    unit = _text(data, "unit", where) or "s"
    if _si(unit, where) != "s":
        raise Sim2RealError(f"{where}: {unit!r} is not a unit of time")
    stated = _scalar_or_number(data.get("stated_hz", rate), f"{where}: 'stated_hz'")
    return ClockSource(columns=columns, unit=unit, rate_hz=rate, stated_hz=stated)


def _si(unit: str, where: str) -> str:
    """The SI unit that a recorded unit is converted to."""
    try:
        return si_unit(unit).unit
    except Sim2RealError as error:
        raise Sim2RealError(f"{where}: {error} (convert = false keeps it as it is)") from None


def _provenance(data: Mapping[str, object]) -> dict[str, object]:
    """The fields, with a `ScalarSource` for each `{ from = … }`; the others are checked."""
    fixed: dict[str, object] = {"kind": "real"}
    found: dict[str, object] = {}
    for name, value in data.items():
        if isinstance(value, Mapping) and "from" in value:
            found[name] = _scalar(value, f"provenance: {name}")
            fixed[name] = {"kind": "real", "seed": 0}.get(name, "")
        elif isinstance(value, Mapping):
            entries = {
                key: _scalar(entry, f"provenance: {name}.{key}")
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


def _scalar(value: Mapping[str, object], where: str) -> ScalarSource:
    data = _renamed(value, "from", "source")
    _check_keys(data, ScalarSource, where, source="from")
    source, match = _text(data, "source", where), _text(data, "match", where)
    if source.startswith("@") and source not in PLACES:
        raise Sim2RealError(f"{where}: unknown {source!r}{nearest(source, PLACES)}")
    try:
        groups = re.compile(match).groups
    except (re.error, RecursionError, OverflowError) as error:
        raise Sim2RealError(f"{where}: 'match' is not a pattern: {error}") from None
    if match and groups != 1:
        raise Sim2RealError(f"{where}: 'match' needs one group in brackets, such as '^([a-z]+)_'")
    return ScalarSource(source=source, match=match)


def _scalar_or_text(value: object, where: str) -> str | ScalarSource:
    if isinstance(value, Mapping):
        return _scalar(value, where)
    if not isinstance(value, str):
        raise Sim2RealError(f"{where} must be text or {{ from = … }}, not {value!r}")
    return value


def _scalar_or_number(value: object, where: str) -> float | ScalarSource:
    if isinstance(value, ScalarSource):
        return value
    if isinstance(value, Mapping):
        return _scalar(value, where)
    number = number_at(value, where)
    if number < 0:
        raise Sim2RealError(f"{where} must not be negative")
    return number


def _columns(value: object, where: str) -> tuple[str, ...]:
    entries = value if isinstance(value, list) else [value]
    if not entries or not all(isinstance(entry, str) and entry for entry in entries):
        raise Sim2RealError(f"{where} must be a column's name or a list of them, not {value!r}")
    return tuple(entries)


def _texts(value: object, where: str) -> tuple[str, ...]:
    found = _columns(value, where)
    wrong = any(entry.startswith("/") or ".." in entry.split("/") for entry in found)
    if wrong or not all(PurePosixPath(entry).parts for entry in found):
        raise Sim2RealError(f"{where} must be patterns of names in the folder, not {value!r}")
    return found


def _text(data: Mapping[str, object], name: str, where: str) -> str:
    value = data.get(name, "")
    if not isinstance(value, str):
        raise Sim2RealError(f"{where}: {name!r} must be text, not {value!r}")
    return value


def _flag(data: Mapping[str, object], name: str, where: str, *, default: bool) -> bool:
    value = data.get(name, default)
    if not isinstance(value, bool):
        raise Sim2RealError(f"{where}: {name!r} must be true or false, not {value!r}")
    return value


def _count(data: Mapping[str, object], name: str, where: str) -> int:
    value = data.get(name, 0)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise Sim2RealError(f"{where}: {name!r} must be a whole number, not {value!r}")
    return value


def _renamed(data: Mapping[str, object], written: str, name: str) -> dict[str, object]:
    """The data with a key of the file, such as 'from', under the name of the field."""
    return {
        (name if key == written else f"{key}!" if key == name else key): value
        for key, value in data.items()
    }


def _check_keys(data: Mapping[str, object], kind: type, where: str, **written: str) -> None:
    names = {entry.name for entry in fields(kind)}
    valid = {written.get(name, name) for name in names}
    for key in data:
        if key not in names:
            known = nearest(key.removesuffix("!"), valid)
            raise Sim2RealError(f"{where} has no key {key.removesuffix('!')!r}{known}")
