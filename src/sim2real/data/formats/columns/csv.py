"""Columns of CSV files, plain or gzipped; and episodes written as such, exactly."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np
import tomli_w

from sim2real.arrays import Array
from sim2real.data.episode import Episode, Signal
from sim2real.data.formats.channel_map import DTYPES, ChannelMap
from sim2real.data.formats.columns.column_table import ColumnTable, read_bytes, unpacked_limit
from sim2real.data.provenance import Provenance
from sim2real.errors import Sim2RealError, explaining
from sim2real.files import atomic_folder
from sim2real.units import known_si_unit

MAP = "channels.toml"
"""Name of the channel map that `write_csv` puts beside its files."""
_TRUTH = {"true": True, "false": False, "1": True, "0": False}


def read_csv(path: Path, *, header: bool = True) -> ColumnTable:
    """The file's columns by name; without a header, all of them as one column ''.

    Cells are separated by commas, semicolons or tabs, whichever the first line has most of. An
    empty cell is nan. A cell may be a list such as "[0.1, 0.2]".
    """
    data, digest = read_bytes(path)
    if path.suffix == ".gz" or data[:2] == b"\x1f\x8b":
        limit = unpacked_limit(len(data))
        with gzip.open(io.BytesIO(data)) as file:
            data = file.read(limit + 1)
        if len(data) > limit:
            raise Sim2RealError("it decompresses to far more than its own size")
    text = data.decode("utf-8-sig")
    first = text[: text.find("\n")] if "\n" in text else text
    delimiter = max(",;\t", key=first.count)
    lines = csv.reader(io.StringIO(text), delimiter=delimiter, skipinitialspace=True, strict=True)
    rows = [row for row in lines if row]
    if not rows:
        raise Sim2RealError("it is empty")
    names = [name.strip() for name in rows[0]] if header else [""] * len(rows[0])
    names[0] = names[0].removeprefix("#").strip()  # as numpy.savetxt writes it
    if header:
        doubled = next((name for name in names if names.count(name) > 1), None)
        if doubled is not None:
            raise Sim2RealError(f"two columns are named {doubled!r}")
        rows = rows[1:]
    for number, row in enumerate(rows):
        if len(row) != len(names):
            raise Sim2RealError(
                f"row {number + 1} has {len(row)} cells, but the first line has {len(names)}"
            )
    if not header:
        return ColumnTable(loaders={"": partial(_matrix, rows)}, sha256=digest)
    cells = dict(zip(names, zip(*rows, strict=True), strict=True)) if rows else {}
    columns = {name: list(cells.get(name, ())) for name in names}
    return ColumnTable(
        loaders={name: partial(_numbers, name, column) for name, column in columns.items()},
        texts=frozenset(name for name, column in columns.items() if _is_text(column)),
        sha256=digest,
    )


def write_csv(folder: Path, episodes: Iterable[Episode]) -> None:
    """Write each episode into its own folder: a CSV file for each clock, and their channel map.

    Numbers are read back exactly. Videos, and NaNs with a payload, which have no text form,
    are a `Sim2RealError`, and then nothing is written.
    """
    with atomic_folder(folder) as temporary:
        for number, episode in enumerate(episodes):
            with explaining(
                f"episode {episode.id} cannot be written as text", TypeError, ValueError
            ):
                _write_episode(temporary / f"episode_{number:06d}", episode)


def _write_episode(folder: Path, episode: Episode) -> None:
    folder.mkdir()
    time = "@time" if "time" in episode.channels else "time"
    clocks: dict[bytes, dict[str, list[str]]] = {}
    channels: dict[str, object] = {}
    for name, signal in episode.channels.items():
        if not isinstance(signal, Signal):
            raise Sim2RealError(f"channel {name!r} is a video: CSV files hold numbers only")
        key = signal.times.tobytes()
        if key not in clocks:
            clocks[key] = {time: _cells(signal.times, "time")}
        columns = _columns(name, signal)
        clocks[key].update(columns)
        converted = known_si_unit(signal.unit) != (1.0, 0.0, signal.unit)
        channels[name] = {
            "file": f"clock_{list(clocks).index(key)}.csv",
            "from": list(columns),
            "dtype": signal.values.dtype.name,
            **({"shape": list(signal.shape)} if signal.shape else {}),
            **({"unit": signal.unit} if signal.unit else {}),
            **({"convert": False} if converted else {}),
            "time": {"from": time, "stated_hz": signal.stated_hz},
        }
    for number, table in enumerate(clocks.values()):
        with (folder / f"clock_{number}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(table)
            writer.writerows(zip(*table.values(), strict=True))
    written: dict[str, object] = {
        "id": episode.id,
        "outcome": episode.outcome,
        "time": {"from": time},
        "provenance": episode.provenance.to_dict(),
        "channels": channels,
    }
    text = tomli_w.dumps(written)
    (folder / MAP).write_text(text, encoding="utf-8", newline="\n")
    again = ChannelMap.load(folder / MAP).recordings[0].provenance
    if Provenance.from_dict(again) != episode.provenance:
        raise Sim2RealError(f"episode {episode.id}: its provenance cannot be written as TOML")


def _columns(name: str, signal: Signal) -> dict[str, list[str]]:
    """The channel's columns as text, by name: 'q' for single numbers, else 'q[0]', 'q[1]', …"""
    if signal.values.dtype.name not in DTYPES or not math.prod(signal.shape):
        raise Sim2RealError(
            f"channel {name!r} of {signal.values.dtype} and shape {signal.shape} cannot be"
            " written as text"
        )
    flat = signal.values.reshape(len(signal.times), math.prod(signal.shape))
    names = [f"{name}[{i}]" for i in range(flat.shape[1])] if signal.shape else [name]
    return {column: _cells(flat[:, i], name) for i, column in enumerate(names)}


