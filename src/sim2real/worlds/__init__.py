"""Many simulated copies of a twin, each with its own parameters, advanced together.

`Worlds` is the protocol of an engine; `CpuWorlds` is the one on this machine's cores. State and
parameters are tensors with a row per world, and one call advances every world by a control period.
Results are bit-identical at any number of threads.

>>> import torch
>>> from sim2real.tasks import find_task
>>> from sim2real.twin import Twin
>>> from sim2real.worlds import CpuWorlds
>>> worlds = CpuWorlds(Twin.load(find_task("pendulum-swingup").twin), count=2, period_s=0.02)
>>> diverged = worlds.step(torch.tensor([[0.0], [1.0]]))
>>> diverged.tolist(), worlds.tick, worlds.measured.shape
([False, False], 1, torch.Size([2, 2]))
"""

from typing import TYPE_CHECKING

from sim2real.lazy import attach

__all__ = ["CpuWorlds", "NoiseStream", "Worlds", "WorldsState", "open_worlds"]

if TYPE_CHECKING:
    from sim2real.worlds.cpu import CpuWorlds
    from sim2real.worlds.noise import NoiseStream
    from sim2real.worlds.open import open_worlds
    from sim2real.worlds.protocol import Worlds, WorldsState
else:
    __getattr__, __dir__ = attach(__name__, __file__)
