"""Against PACE's recipe: CMA-ES on the joints' positions, at the same simulated time.

PACE (Bjelonic et al., "Towards bridging the gap", 2025) fits armature, viscous and dry friction and
the encoder's offset of every joint, and one delay, to a chirp of all joints: whole recordings are
simulated and the mean squared error of positions is handed to CMA-ES over the bounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor

from benchmarks.benchmark import Result, report
from benchmarks.identify.plan import Plan
from benchmarks.identify.sysid import ARM_JOINTS
from sim2real.identification.most_probable import fit
from sim2real.logs.control_log import ControlLog
from sim2real.params import Parameter
from sim2real.replay.least_squares import LeastSquares
from sim2real.tasks import find_task
from sim2real.testing import recordings
from sim2real.twin import Twin
from sim2real.worlds import TwinWorlds, open_worlds

_HORIZON_S = 0.5
_SIGMA = 0.5
"""First step of the search, where bounds are -1 and 1."""
_BIAS, _DELAY = 0.05, 0.045
"""Largest offset of an encoder [rad] and delay [s]."""
_LEAST_ERROR = 1e-6
"""Share of a range below which an error counts as this."""


def pace_twin(twin: Twin) -> Twin:
    """The arm with PACE's parameters, and with no chance but the noise of its sensors."""
    effects = {
        "actuator": {"*": {"delay": 0.02, "delay_max": 0.08}},
        "sensor": {"*_pos": {"noise": 0.001}, "*_vel": {"noise": 0.02}},
    }
    model = twin.compile().model
    found = []
    for joint in ARM_JOINTS:
        dof = int(model.jnt_dofadr[model.joint(joint).id])
        for attribute in ("armature", "damping", "frictionloss"):
            nominal = float(getattr(model, f"dof_{attribute}")[dof])
            found.append(_flat(f"joint/{joint}/{attribute}", nominal, 0.3 * nominal, 3 * nominal))
        found.append(_flat(f"sensor/{joint}_pos/bias", 0.0, -_BIAS, _BIAS))
    found.append(_flat("actuator/*/delay", 0.02, 0.0, _DELAY))
    return replace(twin, effects=effects, events={}, parameters=tuple(found))


def _flat(name: str, nominal: float, low: float, high: float) -> Parameter:
    prior = {"kind": "uniform", "low": low, "high": high}
    return Parameter.of_table(name, {"bounds": [low, high], "prior": prior}, nominal=nominal)


@dataclass
class Simulated:
    """World-seconds that were simulated."""

    seconds: float = 0.0


@contextmanager
def counted() -> Iterator[Simulated]:
    """Count what all worlds simulate meanwhile."""
    total, plain = Simulated(), TwinWorlds.step

    def step(worlds: TwinWorlds, command: Tensor) -> Tensor:
        total.seconds += worlds.count * worlds.period_s
        return plain(worlds, command)

    with patch.object(TwinWorlds, "step", step):
        yield total


class Positions:
    """Whole recordings simulated, and the squared error of the joints' positions."""

    def __init__(self, twin: Twin, log: ControlLog, *, worlds: int) -> None:
        quiet = {**twin.effects, "sensor": {}}
        period_s = 1.0 / log.contract.rate_hz
        self._worlds = open_worlds(replace(twin, effects=quiet), count=worlds, period_s=period_s)
        self._log = log
        self._columns = [
            k for k, spec in enumerate(log.contract.sensors) if spec.name.endswith("_pos")
        ]

    def errors(self, values: np.ndarray) -> np.ndarray:
        """(n,) mean squared errors of vectors (n, parameters), n the number of worlds [rad^2]."""
        worlds, log = self._worlds, self._log
        everyone = torch.arange(worlds.count)
        worlds.set_parameters(torch.from_numpy(values), everyone)
        worlds.reset(everyone)
        worlds.begin(everyone)
        total = np.zeros(worlds.count)
        for row in range(len(log.times) - 1):
            sent = torch.from_numpy(log.command[row]).float().repeat(worlds.count, 1)
            worlds.step(sent)
            off = worlds.measured[:, self._columns].numpy() - log.readings[row + 1, self._columns]
            total += np.square(off).mean(axis=1)
        return total / (len(log.times) - 1)


def cma_es(twin: Twin, log: ControlLog, *, seconds: float, seed: int) -> np.ndarray:
    """(parameters,) the best that CMA-ES finds within so many simulated world-seconds."""
    from cmaes import CMA

    low, high = np.array([p.bounds for p in twin.parameters]).T
    edge = np.tile([-1.0, 1.0], (len(low), 1))
    search = CMA(mean=np.zeros(len(low)), sigma=_SIGMA, bounds=edge, seed=seed)
    positions = Positions(twin, log, worlds=search.population_size)
    each = search.population_size * float(np.ptp(log.times))
    best: np.ndarray = (low + high) / 2
    least, spent = np.inf, 0.0
    while spent + each <= seconds or not np.isfinite(least):
        asked = np.array([search.ask() for _ in range(search.population_size)])
        values = low + (asked + 1) / 2 * (high - low)
        costs = np.nan_to_num(positions.errors(values), nan=1e6, posinf=1e6)
        search.tell(list(zip(asked, costs.tolist(), strict=True)))
        spent += each
        if costs.min() < least:
            best, least = values[int(costs.argmin())], float(costs.min())
    return best


def against_pace(plan: Plan) -> Iterator[Result]:
    """Errors of parameters and of predictions against those of PACE's recipe."""
    task = find_task("arm-reach")
    twin = pace_twin(Twin.load(task.twin, check=False))
    low, high = np.array([p.bounds for p in twin.parameters]).T
    rng = np.random.default_rng(plan.seed)
    truth = low + rng.uniform(0.2, 0.8, len(low)) * (high - low)
    train, test = recordings(
        twin, np.stack([truth, truth]), seconds=plan.seconds, rate_hz=task.rate_hz,
        seed=plan.seed + 2,
    )  # fmt: skip
    report("PACE: ours")
    with counted() as total:
        ours = fit(LeastSquares(twin, [train], _HORIZON_S), prior=0.0).values
    report(f"PACE: CMA-ES for {total.seconds:.0f} simulated seconds")
    theirs = cma_es(twin, train, seconds=total.seconds, seed=plan.seed)
    off = [np.maximum(np.abs(x - truth) / (high - low), _LEAST_ERROR) for x in (ours, theirs)]
    errors = Positions(twin, test, worlds=3).errors(np.stack([ours, theirs, truth]))
    peer = "CMA-ES (cmaes) on mean squared positions of the whole recording, as PACE does"
    how = f"{len(truth)} parameters, {total.seconds:.0f} simulated world-seconds each"
    yield Result(
        name="identify.error_over_pace",
        value=float(np.exp(np.mean(np.log(off[0] / off[1])))),
        unit="ratio",
        peer=peer,
        target="<= 1.0",
        note=f"geometric mean over parameters; median error {np.median(off[0]):.2%} of the range"
        f" against {np.median(off[1]):.2%}; {how}",
    )
    yield Result(
        name="identify.prediction_over_pace",
        value=float(np.sqrt(errors[0] / errors[1])),
        unit="ratio",
        peer=peer,
        note=f"positions of another recording, open loop: {np.sqrt(errors[0]):.5f} against"
        f" {np.sqrt(errors[1]):.5f} rad, {np.sqrt(errors[2]):.5f} at the truth",
    )
