"""Reading and writing episodes in common log formats.

Each format is imported when it is first used; a damaged file is a `Sim2RealError` of one line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from pkgutil import resolve_name

from sim2real.data.episode import Episode
from sim2real.data.formats.channel_map import ChannelMap
from sim2real.data.provenance import Provenance
from sim2real.errors import Sim2RealError, explaining, nearest

FORMATS: dict[str, tuple[str, str]] = {
    "csv": ("columns.read:read_columns", "columns.csv:write_csv"),
    "npz": ("columns.read:read_columns", "columns.npz:write_npz"),
    "json": ("columns.read:read_columns", ""),
    "mat": ("columns.read:read_columns", ""),
    "hdf5": ("hdf5.read:read_hdf5", "hdf5.write:write_hdf5"),
    "mcap": ("mcap.read:read_mcap", "mcap.write:write_mcap"),
    "lerobot": ("lerobot.read:read_lerobot", "lerobot.write:write_lerobot"),
    "recording": ("recording:read_recordings", ""),
}
"""By name: the function that reads a format and the one that writes it ('' if none)."""

_SUFFIXES = {".csv": "csv", ".csv.gz": "csv", ".tsv": "csv", ".npz": "npz", ".json": "json",
             ".mat": "mat", ".hdf5": "hdf5", ".h5": "hdf5", ".mcap": "mcap",
             ".arrow": "recording"}  # fmt: skip
_MAGIC = {
    b"\x89HDF\r\n\x1a\n": "hdf5",
    b"\x89MCAP0\r\n": "mcap",
    b"PK\x03\x04": "npz",
    b"MATLAB 5.0 MAT-file": "mat",
    b"\x1f\x8b": "csv",
    b"{": "json",
    b"[": "json",
}


def detect(path: Path) -> str:
    """The format of a file or folder, by its first bytes and its name.

    A folder is a LeRobot data set, or it holds recordings of our own runs, or it has the format of
    the first log in it.
    """
    path = Path(path)
    if not path.exists():
        raise Sim2RealError(f"no such file or folder: {path}")
    if path.is_dir():
        if (path / "meta" / "info.json").is_file():
            return "lerobot"
        if holds_recordings(path):
            return "recording"
        files = sorted(p for p in path.rglob("*") if p.is_file() and format_by_name(p))
        if not files:
            raise Sim2RealError(f"{path} contains no file of a known format ({', '.join(FORMATS)})")
        # JSON files beside other logs are mostly notes about them.
        return format_by_name(next((p for p in files if p.suffix != ".json"), files[0]))
    with explaining(f"{path} cannot be read", OSError), path.open("rb") as file:
        start = file.read(64)
    by_content = next((kind for magic, kind in _MAGIC.items() if start.startswith(magic)), "")
    if by_content in ("hdf5", "mcap"):
        return by_content
    found = format_by_name(path) or by_content
    if not found:
        raise Sim2RealError(f"the format of {path} is unknown; give one of {', '.join(FORMATS)}")
    return found


def holds_recordings(path: Path) -> bool:
    """Whether a file or folder is of recordings of our own runs on robots."""
    return bool(_files(path, "recording")) if path.is_dir() else format_by_name(path) == "recording"


def read_episodes(
    path: Path,
    *,
    base: Provenance,
    format: str = "",
    channels: ChannelMap | None = None,
    rate_hz: float = 0.0,
) -> Iterator[Episode]:
    """The episodes of a file or folder, one after the other.

    `base` is the provenance that the caller knows; the file completes it. `channels` says how the
    columns of CSV, npz, JSON and MATLAB files become channels. `rate_hz` [Hz] gives times to rows
    without time stamps.
    """
    path = Path(path)
    name = _known(format or ("csv" if channels is not None else detect(path)))
    reader, _ = FORMATS[name]
    read = resolve_name(f"{__name__}.{reader}")
    options: dict[str, object] = {"base": base}
    if reader.startswith("columns."):
        options |= {"channels": channels, "rate_hz": rate_hz}
    elif channels is not None:
        raise Sim2RealError(
            f"{path} is {name}: only CSV, npz, JSON and MATLAB files take a channel map"
        )
    elif name == "hdf5":
        options |= {"rate_hz": rate_hz}
    for one in separate(path, name):
        yield from read(one, **options)


def separate(path: Path, format: str = "") -> list[Path]:
    """What can be read apart: the files of a folder of MCAP or of recordings, else the path."""
    name = format or (detect(path) if path.is_dir() else "")
    if not path.is_dir() or name not in ("mcap", "recording"):
        return [path]
    files = _files(path, name)
    if not files:
        raise Sim2RealError(f"{path} holds no {name} file")
    return files


def write_episodes(
    path: Path,
    episodes: Iterable[Episode],
    *,
    format: str,
    rate_hz: float = 0.0,
    clock: str = "",
) -> None:
    """Write episodes to a file or folder, completely or not at all.

    Formats with a single rate (hdf5, lerobot) use the times of the channel `clock`, or regular ones
    at `rate_hz` [Hz]; the others keep the times of every channel.
    """
    _, writer = FORMATS[_known(format)]
    if not writer:
        able = ", ".join(name for name, (_, written) in FORMATS.items() if written)
        raise Sim2RealError(f"{format} files can only be read; formats to write are {able}")
    suffix = {"npz": ".npz", "hdf5": ".hdf5"}.get(format, "")
    if suffix and Path(path).suffix not in (suffix, ".h5"):
        raise Sim2RealError(f"{path} must end in {suffix}, so that it is recognised as {format}")
    single = {"rate_hz": rate_hz, "clock": clock} if format in ("hdf5", "lerobot") else {}
    if not single and (rate_hz or clock):
        raise Sim2RealError(f"{format} keeps the times of every channel: remove the rate or clock")
    found = iter(episodes)
    first = list(islice(found, 1))
    if not first:
        raise Sim2RealError(f"there are no episodes to write into {path}")
    resolve_name(f"{__name__}.{writer}")(Path(path), chain(first, found), **single)


def _known(name: str) -> str:
    if name not in FORMATS:
        raise Sim2RealError(f"no format {name!r}{nearest(name, FORMATS)}")
    return name


def format_by_name(path: Path) -> str:
    """The format by the ending of a file's name; '' if unknown."""
    return next((kind for end, kind in _SUFFIXES.items() if path.name.lower().endswith(end)), "")


def _files(folder: Path, kind: str) -> list[Path]:
    """Files of a format in a folder; a recording of a run that was killed at once is empty."""
    found = sorted(p for p in folder.rglob("*") if p.is_file() and format_by_name(p) == kind)
    return [p for p in found if p.stat().st_size > 0] if kind == "recording" else found