def _cells(values: Array, name: str) -> list[str]:
    """Numbers as text that gives the same bits back, which is checked."""
    if values.dtype.kind == "b":
        return [str(int(value)) for value in values.tolist()]
    if values.dtype.kind in "iu":
        return [str(value) for value in values.tolist()]
    # A nan has a sign too: x86 makes negative ones.
    numbers = values.astype(np.float64).tolist()
    cells = ["-nan" if math.isnan(n) and math.copysign(1, n) < 0 else repr(n) for n in numbers]
    again = np.array([float(cell) for cell in cells]).astype(values.dtype)
    if again.tobytes() != np.ascontiguousarray(values).tobytes():
        raise Sim2RealError(f"channel {name!r} holds a NaN with a payload, not writable as text")
    return cells


def _is_text(cells: list[str]) -> bool:
    """Whether the first nonempty cell of a column is neither a number, a boolean nor a list."""
    cell = next((cell.strip() for cell in cells if cell.strip()), "0")
    if cell.startswith("[") or cell.lower() in _TRUTH:
        return False
    try:
        float(cell)
    except ValueError:
        return True
    return False


def _matrix(rows: list[list[str]], dtype: str) -> Array:
    flat = _numbers("", [cell for row in rows for cell in row], dtype)
    return flat.reshape(len(rows), len(rows[0]), *flat.shape[1:])


def _numbers(name: str, cells: list[str], dtype: str) -> Array:
    """A column of cells as numbers; an error names the row that is not a number."""
    if cells and cells[0].lstrip().startswith("[") and dtype != "bool":
        return _lists(name, cells)
    truths = dtype == "bool" or (cells and cells[0].strip().lower() in ("true", "false"))
    whole = dtype.startswith(("int", "uint"))
    read = _truth if truths else int if whole else float
    found: list[bool | int | float] = []
    try:
        for cell in cells:
            # 1_0 is ten in Python, but not in a log.
            found.append(read(cell.replace("_", "?") or "nan"))
        return np.array(found, bool if truths else dtype if whole else np.float64)
    except (KeyError, ValueError, OverflowError):
        if len(found) == len(cells):
            raise Sim2RealError(f"column {name!r} does not fit {dtype}") from None
        what = "neither true nor false" if truths else "not a number"
        raise Sim2RealError(
            f"column {name!r}, row {len(found) + 1}: {cells[len(found)][:40]!r} is {what}"
        ) from None


def _truth(cell: str) -> bool:
    return _TRUTH[cell.strip().lower()]


def _lists(name: str, cells: list[str]) -> Array:
    """Cells that are lists of the same length, as one array."""
    # Python writes nan and inf, JSON NaN and Infinity.
    text = ",".join(cells).replace("nan", "NaN").replace("inf", "Infinity")
    what = f"column {name!r}: its cells are not lists of the same length, such as [0.1, 0.2]"
    with explaining(what, ValueError, OverflowError, RecursionError):
        found = np.array(json.loads(f"[{text}]"))
    if found.dtype.kind not in "biuf" or found.ndim < 2 or len(found) != len(cells):
        raise Sim2RealError(f"column {name!r}: its cells are not lists of numbers")
    return found.astype(np.float64) if found.dtype.kind in "iu" else found
