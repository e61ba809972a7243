"""Checkpoints that a killed run resumes from, bit for bit.

A checkpoint is one file of tensors and plain values, read with `weights_only=True` (no code can
hide in it), beside a file with its SHA-256. It is written whole or not at all.
"""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any, TypedDict

import torch
from torch import Tensor

from sim2real.errors import Sim2RealError, explaining
from sim2real.files import atomic_path, write_text
from sim2real.tasks import EnvState

_KEPT = 2
"""Number of checkpoints that are kept."""


class Checkpoint(TypedDict):
    """Everything that a killed run needs to continue bit for bit."""

    iteration: int
    seconds: float
    outcomes: list[bool]
    widths: list[list[float]]
    history: list[list[float]]
    learner: dict[str, Any]  # rsl_rl's own
    average: dict[str, Tensor]
    """Weights of the actor, averaged over the last updates."""
    env: EnvState
    rng: Tensor
    twin: str
    """Version of the twin it was trained in."""


def save_checkpoint(folder: Path, iteration: int, content: Checkpoint) -> Path:
    """Write the checkpoint of an iteration; the newest few are kept."""
    buffer = io.BytesIO()
    torch.save(content, buffer)
    data = buffer.getvalue()
    path = folder / f"checkpoint-{iteration:06d}.pt"
    # The digest goes first: a checkpoint without its digest would look damaged.
    write_text(path.with_suffix(".sha256"), hashlib.sha256(data).hexdigest() + "\n")
    try:
        with atomic_path(path) as temporary:
            temporary.write_bytes(data)
    except Sim2RealError:
        path.with_suffix(".sha256").unlink(missing_ok=True)
        raise
    for old in _checkpoints(folder)[:-_KEPT]:
        old.unlink()
        old.with_suffix(".sha256").unlink(missing_ok=True)
    return path


def latest_checkpoint(folder: Path) -> Path:
    """The newest checkpoint of a run."""
    found = _checkpoints(folder)
    if not found:
        raise Sim2RealError(f"{folder} has no checkpoint")
    return found[-1]


def load_checkpoint(path: Path) -> Checkpoint:
    """The content of a checkpoint; a damaged one is a `Sim2RealError` that names an older one."""
    with explaining(f"cannot read the checkpoint {path}", OSError, UnicodeDecodeError):
        data = path.read_bytes()
        digest = path.with_suffix(".sha256").read_text(encoding="utf-8").strip()
    if hashlib.sha256(data).hexdigest() != digest:
        raise _damaged(path)
    try:
        content: Checkpoint = torch.load(io.BytesIO(data), weights_only=True, map_location="cpu")
    except Exception as error:  # torch.load raises whatever its readers raise
        raise _damaged(path) from error
    return content


def _damaged(path: Path) -> Sim2RealError:
    older = [other.name for other in _checkpoints(path.parent) if other != path]
    remedy = f"; delete it to continue from {older[-1]}" if older else ""
    return Sim2RealError(f"the checkpoint {path} is damaged{remedy}")


def _checkpoints(folder: Path) -> list[Path]:
    return sorted(folder.glob("checkpoint-*.pt"))
