"""Recordings of the pendulum whose difference from its twin is planted."""

import numpy as np
import torch

from sim2real.logs.control_log import ControlLog
from sim2real.testing import multisine
from sim2real.twin import twin_contract
from sim2real.worlds import open_worlds

RATE_HZ = 50.0


def recorded(twin, *, count=4, seconds=15.0, seed=0, torque=None, **values):
    """Logs of a robot that is the twin, but for `values`; `torque` of (qpos, qvel) acts on it.

    All that is random in the twin is on.
    """
    names = [parameter.name for parameter in twin.parameters]
    rows = np.repeat(twin.best_guess()[None], count, axis=0)
    for name, value in values.get("values", {}).items():
        rows[:, names.index(name)] = value
    worlds = open_worlds(twin, count=count, period_s=1 / RATE_HZ, seed=seed, threads=1)
    everyone = torch.arange(count)
    worlds.set_parameters(torch.from_numpy(rows), everyone)
    worlds.reset(everyone)
    worlds.begin(everyone)
    times = np.arange(round(seconds * RATE_HZ) + 1) / RATE_HZ
    rng = np.random.default_rng(seed)
    limits = worlds.model.actuator_ctrlrange
    command = np.stack([multisine(rng, limits, times) for _ in rows], axis=1)
    readings = np.empty((len(times), count, worlds.model.nsensordata))
    for row, sent in enumerate(command):
        readings[row] = worlds.measured.double().numpy()
        if torque is not None:
            pushed = torque(worlds.state("qpos")[:, 0], worlds.state("qvel")[:, 0])
            worlds.state("qfrc_applied")[:, 0] = pushed
        worlds.step(torch.from_numpy(sent).float())
    contract = twin_contract(twin, RATE_HZ)
    return [
        ControlLog(
            contract=contract,
            episode=f"planted-{seed}-{k}",
            times=times,
            readings=readings[:, k],
            fresh=np.ones((len(times), len(contract.sensors)), dtype=bool),
            command=command[:, k],
        )
        for k in range(count)
    ]
