"""The engine's own delay buffers: filled at a start, jittered each period.

MuJoCo delays a command or a reading by its history buffer, so a delay costs no Python per physics
step and may be fractional. Here the buffers get the past they should have had at a start, and
the delays in force are written, per world.
"""

from __future__ import annotations

from collections.abc import Callable

import mujoco
import torch
from torch import Tensor

from sim2real.params import Key
from sim2real.twin import elements
from sim2real.worlds.hardware import EffectTables
from sim2real.worlds.noise import NoiseStream


class DelayGroup:
    """The delays of all actuators, or of all sensors, that have a history buffer."""

    def __init__(
        self,
        kind: str,
        model: mujoco.MjModel,
        tables: EffectTables,
        field_of: Callable[[str], Tensor],
        *,
        worlds: Tensor,
        seed: int,
    ) -> None:
        """`kind` is 'actuator' or 'sensor'; `field_of` gives live fields of model and state."""
        history = getattr(model, f"{kind}_history")
        address = getattr(model, f"{kind}_historyadr")
        columns = [elements(model, kind, row) for row in range(len(history))]
        rows = [row for row in range(len(history)) if history[row, 0] > 0 and columns[row]]
        slots: list[int] = []
        sources: list[int] = []
        for row in rows:
            # A buffer is laid out as: user, cursor, one time a sample, then the samples.
            samples = int(history[row, 0])
            at = int(address[row]) + 2 + samples
            slots += range(at, at + samples * len(columns[row]))
            sources += list(columns[row]) * samples
        self.used = bool(rows)
        self._kind = kind
        self._tables = tables
        self._field_of = field_of
        device = worlds.device
        self._rows = _index(rows, device)
        self._columns = _index([columns[row][0] for row in rows], device)
        self._slots = torch.tensor(slots, dtype=torch.int64, device=device)
        self._sources = torch.tensor(sources, dtype=torch.int64, device=device)
        self._jitters = self.used and tables.live(f"{kind}.delay_jitter")
        self._stream = NoiseStream(
            Key.of(seed, f"{kind}/delay"), worlds=worlds, channels=max(1, len(rows))
        )

    def suspend(self, ids: Tensor) -> None:
        """Let worlds `ids` act and read without delay: a start has no past yet."""
        if self.used:
            self._field_of(f"{self._kind}_delay")[ids] = 0.0

    def begin(self, ids: Tensor, values: Tensor) -> None:
        """Fill the buffers of worlds `ids` as if `values` (n, numbers) had always been there."""
        if self.used:
            history = self._field_of("history")
            history[ids[:, None], self._slots] = values[:, self._sources].to(history.dtype)
            self.restore(ids)

    def restore(self, ids: Tensor) -> None:
        """Write the mean delays in force in worlds `ids`."""
        if self.used:
            field = self._field_of(f"{self._kind}_delay")
            delay = field[ids]
            delay[:, self._rows] = self._tables[f"{self._kind}.delay"][ids][:, self._columns].to(
                delay.dtype
            )
            field[ids] = delay

    def jitter(self, tick: int) -> None:
        """Redraw this period's delays around their means."""
        if not self._jitters:
            return
        tables, kind, columns = self._tables, self._kind, self._columns
        shift = self._stream.at(tick) * 2.0 - 1.0
        spread = tables[f"{kind}.delay_jitter"][:, columns]
        delay = torch.addcmul(tables[f"{kind}.delay"][:, columns], spread, shift).clamp_(min=0.0)
        delay = torch.minimum(delay, tables[f"{kind}.delay_max"][:, columns])
        field = self._field_of(f"{kind}_delay")
        field[:, self._rows] = delay.to(field.dtype)


def _index(elements: list[int], device: torch.device) -> slice | Tensor:
    """Elements as a slice where they follow each other, which is cheaper to read and write."""
    if elements and elements == list(range(elements[0], elements[0] + len(elements))):
        return slice(elements[0], elements[0] + len(elements))
    return torch.tensor(elements, dtype=torch.int64, device=device)
