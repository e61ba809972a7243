"""Writing files so that a crash, a full disk or a Ctrl-C never leaves half of one."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sim2real.errors import Sim2RealError, one_line, table_at

_MAX_BYTES = 1 << 30


def default_lake() -> str:
    """The default lake: that of the variable SIM2REAL_LAKE, or the folder `lake`.

    Where there is no such folder, but robots have been recorded into `runs/lake`, it is that.
    """
    if given := os.environ.get("SIM2REAL_LAKE"):
        return given
    recorded = not Path("lake").is_dir() and Path("runs/lake").is_dir()
    return "runs/lake" if recorded else "lake"


def results_lake() -> str:
    """Lake of what robots do, if nobody says another: that of the variable SIM2REAL_LAKE, or
    `runs/lake` beside other results. An empty variable is for none."""
    return os.environ.get("SIM2REAL_LAKE", "runs/lake")


@contextmanager
def atomic_path(path: Path | str) -> Iterator[Path]:
    """A temporary path beside `path` that replaces it when the block ends without an error.

    The content is on disk before the name changes. An `OSError` (a full disk, say) becomes a
    `Sim2RealError`, and the temporary file is removed.
    """
    path = Path(path)
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(
            dir=path.parent, prefix=f".{path.stem}-", suffix=path.suffix
        )
        os.close(handle)
        temporary = Path(name)
        yield temporary
        _sync(temporary)
        temporary.chmod(0o644)
        temporary.replace(path)
    except OSError as error:
        raise Sim2RealError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: Path | str) -> Iterator[Path]:
    """A temporary folder beside `path` that becomes it when the block ends without an error.

    `path` must not exist yet: a folder is published once and never edited in place.
    """
    path = Path(path)
    if path.exists():
        raise Sim2RealError(f"{path} exists already; choose a new folder")
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}-"))
        yield temporary
        for file in temporary.rglob("*"):
            if file.is_file():
                _sync(file)
        temporary.chmod(0o755)
        temporary.replace(path)
    except OSError as error:
        raise Sim2RealError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def refuse_file(folder: Path) -> None:
    """Refuse a folder for results that is a file, before anything is computed."""
    if folder.exists() and not folder.is_dir():
        raise Sim2RealError(f"{folder} is a file; --out must be a folder")


def write_text(path: Path | str, text: str) -> None:
    """Replace the file's content by `text`, whole or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path | str, value: Any) -> None:
    """Replace the file's content by `value` as indented JSON, whole or not at all."""
    write_text(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def read_text(path: Path | str) -> str:
    """The text in a file of at most 1 GiB; anything else is a `Sim2RealError`."""
    text: str = _read(path, str, "text")
    return text


def read_json(path: Path | str) -> Any:
    """The JSON value in the file; a missing or malformed file is a `Sim2RealError`."""
    return _read(path, json.loads, "JSON")


def read_toml(path: Path | str) -> dict[str, Any]:
    """The tables of a TOML file; a missing or malformed file is a `Sim2RealError`."""
    found: dict[str, Any] = _read(path, tomllib.loads, "TOML")
    return found


def read_table(path: Path) -> Mapping[str, Any]:
    """The table in a file, JSON by its name or else TOML; anything else is a `Sim2RealError`."""
    return table_at(read_json(path) if path.suffix == ".json" else read_toml(path), f"{path}")


def _read(path: Path | str, parse: Callable[[str], Any], form: str) -> Any:
    try:
        if Path(path).stat().st_size > _MAX_BYTES:
            raise Sim2RealError(f"{path} is too large for {form}: more than 1 GiB")
        return parse(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise Sim2RealError(f"no such file: {path}") from None
    except (OSError, ValueError, RecursionError) as error:  # also a number of 5,000 digits
        raise Sim2RealError(f"{path} is not readable {form}: {one_line(error)}") from error


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
