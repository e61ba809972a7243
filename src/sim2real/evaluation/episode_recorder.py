"""Records worlds as episodes with their provenance."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from sim2real import __version__
from sim2real.arrays import Floats
from sim2real.data import Episode, Origin, Provenance, Signal
from sim2real.tasks import TaskEnv
from sim2real.twin import control_unit, sensor_unit


class EpisodeRecorder:
    """Adds a row per control period: the readings at its start, and the action during it."""

    def __init__(self, env: TaskEnv) -> None:
        self._env = env
        self._rows: list[dict[str, Tensor]] = []
        self._running: list[Tensor] = []

    def add(self, action: Tensor, running: Tensor) -> None:
        """Add one period of the worlds that are still `running` (worlds,)."""
        env, worlds = self._env, self._env.worlds
        clipped = torch.nan_to_num(action).clamp(-1.0, 1.0)
        self._rows.append(
            {
                "measured": worlds.measured.clone(),
                "observation": worlds.memory["frames"][:, -1].clone(),
                "action": clipped,
                "command": env.task.command(clipped, env.measurements).clone(),
                **{f"goal/{name}": worlds.memory[name].clone() for name in env.task.goals},
                "truth/qpos": worlds.state("qpos").clone(),
                "truth/qvel": worlds.state("qvel").clone(),
            }
        )
        self._running.append(running.clone())

    def episodes(self, values: Tensor, *, success: Tensor, policy: str) -> list[Episode]:
        """One episode per world; `values` (worlds, parameters) are the draws."""
        env = self._env
        stacked = {
            name: torch.stack([row[name] for row in self._rows], dim=1).cpu().numpy()
            for name in self._rows[0]
        }
        length = torch.stack(self._running).sum(dim=0).tolist()
        names = [parameter.name for parameter in env.twin.parameters]
        found = []
        for world in range(env.worlds.count):
            source = Provenance(
                kind=Origin.SIMULATED,
                task=env.task.name,
                twin=env.twin.name,
                twin_version=env.twin.version,
                parameters=dict(zip(names, values[world].tolist(), strict=True)),
                seed=env.seed,
                world=world,
                engine=env.worlds.abilities.simulator,
                engine_version=env.worlds.abilities.version,
                policy=policy,
                software={"sim2real": __version__},
            )
            rows = {name: column[world, : length[world]] for name, column in stacked.items()}
            outcome = "success" if bool(success[world]) else "failure"
            found.append(Episode(channels=self._channels(rows), provenance=source, outcome=outcome))
        return found

    def _channels(self, rows: dict[str, Floats]) -> dict[str, Signal]:
        worlds = self._env.worlds
        model, rate_hz = worlds.model, 1.0 / worlds.period_s
        times = np.arange(len(rows["action"]), dtype=np.float64) * worlds.period_s
        channels = {
            name: Signal(times, values, "", rate_hz)
            for name, values in rows.items()
            if name not in ("measured", "command")
        }
        unit = control_unit(model, 0) if model.nu else ""
        channels["command"] = Signal(times, rows["command"], unit, rate_hz)
        for sensor in range(model.nsensor):
            begin, width = int(model.sensor_adr[sensor]), int(model.sensor_dim[sensor])
            values = rows["measured"][:, begin : begin + width]
            name = f"sensor/{model.sensor(sensor).name}"
            channels[name] = Signal(times, values, sensor_unit(model, sensor), rate_hz)
        return channels
