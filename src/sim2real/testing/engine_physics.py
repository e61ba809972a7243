"""Motions that are known beforehand, for an engine to make."""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from torch import Tensor

from sim2real.testing.engine_lab import (
    GRAVITY,
    INERTIA,
    LENGTH_M,
    MASS_KG,
    NOISE_RAD,
    PERIOD_S,
    QUANTUM_NM,
    STEP_S,
    EngineLab,
    LeftOut,
    Missing,
    start,
)
from sim2real.testing.engine_promises import Attempt
from sim2real.worlds import Worlds


def _falls(lab: EngineLab) -> None:
    worlds = lab.worlds("weight")
    start(worlds)
    for _ in range(25):
        worlds.step(torch.zeros(worlds.count, 0, device=worlds.device))
    seconds = 25 * PERIOD_S
    speed, height = worlds.state("qvel")[:, 0], worlds.state("qpos")[:, 0]
    fallen = -0.5 * GRAVITY * seconds**2
    if float((speed + GRAVITY * seconds).abs().max()) > 1e-3 * GRAVITY * seconds:
        raise Missing(f"after {seconds:g} s a weight falls at {float(speed[0]):.4g} m/s")
    if float((height - fallen).abs().max()) > 1.1 * GRAVITY * seconds * STEP_S:
        raise Missing(f"after {seconds:g} s a weight has fallen {float(-height[0]):.4g} m")


def _swings(lab: EngineLab) -> None:
    worlds = lab.worlds("pendulum", count=1)
    start(worlds, qpos=0.05)
    angles = [0.05]
    for _ in range(52):
        worlds.step(_torque(worlds, 0.0))
        angles.append(float(worlds.state("qpos")[0, 0]))
    # It is at the bottom after a quarter of its period, and after three.
    bottom = [
        k + angle / (angle - after)
        for k, (angle, after) in enumerate(pairwise(angles))
        if angle * after <= 0 and angle
    ]
    expected = 2 * math.pi * math.sqrt(INERTIA / (MASS_KG * GRAVITY * LENGTH_M))
    found = 2 * PERIOD_S * (bottom[1] - bottom[0]) if len(bottom) > 1 else math.inf
    if abs(found / expected - 1) > 2e-3:
        raise Missing(f"a pendulum swings with a period of {found:.4g} s, not {expected:.4g} s")


def _keeps_energy(lab: EngineLab) -> None:
    worlds = lab.worlds("pendulum", count=1)
    start(worlds, qpos=1.0)
    first = lowest = highest = _energy(worlds)
    for _ in range(60):
        worlds.step(_torque(worlds, 0.0))
        now = _energy(worlds)
        lowest, highest = min(lowest, now), max(highest, now)
    swing = MASS_KG * GRAVITY * LENGTH_M * (1 - math.cos(1.0))
    if max(highest - first, first - lowest) > 0.03 * swing:
        raise Missing(
            f"the energy of an undamped pendulum of {swing:.3g} J goes from {first:.4g} J to"
            f" {lowest:.4g} and {highest:.4g} J"
        )


def _energy(worlds: Worlds) -> float:
    angle, speed = float(worlds.state("qpos")[0, 0]), float(worlds.state("qvel")[0, 0])
    return 0.5 * INERTIA * speed**2 - MASS_KG * GRAVITY * LENGTH_M * math.cos(angle)


def _masses(lab: EngineLab) -> None:
    worlds = lab.worlds("pendulum", count=2)
    values = worlds.values.clone()
    values[:, 0] = torch.tensor([MASS_KG, 2 * MASS_KG])
    start(worlds, values)
    worlds.step(_torque(worlds, 0.5))
    light, heavy = worlds.state("qvel")[:, 0].tolist()
    if not heavy or abs(light / heavy - 2.0) > 0.01:
        raise Missing(f"of two pendulums the one of twice the mass starts {light:.4g}:{heavy:.4g}")


