"""Logs of motions that a twin makes, as a robot would record them."""

from __future__ import annotations

import numpy as np
import torch

from sim2real.arrays import Floats
from sim2real.contract import Contract
from sim2real.logs import ControlLog
from sim2real.replay.replayer import places_of
from sim2real.twin import Twin
from sim2real.worlds import open_worlds


def simulated_logs(
    twin: Twin,
    contract: Contract,
    values: Floats,
    commands: Floats,
    *,
    before: bool = True,
    seed: int = 0,
    threads: int = 0,
) -> list[ControlLog]:
    """A log of each world, at values (worlds, parameters), with all of the twin's randomness.

    `commands` (periods, worlds, commands) are sent from the twin's default pose; `before` says
    whether the first one was being sent before, too. Readings are nan after a world diverged.
    """
    count, period_s = len(values), 1.0 / contract.rate_hz
    worlds = open_worlds(twin, count=count, period_s=period_s, seed=seed, threads=threads)
    numbers, controls = places_of(worlds.model, contract)
    everyone = torch.arange(count)
    worlds.set_parameters(torch.from_numpy(np.asarray(values, float)), everyone)
    worlds.reset(everyone)
    sent = torch.zeros(count, worlds.model.nu, dtype=torch.float64)
    if before:
        sent[:, controls] = torch.from_numpy(commands[0])
        worlds.state("ctrl").copy_(sent)
    worlds.begin(everyone)
    readings = np.empty((len(commands), count, len(numbers)))
    broken = torch.zeros(count, dtype=torch.bool)
    for row, command in enumerate(commands):
        readings[row] = worlds.measured[:, numbers].double().numpy()
        readings[row, broken.numpy()] = np.nan
        sent[:, controls] = torch.from_numpy(command)
        broken |= worlds.step(sent.float())
    return [
        ControlLog(
            contract=contract,
            episode=f"simulated-{seed}-{k}",
            times=np.arange(len(commands)) / contract.rate_hz,
            readings=readings[:, k],
            fresh=np.ones((len(commands), len(contract.sensors)), dtype=bool),
            command=commands[:, k],
        )
        for k in range(count)
    ]
