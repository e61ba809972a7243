"""Recorded states of a robot, for episodes to start from.

A policy that fails on its robot brings it into states that training never saw: past the top, too
fast, off its path. Episodes that start there teach the way back.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from sim2real.arrays import Floats
from sim2real.errors import Sim2RealError
from sim2real.files import read_json, write_json
from sim2real.plain import of_plain, plain
from sim2real.worlds import Worlds

STARTS_FILE = "starts.json"
SHARE = 0.25
"""Share of the episodes that start in a recorded state; the others start as the task says."""
_PARTS = ("qpos", "qvel", "command")


@dataclass(frozen=True, kw_only=True)
class Starts:
    """States of a robot, each with the last command that it was sent."""

    qpos: Floats
    """(states, nq) in the model's order."""
    qvel: Floats
    """(states, nv)."""
    command: Floats
    """(states, controls)."""
    episodes: tuple[str, ...] = ()
    """Ids of the episodes that they were seen in."""

    def save(self, path: Path) -> None:
        """Write them as JSON."""
        write_json(path, plain(self))

    @classmethod
    def load(cls, path: Path) -> Starts:
        """The states in a file; a malformed one is a `Sim2RealError`."""
        found = of_plain(cls, read_json(path), str(path))
        arrays = [getattr(found, part) for part in _PARTS]
        rows = {len(array) if array.ndim == 2 else -1 for array in arrays}
        if len(rows) != 1 or rows <= {-1, 0} or not all(np.isfinite(a).all() for a in arrays):
            raise Sim2RealError(
                f"{path}: qpos, qvel and command must be rows of numbers, one row per state"
            )
        return found


class Starter:
    """Puts some of the worlds that begin an episode into recorded states of a robot."""

    stream = "starts"
    """Name of the random number it needs."""

    def __init__(self, starts: Starts, worlds: Worlds) -> None:
        self._worlds = worlds
        self._tables: list[tuple[Tensor, Tensor]] = []
        for part, field in zip(_PARTS, ("qpos", "qvel", "ctrl"), strict=True):
            table = torch.from_numpy(getattr(starts, part)).to(worlds.device)
            state = worlds.state(field)
            if table.shape[1:] != state.shape[1:]:
                raise Sim2RealError(
                    f"the states to start from have {table.shape[1]} numbers of {part}, but the"
                    f" model has {state.shape[1]}"
                )
            self._tables.append((state, table))
        self._count = len(starts.qpos)

    def write(self, ids: Tensor, p: Tensor) -> None:
        """After a reset of worlds `ids`, write a recorded state where the draw `p` (n,) says so."""
        chosen = (p < SHARE)[:, None]
        row = (p / SHARE * self._count).long().clamp(max=self._count - 1)
        for state, table in self._tables:
            state[ids] = torch.where(chosen, table[row], state[ids])
        command = self._worlds.memory["command"]
        sent = self._tables[-1][1][row].to(command.dtype)
        command[ids] = torch.where(chosen, sent, command[ids])
