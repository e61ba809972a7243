"""Parameters from forces: the motion as it was measured, and the force the twin says it takes.

Where a log holds the force at the joints, nothing has to be simulated: positions are filtered
without a shift in time and differentiated, and the force of the twin's inverse dynamics is compared
with the measured one. Least squares: fast, without local minima, and with standard deviations. It
knows the bodies, springs, gravity and friction of the twin, nothing of its delays and controllers;
those take `identify`. Dry friction opposes the measured speed: the engine's own, a soft constraint,
would follow the noise of accelerations where the motion turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np
import torch
from scipy.signal import butter, decimate, filtfilt

from sim2real.errors import Sim2RealError
from sim2real.logs.control_log import ControlLog
from sim2real.replay.unknowns import open_parameters
from sim2real.twin import Twin
from sim2real.worlds import open_worlds

_ORDER = 4
"""Of the Butterworth filter, which is run forwards and backwards."""
_CUTOFF = 0.1
"""Its cut-off, as a share of the control rate."""
_KEEP = 10
"""One row in so many is kept, after a second filter that both forces go through."""
_EDGE = 5
"""Kept rows that are dropped at either end, where filters have no past."""
_STEP = 0.1
"""Finite difference, in standard deviations of the prior."""
_ROUNDS = 5
"""Gauss-Newton steps at most; two where the force is linear in the parameters, as it nearly is."""
_ALIKE = 1e-8
"""Smallest eigenvalue of the scaled information with which parameters are told apart."""
_STILL = 1e-3
"""Step that is the last one, in standard deviations of the estimate."""


@dataclass(frozen=True, kw_only=True)
class InverseFit:
    """What forces say of the parameters."""

    names: tuple[str, ...]
    values: np.ndarray
    """(fitted,) estimates, in the parameters' units."""
    std: np.ndarray
    """(fitted,) their standard deviations, if residuals were independent."""
    error: np.ndarray
    """(joints,) norm of what is left against that of the force; nan where no force is measured."""


@dataclass(frozen=True, kw_only=True)
class Motion:
    """A measured motion, and the forces at its joints."""

    qpos: np.ndarray
    """(periods, joints) filtered [rad or m]."""
    qvel: np.ndarray
    """(periods, joints) its central differences."""
    qacc: np.ndarray
    """(periods, joints) and theirs."""
    force: np.ndarray
    """(periods, joints) measured [N m or N]; 0 at joints without an actuator."""


def inverse_fit(
    twin: Twin, logs: Sequence[ControlLog], *, fitted: Sequence[str] = ()
) -> InverseFit:
    """Fit parameters so that inverse dynamics gives the measured forces.

    All open parameters by default. Ones the forces do not tell apart are a `Sim2RealError`, as is a
    log without the positions of all joints or without any force.
    """
    for name in fitted:
        twin.parameter(name)
    open_ = [p for p in open_parameters(twin) if not fitted or p.name in fitted]
    if not open_:
        raise Sim2RealError(f"twin {twin.name!r} has no parameter to fit")
    columns = [twin.parameters.index(parameter) for parameter in open_]
    base = twin.best_guess()
    scales = np.array([parameter.prior_std for parameter in open_])
    low, high = np.array([p.bounds for p in open_]).T
    forces = _Forces(twin, logs)
    values = base.copy()
    predicted = forces.predicted(values)
    for _ in range(_ROUNDS):
        slopes = np.empty((predicted.size, len(open_)))
        for k, column in enumerate(columns):
            moved = values.copy()
            # Towards the far bound, so that it is never left.
            sign = 1.0 if high[k] - values[column] > values[column] - low[k] else -1.0
            moved[column] += sign * _STEP * scales[k]
            slopes[:, k] = (forces.predicted(moved) - predicted).ravel() / (sign * _STEP)
        information = slopes.T @ slopes
        _refuse_alike([parameter.name for parameter in open_], information)
        step = np.linalg.solve(information, slopes.T @ (forces.measured - predicted).ravel())
        values[columns] = np.clip(values[columns] + scales * step, low, high)
        predicted = forces.predicted(values)
        left = (forces.measured - predicted).ravel()
        variance = float(left @ left) / max(1, left.size - len(open_))
        std = np.sqrt(variance * np.diag(np.linalg.inv(information)))
        if (np.abs(step) < _STILL * std).all():
            break
    return InverseFit(
        names=tuple(parameter.name for parameter in open_),
        values=values[columns],
        std=scales * std,
        error=forces.error(values),
    )


def _refuse_alike(names: list[str], information: np.ndarray) -> None:
    """Refuse parameters whose effects on the force are the same, or nothing."""
    size = np.sqrt(np.diag(information))
    if not (size > 0).all():
        raise Sim2RealError(f"no force depends on {names[int(np.argmin(size))]}; leave it out")
    values, vectors = np.linalg.eigh(information / np.outer(size, size))
    if values[0] < _ALIKE:
        alike = [n for n, weight in zip(names, vectors[:, 0], strict=True) if abs(weight) > 0.3]
        raise Sim2RealError(f"these forces do not tell {' and '.join(alike)} apart; fit fewer")


def inverse_error(
    twin: Twin, logs: Sequence[ControlLog], values: np.ndarray | None = None
) -> np.ndarray:
    """(joints,) norm of measured less predicted force against that of the measured one.

    `values` (parameters,) are the twin's best guess by default; nan at joints without a force.
    """
    return _Forces(twin, logs).error(twin.best_guess() if values is None else values)


