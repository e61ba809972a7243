"""The body of a unit: MuJoCo with torques, a time step and an integrator of its own.

Nothing of the package's twins, effects or worlds is used here: drives, friction, cables, gears and
encoders are modelled separately, and differently. A step computes with plain numbers: for one to
six joints, arrays would take three times as long.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np

from sim2real.arrays import Floats, Ints
from sim2real.reality.breakage import BLOCKED_NM, Breakage, worn
from sim2real.reality.unit_truth import UnitTruth, draw


@dataclass(frozen=True, kw_only=True)
class Drive:
    """The nominal drive of a joint."""

    kp_v_rad: float = 0.0
    """Firmware gain from position error to voltage [V/rad]; 0 for a current loop."""
    constant: float = 1.0
    """Torque constant at the joint [N m/A]."""
    resistance: float = 1.0
    """Resistance of the winding [ohm]."""
    torque_nm: float = 1.5
    """Largest torque [N m]."""
    cogging_nm: float = 0.02
    """Torque ripple of a unit whose draw is 1."""
    cable_nm_rad: float = 0.02
    """Cable stiffness of a unit whose draw is 1."""
    quantum_rad: float = 0.00153
    """Resolution of the encoder [rad]."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Shaft:
    """What is hidden in one joint of one unit, in SI units."""

    constant: float
    """Torque constant of its motor."""
    gain: float
    """Gain from position error to voltage."""
    dry: float
    stribeck: float
    cogging: float
    teeth: float
    cogging_phase: float
    cable: float
    cable_rest: float
    eccentricity: float
    eccentricity_phase: float
    zero: float


@dataclass(frozen=True, kw_only=True)
class BodyState:
    """A moment of a body, to go on from."""

    physics: Floats
    numbers: Mapping[str, object]
    """Its other state, by attribute."""
    noise: Mapping[str, object]
    """State of its random numbers."""


_INTEGRATION = mujoco.mjtState.mjSTATE_INTEGRATION
_ATTRIBUTES = ("time_s", "warmth", "volts", "stuck", "damped", "relaxed", "held", "_kept")


