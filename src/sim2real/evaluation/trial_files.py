"""Trials in files: CSV or JSON rows, or the output of an evaluation."""

from __future__ import annotations

import csv
import math
import zlib
from collections.abc import Mapping
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from sim2real.errors import Sim2RealError, one_line
from sim2real.evaluation.evaluation import SimulatedTrials
from sim2real.evaluation.trial import Trial, trials_of_worlds
from sim2real.files import read_json

_TRUE, _FALSE = ("1", "1.0", "true", "yes", "success"), ("0", "0.0", "false", "no", "failure")

_BROKEN = (
    OSError, ValueError, LookupError, TypeError, EOFError, RuntimeError, MemoryError, BadZipFile,
    zlib.error,
)  # fmt: skip
"""What numpy and zipfile raise for a file that is damaged or of another kind."""


def read_trials(path: Path) -> list[Trial]:
    """Trials from CSV, from a JSON list of rows, or from the folder of an evaluation.

    A row needs `success`; the other columns are the fields of a `Trial`. A bad row is a
    `Sim2RealError` that names it.
    """
    if path.is_dir() or path.name == "trials.npz":
        trials, policy = read_worlds(path / "trials.npz" if path.is_dir() else path)
        return trials_of_worlds(trials, policy=policy)
    return [
        _of_row(row, f"{path}, row {number}", path.stem)
        for number, row in enumerate(read_rows(path), 1)
    ]


def read_rows(path: Path) -> list[Mapping[str, object]]:
    """Rows of a CSV file with a header, or of a JSON list of objects."""
    if path.suffix == ".json":
        data = read_json(path)
        if not isinstance(data, list) or not all(isinstance(row, dict) for row in data):
            raise Sim2RealError(f"{path} must be a list of rows, each an object")
        rows: list[Mapping[str, object]] = data
    else:
        try:
            with path.open(newline="", encoding="utf-8-sig") as file:
                rows = list(csv.DictReader(file, strict=True))
        except FileNotFoundError:
            raise Sim2RealError(f"no such file: {path}") from None
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise Sim2RealError(f"{path} is not a readable table: {one_line(error)}") from None
        for number, row in enumerate(rows, 1):
            if None in row or None in row.values():
                raise Sim2RealError(f"{path}, row {number} does not fit the header")
    if not rows:
        raise Sim2RealError(f"{path} holds no rows")
    return rows


def _of_row(row: Mapping[str, object], where: str, name: str) -> Trial:
    texts = {column: text for column, value in row.items() if (text := text_in(value))}
    said = texts.get("success", "").lower()
    if said not in _TRUE + _FALSE:
        raise Sim2RealError(f"{where}: success must be 1 or 0, not {said[:40]!r}")
    reward, seed = (number_in(texts.get(one), f"{where}: {one}") for one in ("reward", "seed"))
    numbers = {"reward": reward, "seed": None if seed is None else int(seed)}
    return Trial.from_dict({"policy": name, **texts, **numbers, "success": said in _TRUE}, where)


def text_in(value: object) -> str:
    """The text of a cell without surrounding spaces; '' for an empty one."""
    return "" if value is None else str(value).strip()


def number_in(value: object, where: str) -> float | None:
    """The number in a cell, None in an empty one; anything else is a `Sim2RealError`."""
    if value is None or value == "":
        return None
    try:
        found = float(str(value))
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise Sim2RealError(f"{where} must be a number, not {str(value)[:40]!r}")
    return found


def read_worlds(path: Path) -> tuple[SimulatedTrials, str]:
    """What an evaluation wrote: trials, and the policy's id."""
    if not path.is_file():
        raise Sim2RealError(f"no trials in {path.parent}: `sim2real evaluate` writes trials.npz")
    try:
        with np.load(path, allow_pickle=False) as data:
            trials = SimulatedTrials(
                task=str(data["task"]),
                twin=str(data["twin"]),
                seed=int(data["seed"]),
                names=tuple(str(name) for name in data["names"]),
                values=data["values"],
                success=data["success"],
                reward=data["reward"],
                diverged=data["diverged"],
                per_seed=int(data["per_seed"]),
                each=int(data["each"]),
            )
            _check(trials)
            return trials, str(data["policy"])
    except _BROKEN as error:
        raise Sim2RealError(
            f"{path} does not hold trials ({one_line(error)}); run `sim2real evaluate` again"
        ) from None


def _check(trials: SimulatedTrials) -> None:
    """Refuse trials whose columns do not match; the caller names the file."""
    if trials.per_seed < 1 or trials.each < 1:
        raise ValueError(f"{trials.per_seed} trials per seed, {trials.each} per draw")
    rows, columns = trials.values.shape
    lengths = {rows, *(len(column) for column in (trials.success, trials.reward, trials.diverged))}
    if len(lengths) > 1 or columns != len(trials.names):
        raise ValueError("its columns have different lengths")
    if not np.isin(trials.success, (0, 1)).all():
        raise ValueError("success must be 1 or 0")
