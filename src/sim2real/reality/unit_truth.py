"""The true parameters of one unit of hardware, which nothing reveals.

A unit is drawn from its number: number 7 is the same robot on every machine. Some of its parameters
lie outside what a twin of the robot assumes, and some have no counterpart in a twin.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from sim2real.arrays import Floats


@dataclass(frozen=True, kw_only=True)
class UnitTruth:
    """True parameters of one unit, with a number per joint or body where there are several."""

    mass_scale: Floats
    """Mass of each body, as a ratio to the nominal."""
    mass_shift_m: Floats
    """Offset of each body's centre of mass, (bodies, 3)."""
    friction: Floats
    """Dry friction of each joint, as a ratio to the nominal."""
    viscous: Floats
    """Viscous friction, as a ratio to the nominal."""
    stribeck: Floats
    """How much more friction there is at rest than in motion."""
    warming: float
    """Share of the dry friction that vanishes as the gears warm up."""
    warm_time_s: float
    """Time constant of warming up in motion [s]."""
    cogging_nm: Floats
    """Amplitude of the torque ripple of each joint."""
    cogging_teeth: Floats
    """Ripples per turn."""
    cogging_phase: Floats
    cable_nm_rad: Floats
    """Stiffness of the cables that the joints drag along."""
    cable_rest_rad: Floats
    eccentricity_rad: Floats
    """Amplitude of the encoder's error once per turn."""
    eccentricity_phase: Floats
    zero_rad: Floats
    """Error of each encoder's zero."""
    motor: Floats
    """Torque of each motor, as a ratio to the nominal."""
    gain: Floats
    """Gain of each servo's position loop, as a ratio to the nominal."""
    supply_v: float
    """Voltage of a full battery, or of the power supply [V]."""
    sag_ohm: float
    """Inner resistance of the supply."""
    discharge_v_s: float
    """Voltage lost per second."""
    command_delay_s: float
    command_jitter_s: float
    sensor_delay_s: float
    sensor_jitter_s: float
    lost: float
    """Share of packets that are lost, each way."""
    velocity_window_s: float
    """Time between the positions whose difference is the firmware's velocity [s]."""
    cube_mass_kg: float
    cube_friction: float
    cube_scale: float
    tracker_bias_m: Floats
    tracker_noise_m: float
    tracker_delay_s: float
    step_s: float
    """Physics step [s]: its numerics differ from the twin's."""


_WORSE: dict[str, dict[str, tuple[float, float]]] = {
    # A motor that is stronger than its data sheet, behind a slow bus.
    "pendulum": {"motor": (1.0, 1.75), "command_delay_s": (0.012, 0.058)},
    # Worn servos with less torque, and links that were printed solid. Reaching needs less of them,
    # so that only weaker ones make it hard.
    "reaching arm": {"motor": (0.475, 0.615), "mass_scale": (1.1, 1.5)},
    "pushing arm": {"motor": (0.59, 0.73), "mass_scale": (1.1, 1.5)},
}
"""Ranges of a robot's units that differ from those of other robots."""


def draw(robot: str, number: int, *, joints: int, bodies: int) -> UnitTruth:
    """The unit with that number."""
    worse = _WORSE.get(robot, {})
    seed = hashlib.sha256(f"unit {number} of {robot}".encode()).digest()
    rng = np.random.default_rng(np.frombuffer(seed, dtype=np.uint32))
    u = rng.uniform
    return UnitTruth(
        mass_scale=u(*worse.get("mass_scale", (0.82, 1.28)), bodies),
        mass_shift_m=rng.normal(0.0, 0.003, (bodies, 3)),
        friction=u(*worse.get("friction", (0.5, 2.2)), joints),
        viscous=u(0.4, 3.0, joints),
        stribeck=u(0.05, 0.5, joints),
        warming=u(0.05, 0.3),
        warm_time_s=u(60.0, 180.0),
        cogging_nm=u(0.0, 1.0, joints),
        cogging_teeth=rng.integers(7, 25, joints).astype(float),
        cogging_phase=u(0.0, 2 * np.pi, joints),
        cable_nm_rad=u(0.0, 1.0, joints),
        cable_rest_rad=u(-0.6, 0.6, joints),
        eccentricity_rad=u(0.0, 0.008, joints),
        eccentricity_phase=u(0.0, 2 * np.pi, joints),
        zero_rad=u(-0.018, 0.018, joints),
        motor=u(*worse.get("motor", (0.88, 1.12)), joints),
        gain=u(0.75, 1.3, joints),
        supply_v=u(10.9, 12.4),
        sag_ohm=u(0.03, 0.25),
        discharge_v_s=u(0.0, 2e-4),
        command_delay_s=u(*worse.get("command_delay_s", (0.006, 0.038))),
        command_jitter_s=u(0.0, 0.005),
        sensor_delay_s=u(0.001, 0.008),
        sensor_jitter_s=u(0.0, 0.002),
        lost=u(0.0, 0.01),
        velocity_window_s=u(0.008, 0.02),
        cube_mass_kg=float(np.exp(u(np.log(0.028), np.log(0.11)))),
        cube_friction=u(0.2, 0.65),
        cube_scale=u(0.92, 1.08),
        tracker_bias_m=u(-0.004, 0.004, 2),
        tracker_noise_m=u(0.0005, 0.003),
        tracker_delay_s=u(0.02, 0.07),
        step_s=float(rng.choice([0.0005, 0.00075, 0.001])),
    )
