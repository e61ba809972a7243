"""Planted truths and planted faults, to try on your own robot what is claimed here.

A gap is planted in a twin, and recordings are made in that world; an analysis of them should find
what was planted, and nothing else.

>>> import numpy as np
>>> from sim2real.tasks import find_task
>>> from sim2real.testing import plant, recordings
>>> from sim2real.twin import Twin
>>> twin = Twin.load(find_task("pendulum-swingup").twin)
>>> planted = plant(twin, np.random.default_rng(1))
>>> logs = recordings(twin, planted.values[None], seconds=1.0, rate_hz=50.0)

Faults of the interface are put into an episode (`inject`) or between a runner and a robot
(`FaultyRobot`); the doctor should name them. What reaches the joints of a `HostileRobot`, whatever
it says, should stay within limits. An engine of worlds is put to the test by
`check_engine`.
"""

from typing import TYPE_CHECKING

from sim2real.lazy import attach

__all__ = [
    "LEVELS",
    "EngineCheck",
    "EngineRequirement",
    "FaultyRobot",
    "HostileRobot",
    "Misbehaviour",
    "PlantedGap",
    "check_engine",
    "clear_multisine",
    "flown",
    "hostile_contract",
    "hostile_limits",
    "inject",
    "multisine",
    "plant",
    "planted_twin",
    "possible",
    "recordings",
    "truths_of",
]

if TYPE_CHECKING:
    from sim2real.testing.broken_robot import FaultyRobot
    from sim2real.testing.engine_check import EngineCheck, EngineRequirement, check_engine
    from sim2real.testing.faults import LEVELS, inject, possible
    from sim2real.testing.hostile_robot import (
        HostileRobot,
        Misbehaviour,
        hostile_contract,
        hostile_limits,
    )
    from sim2real.testing.motions import clear_multisine, multisine, recordings
    from sim2real.testing.plants import PlantedGap, flown, plant, planted_twin, truths_of
else:
    __getattr__, __dir__ = attach(__name__, __file__)
