"""Pushes and wind, acting on the worlds' bodies from period to period."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from sim2real.params import Key
from sim2real.twin import Push, Wind
from sim2real.worlds import NoiseStream, Worlds

_AIR_DENSITY = 1.2
_GUST_TIME_S = 1.0


class Events:
    """All events of a twin in its worlds; free if it has none."""

    def __init__(self, worlds: Worlds, *, seed: int) -> None:
        self._worlds = worlds
        events = worlds.events
        everyone = torch.arange(worlds.count, device=worlds.device)
        count = max(1, len(events))
        self._uniform = NoiseStream(Key.of(seed, "events"), worlds=everyone, channels=2 * count)
        self._normal = NoiseStream(
            Key.of(seed, "gusts"), worlds=everyone, channels=count, gaussian=True
        )
        self._pushes, self._winds = (
            [
                (column, worlds.model.body(event.body).id)
                for column, event in enumerate(events.values())
                if isinstance(event, kind)
            ]
            for kind in (Push, Wind)
        )
        shape = (worlds.count, count)
        memory = worlds.memory
        for name in ("event_left_s", "event_angle", "event_gust"):
            memory.setdefault(name, torch.zeros(shape, dtype=torch.float32, device=worlds.device))

    def apply(self) -> None:
        """Write this period's forces into `xfrc_applied`."""
        if not self._pushes and not self._winds:
            return
        worlds = self._worlds
        forces = worlds.state("xfrc_applied")
        touched = {body for _, body in self._pushes + self._winds}
        for body in touched:
            forces[:, body, :3] = 0.0
        draws = self._uniform.at(worlds.tick)
        for column, body in self._pushes:
            self._push(column, draws[:, 2 * column], draws[:, 2 * column + 1], forces[:, body])
        for column, body in self._winds:
            self._blow(column, self._normal.at(worlds.tick)[:, column], forces[:, body])

    def begin(self, ids: Tensor) -> None:
        """End the events in worlds `ids` for a new episode."""
        for name in ("event_left_s", "event_gust"):
            self._worlds.memory[name][ids] = 0.0

    def _push(self, column: int, chance: Tensor, direction: Tensor, force: Tensor) -> None:
        worlds, tables = self._worlds, self._worlds.tables
        left = worlds.memory["event_left_s"][:, column]
        angle = worlds.memory["event_angle"][:, column]
        left -= worlds.period_s
        likely = worlds.period_s / tables["environment.interval"][:, column].clamp(min=1e-6)
        starts = (left <= 0) & (chance < likely)
        left.copy_(torch.where(starts, tables["environment.duration"][:, column], left))
        angle.copy_(torch.where(starts, 2 * math.pi * direction, angle))
        size = torch.where(left > 0, tables["environment.force"][:, column], 0.0)
        force[:, 0] += size * torch.cos(angle)
        force[:, 1] += size * torch.sin(angle)

    def _blow(self, column: int, draw: Tensor, force: Tensor) -> None:
        """Drag of a mean wind with gusts that decay over a second."""
        worlds, tables = self._worlds, self._worlds.tables
        gust = worlds.memory["event_gust"][:, column]
        keep = math.exp(-worlds.period_s / _GUST_TIME_S)
        gust.mul_(keep).add_(
            tables["environment.gust"][:, column] * math.sqrt(1 - keep * keep) * draw
        )
        speed = tables["environment.speed"][:, column] + gust
        force[:, 0] += (
            0.5 * _AIR_DENSITY * tables["environment.area"][:, column] * speed * speed.abs()
        )