def measured_motion(twin: Twin, log: ControlLog) -> Motion:
    """Positions of a log's joints, their derivatives, and forces; of hinges and slides only."""
    model = twin.compile().model
    hinged = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))
    if any(int(kind) not in hinged for kind in model.jnt_type):
        raise Sim2RealError(f"twin {twin.name!r} has joints that are no hinges or slides")
    qpos = np.full((len(log.times), model.nv), np.nan)
    force = np.full((len(log.times), model.nv), np.nan)
    driven = {int(model.actuator_trnid[k, 0]) for k in range(model.nactuator)}
    for joint in range(model.nv):
        if joint not in driven:
            force[:, joint] = 0.0
    for spec in log.contract.sensors:
        row = model.sensor(spec.name).id
        kind, thing = int(model.sensor_type[row]), int(model.sensor_objid[row])
        values = log.readings[:, log.column(spec.name)]
        if kind == int(mujoco.mjtSensor.mjSENS_JOINTPOS):
            qpos[:, thing] = values[:, 0]
        elif kind == int(mujoco.mjtSensor.mjSENS_JOINTACTFRC):
            force[:, thing] = values[:, 0]
    if not np.isfinite(qpos).all():
        raise Sim2RealError(f"episode {log.episode} lacks positions of some joints or periods")
    if not (np.isfinite(force).all(axis=0) & (force != 0).any(axis=0)).any():
        raise Sim2RealError(
            f"episode {log.episode} has no forces: the twin needs a jointactuatorfrc sensor, and"
            " the log a channel for it"
        )
    if len(log.times) < _KEEP * (2 * _EDGE + 10):
        raise Sim2RealError(f"episode {log.episode} has {len(log.times)} periods: too few")
    step_s = float(np.median(np.diff(log.times)))
    smooth = filtfilt(*butter(_ORDER, 2 * _CUTOFF), qpos, axis=0)
    speed = np.gradient(smooth, step_s, axis=0)
    return Motion(qpos=smooth, qvel=speed, qacc=np.gradient(speed, step_s, axis=0), force=force)


class _Forces:
    """Measured forces of all logs, and those of the twin for any parameters."""

    def __init__(self, twin: Twin, logs: Sequence[ControlLog]) -> None:
        if any(effects.static_friction > 0 for effects in twin.compile().effects.joints.values()):
            raise Sim2RealError(
                f"twin {twin.name!r} has Stribeck friction, which remembers; inverse dynamics does"
                " not"
            )
        self._motions = [measured_motion(twin, log) for log in logs]
        self._worlds = open_worlds(twin, count=1, period_s=float(twin.compile().model.opt.timestep))
        thin = np.concatenate([_thinned(motion.force) for motion in self._motions])
        self._known = np.isfinite(thin).all(axis=0)
        self.measured = thin[:, self._known]
        """(rows, joints with forces) [N m or N]."""

    def predicted(self, values: np.ndarray) -> np.ndarray:
        """(rows, joints with forces) what the twin's inverse dynamics takes for the motion."""
        worlds, one = self._worlds, torch.arange(1)
        worlds.set_parameters(torch.from_numpy(values[None]), one)
        worlds.reset(one)
        worlds.begin(one)
        model, data = worlds.world(0)
        found = [_thinned(self._inverse(model, data, motion)) for motion in self._motions]
        return np.concatenate(found)[:, self._known]

    def error(self, values: np.ndarray) -> np.ndarray:
        """(joints,) relative error, nan where no force is measured."""
        left = np.linalg.norm(self.predicted(values) - self.measured, axis=0)
        whole = np.linalg.norm(self.measured, axis=0)
        found = np.full(len(self._known), np.nan)
        found[self._known] = np.where(whole > 0, left / np.where(whole > 0, whole, 1.0), np.nan)
        return found

    def _inverse(self, model: mujoco.MjModel, data: mujoco.MjData, motion: Motion) -> np.ndarray:
        """(periods, joints) force of one motion."""
        dry = self._friction("dof_frictionloss", motion) * np.sign(motion.qvel)
        leaning = self._friction("dof_damping", motion)
        model.dof_frictionloss[:] = 0.0
        damping, force = model.dof_damping, np.empty_like(motion.qpos)
        qpos, qvel, qacc, found = data.qpos, data.qvel, data.qacc, data.qfrc_inverse
        for k in range(len(force)):
            qpos[:], qvel[:], qacc[:] = motion.qpos[k], motion.qvel[k], motion.qacc[k]
            damping[:] = leaning[k]
            mujoco.mj_inverse(model, data)
            force[k] = found
        total: np.ndarray = force + dry
        return total

    def _friction(self, field: str, motion: Motion) -> np.ndarray:
        """(periods, joints) what a field of friction is at the motion's speeds."""
        worlds, velocity = self._worlds, torch.from_numpy(motion.qvel)
        if field not in worlds.friction.leans:
            return np.repeat(worlds.field(field).numpy(), len(velocity), axis=0)
        world = torch.zeros(len(velocity), dtype=torch.int64)
        return worlds.friction(field, velocity, None, world).numpy()


def _thinned(force: np.ndarray) -> np.ndarray:
    """(rows, joints) one row in `_KEEP`, filtered without a shift, without the edges."""
    known = np.nan_to_num(force)
    found: np.ndarray = decimate(known, _KEEP, ftype="fir", axis=0, zero_phase=True)[_EDGE:-_EDGE]
    found[:, ~np.isfinite(force).all(axis=0)] = np.nan
    return found
