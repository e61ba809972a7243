"""Many simulated copies of a twin, each with its own parameters, advanced together.

`Worlds` is what every engine offers; `open_worlds` opens them on an engine by name: `cpu` on this
machine's cores, `warp` on a GPU. State and parameters are tensors with a row per world, and one
call advances every world by a control period.

>>> import torch
>>> from sim2real.tasks import find_task
>>> from sim2real.worlds import open_worlds
>>> worlds = open_worlds(find_task("pendulum-swingup").twin, 2, rate_hz=50.0)
>>> diverged = worlds.step(torch.tensor([[0.0], [1.0]]))
>>> diverged.tolist(), worlds.tick, worlds.measured.shape
([False, False], 1, torch.Size([2, 2]))

An engine of your own brings its `Physics`; `TwinWorlds` puts the rest around it.
"""

from typing import TYPE_CHECKING

from sim2real.lazy import attach

__all__ = [
    "Engine",
    "EngineAbilities",
    "NoiseStream",
    "Physics",
    "TwinWorlds",
    "Worlds",
    "WorldsFailedError",
    "WorldsRequest",
    "WorldsState",
    "engine_names",
    "find_engine",
    "open_worlds",
]

if TYPE_CHECKING:
    from sim2real.worlds.abilities import EngineAbilities
    from sim2real.worlds.engine import Engine, Physics, WorldsFailedError, WorldsRequest
    from sim2real.worlds.noise import NoiseStream
    from sim2real.worlds.protocol import Worlds, WorldsState
    from sim2real.worlds.registry import engine_names, find_engine, open_worlds
    from sim2real.worlds.twin_worlds import TwinWorlds
else:
    __getattr__, __dir__ = attach(__name__, __file__)