def _delays(lab: EngineLab) -> None:
    if not lab.engine.abilities.delays:
        raise LeftOut("the engine declares no delays")
    worlds = lab.worlds("delayed", count=3)
    periods = [0, 1, 4]
    late = torch.tensor(periods, dtype=torch.float64)[:, None] * PERIOD_S
    start(worlds, late)
    moved = []
    for _ in range(7):
        worlds.step(_torque(worlds, 0.5))
        moved.append(worlds.state("qvel")[:, 0].abs() > 1e-3)
    first = torch.stack(moved).int().argmax(dim=0).tolist()
    if first != periods:
        raise Missing(f"commands delayed by {periods} periods arrive {first} periods later")


def _switches(lab: EngineLab) -> None:
    if not lab.engine.abilities.switches:
        raise LeftOut("the engine declares no switches")
    worlds = lab.worlds("pendulum", count=3, switches=True)
    start(worlds)
    worlds.step(_torque(worlds, 0.5))
    # A motor that is off is one without a torque, though its device keeps the last command.
    sent = torch.tensor([[0.5], [math.nan], [0.0]], device=worlds.device)
    for _ in range(3):
        worlds.step(sent)
    driven, off, still = worlds.state("qvel")[:, 0].tolist()
    if not abs(off - still) < 1e-4 < abs(driven - still):
        raise Missing("a command of nan does not switch an actuator off")
    worlds.step(_torque(worlds, 0.5))
    if not abs(float(worlds.state("qvel")[1, 0]) - off) > 0.01:
        raise Missing("an actuator stays off after a command of nan")


def _noise(lab: EngineLab) -> None:
    worlds = lab.worlds("pendulum", count=40)
    start(worlds)
    errors = []
    for _ in range(25):
        worlds.step(_torque(worlds, 0.0))
        errors.append(worlds.measured[:, 0].double() - worlds.state("qpos")[:, 0])
    found = torch.stack(errors)
    if not abs(float(found.std()) / NOISE_RAD - 1) < 0.15:
        raise Missing("measured readings ignore the twin's noise model")
    if torch.equal(found[:, 0], found[:, 1]):
        raise Missing("all worlds have the same noise")


def _resolution(lab: EngineLab) -> None:
    worlds = lab.worlds("pendulum", count=1)
    start(worlds)
    worlds.step(_torque(worlds, 2.4 * QUANTUM_NM))
    if abs(float(worlds.state("ctrl")[0, 0]) - 2 * QUANTUM_NM) > 1e-6:
        raise Missing("commands ignore the twin's model of them")


def _periods(lab: EngineLab) -> None:
    slow, fast = (lab.worlds("pendulum", period_s=period) for period in (0.04, 0.02))
    for worlds, periods in ((slow, 5), (fast, 10)):
        start(worlds, qpos=1.0)
        for _ in range(periods):
            worlds.step(_torque(worlds, 0.5))
    for name in ("qpos", "qvel"):
        words = "a control period is not as long as it is asked to be"
        lab.same(slow.state(name), fast.state(name), words, exact=False)


def _uneven(lab: EngineLab) -> None:
    if not lab.engine.abilities.varied_timestep:
        raise LeftOut("the engine declares no time steps of each world's own")
    worlds = lab.worlds("uneven", count=2)
    steps = torch.tensor([[0.001], [0.004]], dtype=torch.float64)
    start(worlds, steps, qpos=1.0)
    for _ in range(10):
        worlds.step(_torque(worlds, 0.0))
    fine, coarse = worlds.state("qpos")[:, 0].tolist()
    if fine == coarse or abs(fine - coarse) > 0.03:
        raise Missing("worlds with time steps of their own are not at the same time")


def _torque(worlds: Worlds, torque: float) -> Tensor:
    return torch.full((worlds.count, 1), torque, device=worlds.device)


PHYSICS: dict[str, Attempt] = {
    "lets things fall": _falls,
    "swings a pendulum": _swings,
    "keeps energy": _keeps_energy,
    "moves masses": _masses,
    "delays commands": _delays,
    "switches actuators off": _switches,
    "reads with the twin's noise": _noise,
    "models commands": _resolution,
    "advances by the control period": _periods,
    "gives worlds their own time steps": _uneven,
}
"""Requirements on motions that are known."""