class UnitBody:
    """One unit in motion. `command` is a torque [N m] or a position target [rad] per joint."""

    def __init__(
        self, robot: str, number: int, model: Path, drive: Drive, *, old: bool = False
    ) -> None:
        spec = mujoco.MjSpec.from_file(str(model))
        self._make_torque_driven(spec)
        self.model = spec.compile()
        self.joints = [
            j
            for j in range(self.model.njnt)
            if self.model.jnt_type[j] == mujoco.mjtJoint.mjJNT_HINGE
        ]
        self.names = [self.model.joint(j).name for j in self.joints]
        count = len(self.joints)
        self._dofs = _run(self.model.jnt_dofadr[self.joints])
        self._qpos = _run(self.model.jnt_qposadr[self.joints])
        self.hidden = draw(robot, number, joints=count, bodies=self.model.nbody)
        if old:
            self.hidden = worn(self.hidden, number)
        self._drive = drive
        self._rng = np.random.default_rng([number, 8])
        self._apply(self.hidden)
        self.data = mujoco.MjData(self.model)
        self._shafts = [self._shaft(k) for k in range(count)]
        self._angles, self._speeds = self.data.qpos[self._qpos], self.data.qvel[self._dofs]
        self._loss = self.model.dof_frictionloss[self._dofs]
        self._step_s = float(self.model.opt.timestep)
        self.time_s = 0.0
        self.warmth = 0.0
        self.volts = self.hidden.supply_v
        self.command = np.zeros(count)
        self.torque = np.zeros(count)
        """Torque of the drives, before friction [N m]."""
        self.stuck: Floats | None = None
        """What the encoders read from now on, once they have failed."""
        self.broken: Breakage | None = None
        """What breaks in it; None for nothing."""
        self._kept: tuple[float, ...] = ()
        """What its encoders read when they broke."""
        self.relaxed = False
        """Drives without torque, and nothing that brakes."""
        self.damped = True
        """Drives off and the motion braked, as after power-on and in a safe stop."""
        self.held = False
        """A person holds the joints: an arm would sink before its drives are on."""
        mujoco.mj_forward(self.model, self.data)

    @property
    def angles(self) -> Floats:
        """True joint angles [rad]."""
        return np.array(self._angles)

    @property
    def speeds(self) -> Floats:
        """True joint speeds [rad/s]."""
        return np.array(self._speeds)

    def saved(self) -> BodyState:
        """This moment, to go on from it later."""
        physics = np.zeros(mujoco.mj_stateSize(self.model, _INTEGRATION))
        mujoco.mj_getState(self.model, self.data, physics, _INTEGRATION)
        numbers: dict[str, object] = {name: getattr(self, name) for name in _ATTRIBUTES}
        numbers["command"], numbers["torque"] = self.command.copy(), self.torque.copy()
        return BodyState(physics=physics, numbers=numbers, noise=self._rng.bit_generator.state)

    def load(self, state: BodyState) -> None:
        """Go back to a moment; from there on it does what it did."""
        mujoco.mj_setState(self.model, self.data, state.physics, _INTEGRATION)
        mujoco.mj_forward(self.model, self.data)
        mujoco.mj_setState(self.model, self.data, state.physics, _INTEGRATION)
        for name, value in state.numbers.items():
            setattr(self, name, value.copy() if isinstance(value, np.ndarray) else value)
        self._rng.bit_generator.state = dict(state.noise)

    def blind_speed(self) -> float:
        """Speed of the fastest joint whose encoder stands still [rad/s]."""
        speeds = np.abs(self._speeds)
        if self.stuck is not None:
            return float(speeds.max())
        broken = self.broken
        if broken is None or not broken.sticks or not broken.lasts(self.time_s):
            return 0.0
        return float(speeds[list(broken.sticks)].max())

    def place(self, angles: Floats, speeds: Floats | None = None) -> None:
        """A person puts the joints somewhere, by hand."""
        self.data.qpos[self._qpos] = angles
        self.data.qvel[:] = 0.0
        if speeds is not None:
            self.data.qvel[self._dofs] = speeds
        mujoco.mj_forward(self.model, self.data)

    def encoders(self) -> Floats:
        """Joint angles as the encoders read them: with eccentricity, zero error and resolution."""
        return np.array(self._encoders(self._angles.tolist()))

    def currents(self) -> Floats:
        """Torques as the firmware reports them: current times the nominal torque constant [N m]."""
        return np.asarray(np.round(self.torque / self.hidden.motor, 2))

    def advance(self, until_s: float) -> None:
        """Let time pass, in whole physics steps."""
        while self.time_s + 0.5 * self._step_s < until_s:
            self._step()

    def _step(self) -> None:
        step = self._step_s
        if self.held:
            self.time_s += step
            return
        hidden, angles, speeds = self.hidden, self._angles.tolist(), self._speeds.tolist()
        torques = self.torques(angles, speeds)
        warm = 1.0 - hidden.warming * self.warmth
        driven, loss = [], []
        for shaft, torque, angle, speed in zip(self._shafts, torques, angles, speeds, strict=True):
            ripple = math.sin(shaft.teeth * angle + shaft.cogging_phase)
            pull = shaft.cable * (angle - shaft.cable_rest)
            driven.append(torque + shaft.cogging * ripple - pull)
            # Friction falls with speed and with warmth; MuJoCo holds what is below it.
            slow = 1.0 + shaft.stribeck * math.exp(-((speed / 0.15) * (speed / 0.15)))
            loss.append(shaft.dry * slow * warm)
        blocked = self._blocked()
        for k in blocked:
            loss[k] = BLOCKED_NM
        self.torque[:] = torques
        self.data.ctrl[:] = driven
        self._loss[:] = loss
        mujoco.mj_step(self.model, self.data)
        for k in blocked:  # MuJoCo's friction creeps
            self._angles[k], self._speeds[k] = angles[k], 0.0
        self.time_s += step
        moving = min(1.0, sum(abs(speed) for speed in speeds) / len(speeds))
        self.warmth += step / hidden.warm_time_s * (moving - self.warmth)

    def torques(self, angles: Sequence[float], speeds: Sequence[float]) -> list[float]:
        """Torque of each drive."""
        drive, volts = self._drive, self.volts
        if self.relaxed:
            return [0.0] * len(speeds)
        if self.damped:
            return [_within(-0.05 * speed, drive.torque_nm) for speed in speeds]
        # What the firmware of a servo limits is the current, which gives a nominal motor its
        # largest torque.
        most = drive.torque_nm / drive.constant
        command = self.command.tolist()
        seen = self._encoders(angles) if drive.kp_v_rad else command
        found, used = [], 0.0
        for k, shaft in enumerate(self._shafts):
            back = shaft.constant * speeds[k]
            if drive.kp_v_rad:
                duty = _within(shaft.gain * (command[k] - seen[k]) / 12.0, 1.0)
                current = _within((duty * volts - back) / drive.resistance, most)
            else:
                # A current loop gives what is asked for until it has used up the voltage.
                asked = _within(command[k], drive.torque_nm) / drive.constant
                duty = _within((asked * drive.resistance + back) / volts, 1.0)
                current = (duty * volts - back) / drive.resistance
            used += abs(duty * current)
            found.append(shaft.constant * current)
        self._discharge(used)
        return found

    def _encoders(self, angles: Sequence[float]) -> list[float]:
        if self.stuck is not None:
            return list(self.stuck.tolist())
        quantum = self._drive.quantum_rad
        # The last digit of a magnetic encoder is never quite still.
        noise = self._rng.standard_normal(len(angles)).tolist()
        found = []
        for shaft, angle, still in zip(self._shafts, angles, noise, strict=True):
            off = shaft.eccentricity * math.sin(angle + shaft.eccentricity_phase)
            found.append(
                round((angle + off + shaft.zero + 0.35 * quantum * still) / quantum) * quantum
            )
        if self.broken is not None and self.broken.lasts(self.time_s):
            return self._misread(self.broken, found)
        return found

    def _blocked(self) -> tuple[int, ...]:
        broken = self.broken
        return broken.blocks if broken is not None and broken.lasts(self.time_s) else ()

    def _misread(self, broken: Breakage, angles: list[float]) -> list[float]:
        if broken.sticks:
            self._kept = self._kept or tuple(angles)
            for k in broken.sticks:
                angles[k] = self._kept[k]
        if broken.jump_rad and not broken.jumps_on_bus_only:
            angles = [angle + jump for angle, jump in zip(angles, broken.jump_rad, strict=True)]
        return angles

    def _discharge(self, current_a: float) -> None:
        hidden = self.hidden
        full = hidden.supply_v - hidden.discharge_v_s * self.time_s
        least = 6.0
        if self.broken is not None and self.broken.lasts(self.time_s):
            full, least = full * self.broken.supply, least * self.broken.supply
        self.volts = max(full - hidden.sag_ohm * current_a, least)

    def _shaft(self, k: int) -> _Shaft:
        hidden, drive = self.hidden, self._drive
        return _Shaft(
            constant=float(drive.constant * hidden.motor[k]),
            gain=float(drive.kp_v_rad * hidden.gain[k]),
            dry=float(self._dry[k]),
            stribeck=float(hidden.stribeck[k]),
            cogging=float(drive.cogging_nm * hidden.cogging_nm[k]),
            teeth=float(hidden.cogging_teeth[k]),
            cogging_phase=float(hidden.cogging_phase[k]),
            cable=float(drive.cable_nm_rad * hidden.cable_nm_rad[k]),
            cable_rest=float(hidden.cable_rest_rad[k]),
            eccentricity=float(hidden.eccentricity_rad[k]),
            eccentricity_phase=float(hidden.eccentricity_phase[k]),
            zero=float(hidden.zero_rad[k]),
        )

    @staticmethod
    def _make_torque_driven(spec: mujoco.MjSpec) -> None:
        """Put plain motors in place of the model's servos, and remove its sensors."""
        driven = [actuator.target for actuator in spec.actuators]
        for actuator in list(spec.actuators):
            spec.delete(actuator)
        for joint in driven:
            motor = spec.add_actuator(name=joint, target=joint)
            motor.trntype = mujoco.mjtTrn.mjTRN_JOINT
            motor.set_to_motor()
        for sensor in list(spec.sensors):
            spec.delete(sensor)

    def _apply(self, hidden: UnitTruth) -> None:
        model = self.model
        model.opt.timestep = hidden.step_s
        model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICIT
        model.body_mass[:] *= hidden.mass_scale
        model.body_inertia[:] *= hidden.mass_scale[:, None]
        moved = np.array([body_dof > 0 for body_dof in model.body_dofnum])
        model.body_ipos[moved] += hidden.mass_shift_m[moved]
        self._dry = model.dof_frictionloss[self._dofs] * hidden.friction
        model.dof_damping[self._dofs] *= hidden.viscous
        for geom in range(model.ngeom):
            if model.geom(geom).name == "cube":
                body = int(model.geom_bodyid[geom])
                ratio = hidden.cube_mass_kg / float(model.body_mass[body])
                model.body_mass[body] *= ratio
                model.body_inertia[body] *= ratio * hidden.cube_scale**2
                model.body_ipos[body] = 0.0
                model.geom_size[geom] *= hidden.cube_scale
                model.geom_friction[geom, 0] = hidden.cube_friction
                model.geom_rbound[geom] *= hidden.cube_scale
        mujoco.mj_setConst(model, mujoco.MjData(model))


def _run(addresses: Ints) -> slice:
    """Consecutive addresses as a slice, since a view costs next to nothing."""
    first, count = int(addresses[0]), len(addresses)
    assert (addresses == np.arange(first, first + count)).all()
    return slice(first, first + count)


def _within(value: float, most: float) -> float:
    return min(max(value, -most), most)
