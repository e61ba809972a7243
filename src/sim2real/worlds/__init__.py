"""Many simulated copies of a twin, each with its own parameters, advanced together."""

from sim2real.worlds.cpu import CpuWorlds
from sim2real.worlds.open import open_worlds
from sim2real.worlds.protocol import Worlds

__all__ = ["CpuWorlds", "Worlds", "open_worlds"]
