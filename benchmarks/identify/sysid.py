"""Against `mujoco.sysid`: the same or a lower cost, in which share of its time?"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import numpy as np

from benchmarks.benchmark import Result, report
from benchmarks.identify.plan import Plan
from benchmarks.identify.sysid_peer import (
    OPTIMIZERS,
    Shared,
    SysidPeer,
    prepared,
    shared_recording,
)
from sim2real.identification.most_probable import fit
from sim2real.replay.least_squares import LeastSquares
from sim2real.tasks import find_task
from sim2real.testing import clear_multisine
from sim2real.twin import Twin

ARM_JOINTS = (
    "shoulder_pan",
    "shoulder_lift",
    "elbow_flex",
    "wrist_flex",
    "wrist_roll",
    "gripper",
)
MODELS = {
    "pendulum": (
        "pendulum-swingup",
        (
            "body/pole/mass",
            "body/pole/ipos[2]",
            "joint/hinge/damping",
            "joint/hinge/frictionloss",
            "actuator/hinge/gain",
            "actuator/hinge/delay",
        ),
    ),
    "arm": (
        "arm-reach",
        (
            *(
                f"joint/{j}/{a}"
                for a in ("damping", "frictionloss", "armature")
                for j in ARM_JOINTS
            ),
            *(f"actuator/{j}/kp" for j in ARM_JOINTS),
        ),
    ),
}
"""Task whose twin is identified, and its parameters."""
_HORIZON_S = 2.0
_FAR = 0.25
"""Share by which planted values differ from the nominal ones at most."""
_AS_GOOD = 1.01
"""Cost against the lowest with which an optimiser of the peer counts as successful."""


def shared_problem(model: str, *, seconds: float, seed: int) -> Shared:
    """Twin, planted values and a recording of one of `MODELS`."""
    task, names = MODELS[model]
    chosen = find_task(task)
    twin = prepared(Twin.load(chosen.twin, check=False), names)
    rng = np.random.default_rng(seed)
    nominal = np.array([p.nominal for p in twin.parameters])
    low, high = np.array([p.bounds for p in twin.parameters]).T
    truth = nominal * rng.uniform(1 - _FAR, 1 + _FAR, len(nominal))
    times = np.arange(round(seconds * chosen.rate_hz)) / chosen.rate_hz
    command = clear_multisine(rng, twin, times)
    return shared_recording(
        twin, np.clip(truth, low, high), command, rate_hz=chosen.rate_hz, seed=seed
    )


def against_sysid(plan: Plan) -> Iterator[Result]:
    """Time and cost against the better of the peer's optimisers, a model each."""
    for model in MODELS:
        shared = shared_problem(model, seconds=plan.seconds / 2, seed=plan.seed)
        count = len(shared.truth)
        report(f"{model}: {count} parameters, mujoco.sysid")
        peer = SysidPeer(shared, threads=os.cpu_count() or 1)
        found = []
        for optimizer in OPTIMIZERS:
            begin = time.perf_counter()
            values = peer.fit(optimizer)
            found.append((time.perf_counter() - begin, peer.cost(values), optimizer))
        lowest = min(cost for _, cost, _ in found)
        # The quickest of those that found the optimum.
        peer_s, peer_cost, which = min(f for f in found if f[1] <= _AS_GOOD * lowest)
        report(f"{model}: ours")
        begin = time.perf_counter()
        problem = LeastSquares(shared.twin, [shared.log], _HORIZON_S)
        ours = fit(problem, prior=0.0, exact=False)
        seconds = time.perf_counter() - begin
        cost = peer.cost(ours.values)
        others = ", ".join(f"{name} {s:.2g} s, cost {c:.5g}" for s, c, name in found)
        yield Result(
            name=f"identify.time_over_mujoco_sysid.{model}",
            value=seconds / peer_s,
            unit="ratio",
            peer=f"mujoco.sysid.optimize, {which}, x_scale='jac', all cores",
            target="<= 0.2",
            note=f"{count} parameters, {plan.seconds / 2:g} s at"
            f" {shared.log.contract.rate_hz:g} Hz; {seconds:.2g} against {peer_s:.2g} s ({others})",
        )
        yield Result(
            name=f"identify.cost_over_mujoco_sysid.{model}",
            value=cost / peer_cost,
            unit="ratio",
            peer="mujoco.sysid's own objective at both answers",
            target="<= 1.0",
            note=f"{cost:.5g} against {peer_cost:.5g}; {peer.cost(shared.truth):.5g} at the truth",
        )
