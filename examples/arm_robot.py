"""Simulates the robot in these examples: a one-joint arm that writes CSV logs, as yours may.

It is heavier than the twin in `arm/`, has more damping, and its commands act later. Its equation
of motion is written out here; it shares no code with the twin.
"""

from pathlib import Path

import numpy as np

MASS_KG, LENGTH_M, DAMPING, DELAY_S = 0.65, 0.3, 0.08, 0.03
KP, KV = 6.0, 0.2
READ_S = 0.002
"""Age of a reading when it is logged [s]."""
RATE_HZ, STEP_S = 50, 0.001


def write_log(path: Path, *, seconds: float = 12.0, seed: int = 0) -> Path:
    """Move the arm along random sines, and log time, angle, speed and goal."""
    rng = np.random.default_rng(seed)
    times = np.arange(0, seconds, STEP_S)
    pace, phase = rng.uniform(0.2, 1.5, 4), rng.uniform(0, 2 * np.pi, 4)
    goal = 0.25 * np.sin(2 * np.pi * pace * times[:, None] + phase).sum(axis=1)
    every = round(1 / RATE_HZ / STEP_S)
    goal = np.repeat(goal[::every], every)[: len(times)]  # the controller sends it at 50 Hz
    late, old = round(DELAY_S / STEP_S), round(READ_S / STEP_S)
    inertia = MASS_KG * LENGTH_M**2 / 3
    angle, speed, rows = 0.0, 0.0, []
    states = [(angle, speed)] * (old + 1)
    for k, time in enumerate(times):
        if k % every == 0:
            seen = rng.normal(states[-1 - old], (0.002, 0.03))
            rows.append([1000 * time, *np.degrees([*seen, goal[k]])])
        heard = goal[max(k - late, 0)]
        weight = MASS_KG * 9.81 * LENGTH_M / 2 * np.sin(angle)
        torque = KP * (heard - angle) - (KV + DAMPING) * speed - weight
        speed += STEP_S * torque / inertia
        angle += STEP_S * speed
        states.append((angle, speed))
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savetxt(path, rows, "%.5f", ",", header="t_ms,q_deg,dq_deg_s,goal_deg", comments="")
    return path
