"""How a robot's joints respond to commands: a linear model learned from simulated episodes.

It predicts two things for each commanded joint: how far its position reading moves within a short
time, from the commands around it, its speed and its weight; and its speed reading, from its
positions. A log that differs has other physics or a broken interface.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace

import mujoco
import numpy as np

from sim2real.arrays import Bools, Floats
from sim2real.contract import Contract
from sim2real.doctor.simulated_reference import ReferenceEpisodes
from sim2real.twin import Twin

_AHEAD_S = 0.12
"""Time ahead that the motion is predicted [s]."""
_BACK_S = 0.10
"""Time for which past commands matter: delays of the bus and of the drive [s]."""
_FIRST_SPEED_ROW = 2
"""Period of the first row of speeds: two differences of positions lie before it."""
_TABLE_SIZE = 1441
"""Angles in the gravity table of a single hinge."""
_NEAR_M = 0.015
"""Geoms closer than this may touch: no calibration is more precise [m]."""
_STOP_MARGIN = 0.04
"""A joint this close to its stop may rest on it [rad or m]."""
_MIN_RANGE_SHARE = 0.05
"""Share of its range that a joint must cover to be judged."""
_MIN_LEAD = 0.05
"""A servo whose command is farther away than this overcomes its friction [rad or m]."""
_BEND_QUANTILES = (0.5, 0.9)
"""Quantiles of the command's lead at which drives may saturate, and the response bends."""


@dataclass(frozen=True)
class ServoJoint:
    """A commanded joint and its columns."""

    name: str
    command: int
    position: int
    speed: int | None
    servo: bool
    """Whether the command is a position."""
    unit: str
    """Of its position reading."""
    qpos: int
    dof: int


@dataclass(frozen=True, kw_only=True)
class JointMotion:
    """One joint's readings and commands in some episodes, (episodes, periods) each."""

    position: Floats
    speed: Floats | None
    command: Floats
    weight: Floats
    """Torque of gravity at the joint [N m or N]."""
    free: Bools
    """Whether nothing fixed is near the robot and the joint is off its stops."""


def joints_of(contract: Contract, twin: Twin) -> list[ServoJoint]:
    """The commanded joints whose position is measured."""
    model = twin.compile().model
    units = {sensor.of: sensor.unit for sensor in contract.sensors if sensor.kind == "jointpos"}
    positions, speeds = contract.columns("jointpos"), contract.columns("jointvel")
    return [
        ServoJoint(
            name=command.joint,
            command=k,
            position=positions[command.joint],
            speed=speeds.get(command.joint),
            servo=command.unit in ("rad", "m"),
            unit=units[command.joint],
            qpos=int(model.joint(command.joint).qposadr[0]),
            dof=int(model.joint(command.joint).dofadr[0]),
        )
        for k, command in enumerate(contract.commands)
        if command.joint in positions
    ]


class Posture:
    """Gravity and possible contact at given joint angles, from the twin's nominal model."""

    def __init__(self, twin: Twin, joints: list[ServoJoint]) -> None:
        self._model = copy.copy(twin.compile().model)
        self._data = mujoco.MjData(self._model)
        self._joints = joints
        self._touch = _can_touch(self._model, joints)
        self._model.geom_margin[:] = _NEAR_M
        self._table: tuple[Floats, Floats] | None = None
        model = self._model
        ids = [model.joint(joint.name).id for joint in joints]
        hinge = int(mujoco.mjtJoint.mjJNT_HINGE)
        if len(joints) == 1 and int(model.jnt_type[ids[0]]) == hinge and not self._touch.any():
            angles = np.linspace(-np.pi, np.pi, _TABLE_SIZE)
            self._table = (angles, self._exact(angles[:, None])[0][:, 0])
        limited = model.jnt_limited[ids].astype(bool)
        self._low = np.where(limited, model.jnt_range[ids, 0] + _STOP_MARGIN, -np.inf)
        self._high = np.where(limited, model.jnt_range[ids, 1] - _STOP_MARGIN, np.inf)

    def __call__(self, positions: Floats) -> tuple[Floats, Bools]:
        """Gravity torques (..., joints), and whether joints are free, of the positions' shape."""
        off_stops = (positions > self._low) & (positions < self._high)
        if self._table is None:
            weight, near = self._exact(positions)
            return weight, off_stops & ~near
        turned = np.mod(positions + np.pi, 2 * np.pi) - np.pi
        return np.interp(turned, *self._table), off_stops

    def _exact(self, positions: Floats) -> tuple[Floats, Bools]:
        model, data = self._model, self._data
        flat = positions.reshape(-1, positions.shape[-1])
        found = np.full(flat.shape, np.nan)
        near = np.zeros(flat.shape, dtype=bool)
        addresses = [joint.qpos for joint in self._joints]
        dofs = [joint.dof for joint in self._joints]
        data.qpos[:] = model.qpos0
        data.qvel[:] = 0.0
        force = np.zeros(model.nv)
        for k in np.flatnonzero(np.isfinite(flat).all(axis=1)):
            data.qpos[addresses] = flat[k]
            mujoco.mj_kinematics(model, data)
            mujoco.mj_comPos(model, data)
            mujoco.mj_rne(model, data, 0, force)
            found[k] = force[dofs]
            if self._touch.any():
                mujoco.mj_collision(model, data)
                near[k] = self._touch[data.contact.geom1, data.contact.geom2].any()
        return found.reshape(positions.shape), near.reshape(positions.shape)


def _can_touch(model: mujoco.MjModel, joints: list[ServoJoint]) -> Bools:
    """(geoms, geoms) whether one belongs to the robot's moving links and the other is fixed."""
    moves = np.zeros(model.nbody, dtype=bool)
    moves[model.dof_bodyid[[joint.dof for joint in joints]]] = True
    for body in range(1, model.nbody):
        moves[body] |= moves[model.body_parentid[body]]
    fixed = (model.body_weldid == 0) & (model.body_mocapid < 0)
    robot, still = moves[model.geom_bodyid], fixed[model.geom_bodyid]
    kind, takes = model.geom_contype, model.geom_conaffinity
    collide = (kind[:, None] & takes[None]) | (takes[:, None] & kind[None])
    off = bool(model.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_CONTACT))
    pairs = (robot[:, None] & still[None]) | (still[:, None] & robot[None])
    return np.asarray(pairs & (collide != 0) & (not off))


class JointResponseModel:
    """Linear models of every joint."""

    def __init__(self, contract: Contract, twin: Twin, reference: list[ReferenceEpisodes]) -> None:
        self.joints = joints_of(contract, twin)
        self.period_s = 1.0 / contract.rate_hz
        self.ahead = max(2, round(_AHEAD_S * contract.rate_hz))
        self.back = max(1, round(_BACK_S * contract.rate_hz))
        self.posture = Posture(twin, self.joints)
        self._bends: list[tuple[float, ...]] = []
        self._fits: list[tuple[_LinearFit, _LinearFit | None]] = []
        self.reference = [self.motions(episodes) for episodes in reference]
        """Each joint's motion in the reference's sets of episodes."""
        for k, joint in enumerate(self.joints):
            sets = [motions[k] for motions in self.reference]
            lead = np.concatenate([(m.command - m.position).ravel() for m in sets])
            self._bends.append(
                tuple(float(b) for b in np.nanquantile(np.abs(lead), _BEND_QUANTILES))
            )
            travel = _fitted([self._features(m, joint) for m in sets], [m.free for m in sets])
            speed = None
            if joint.speed is not None:
                always = [np.ones_like(m.free) for m in sets]
                speed = _fitted([self._speed_features(m) for m in sets], always)
            self._fits.append((travel, speed))

    def motions(self, episodes: ReferenceEpisodes) -> list[JointMotion]:
        """Each joint's part of some episodes."""
        positions = episodes.readings[:, :, [joint.position for joint in self.joints]]
        weights, free = self.posture(positions)
        return [
            JointMotion(
                position=episodes.readings[:, :, joint.position],
                speed=None if joint.speed is None else episodes.readings[:, :, joint.speed],
                command=episodes.command[:, :, joint.command],
                weight=weights[:, :, k],
                free=free[:, :, k],
            )
            for k, joint in enumerate(self.joints)
        ]

    def reweighed(self, motion: JointMotion, joint: ServoJoint) -> JointMotion:
        """The motion with gravity at its own positions, where it is the only joint.

        Behind a position servo, or with several joints, the motion stays as it is.
        """
        if joint.servo or len(self.joints) > 1:
            return motion
        return replace(motion, weight=self.posture(motion.position[:, :, None])[0][:, :, 0])

    def moves_enough(self, motion: JointMotion, k: int) -> bool:
        """Whether the joint moves far enough in the first episode to be judged."""
        span = float(np.ptp(np.nanquantile(self.reference[-1][k].position, (0.02, 0.98))))
        known = motion.position[0][np.isfinite(motion.position[0])]
        return len(known) > 1 and float(np.ptp(known)) > _MIN_RANGE_SHARE * span

    def moving(self, motion: JointMotion, k: int) -> Bools:
        """(episodes, periods) whether the joint's reading clearly changes from there on.

        A joint at rest, held by friction or the table, tells nothing about its driver.
        """
        travel, _ = self._fits[k]
        found: Bools = np.nan_to_num(np.abs(self._gone(motion))) > 2.0 * travel.usual
        if not self.joints[k].servo:
            # A torque that moves nothing is evidence too; a servo may be held by the table.
            features, _ = self._features(motion, self.joints[k])
            predicted = np.nan_to_num(np.abs(features @ travel.weights))
            found[:, self.back : self.back + predicted.shape[1]] |= predicted > 2.0 * travel.usual
        return found

    def _gone(self, motion: JointMotion) -> Floats:
        """(episodes, periods) travel until the end of the prediction; nan where unknown."""
        gone = np.full(motion.position.shape, np.nan)
        position = motion.position
        gone[:, : -self.ahead] = position[:, self.ahead :] - position[:, : -self.ahead]
        return gone

    def speeding(self, motion: JointMotion, k: int) -> Bools:
        """(episodes, periods) whether the position or the speed reading shows motion."""
        found = self.moving(motion, k)
        if motion.speed is not None:
            gone = np.nan_to_num(np.abs(motion.speed)) * self.ahead * self.period_s
            found = found | (gone > 2.0 * self._fits[k][0].usual)
        return found

    def free(self, motion: JointMotion) -> Bools:
        """(episodes, periods) whether nothing is in the way until the end of the prediction."""
        free = motion.free.copy()
        for later in range(1, self.ahead + 1):
            free[:, :-later] &= motion.free[:, later:]
        return free

    def follows(self, motion: JointMotion, moving: Bools) -> float:
        """Share of the first episode's moving periods in which a servo moves towards its command.

        nan with too few periods in which the command is away from the joint.
        """
        lead = motion.command[0] - motion.position[0]
        lead = np.concatenate([[np.nan], lead[:-1]])  # commands take about a period to act
        gone = self._gone(motion)[0]
        use = moving[0] & (np.abs(lead) > _MIN_LEAD) & np.isfinite(gone)
        return float((np.sign(lead[use]) == np.sign(gone[use])).mean()) if use.sum() > 4 else np.nan

    def loss(self, motion: JointMotion, k: int, *, speed: bool) -> Floats:
        """(episodes, periods) robust misfit of the travel of joint `k`, or of its speed.

        Usually about 1; nan where unknown. It grows with the logarithm of the error, so no single
        event decides.
        """
        found = np.full(motion.position.shape, np.nan)
        fit, first = self._fits[k][speed], _FIRST_SPEED_ROW if speed else self.back
        if fit is None or (speed and motion.speed is None):
            return found
        features, target = (
            self._speed_features(motion) if speed else self._features(motion, self.joints[k])
        )
        error = (target - features @ fit.weights) / fit.usual
        found[:, first : first + error.shape[1]] = np.log1p(np.square(error))
        return found

    def _features(self, motion: JointMotion, joint: ServoJoint) -> tuple[Floats, Floats]:
        """Features (episodes, rows, features) and travel (episodes, rows) of each row."""
        back, ahead = self.back, self.ahead
        count = max(0, motion.position.shape[1] - ahead - back)

        def at(series: Floats, k: int) -> Floats:
            return series[:, back + k : back + k + count]

        here = at(motion.position, 0)
        level = here if joint.servo else 0.0
        columns = [at(motion.command, k) - level for k in range(-back, ahead)]
        speed = motion.speed
        if speed is None:
            speed = motion.position
            if count:
                speed = np.gradient(motion.position, self.period_s, axis=1)
        columns += [
            at(speed, 0), at(speed, -1), here - at(motion.position, -1),
            at(motion.weight, 0), np.ones_like(here),
        ]  # fmt: skip
        if joint.servo:
            # The command that acts on the way, after about the delay.
            acting = np.mean([at(motion.command, k) for k in range(-1, ahead - 1)], axis=0) - here
            columns += [np.clip(acting, -b, b) for b in self._bends[self.joints.index(joint)]]
        if not joint.servo and len(self.joints) == 1:
            # Gravity changes on the way: take it at two later positions.
            for share in (0.4, 0.8):
                later = here + share * ahead * self.period_s * at(speed, 0)
                columns.append(self.posture(later[..., None])[0][..., 0])
        return np.stack(columns, axis=-1), at(motion.position, ahead) - here

    def _speed_features(self, motion: JointMotion) -> tuple[Floats, Floats]:
        """Position differences around a moment, and the speed read at it."""
        assert motion.speed is not None
        steps = np.diff(motion.position, axis=1) / self.period_s
        count = max(0, motion.position.shape[1] - 4)
        parts = [steps[:, k : k + count] for k in range(4)]
        return np.stack(parts, axis=-1), motion.speed[:, 2 : 2 + count]


@dataclass(frozen=True)
class _LinearFit:
    """Weights of features, and the usual error of their prediction."""

    weights: Floats
    usual: float


def _fitted(sets: list[tuple[Floats, Floats]], free: list[Bools]) -> _LinearFit:
    """Least squares over all sets of episodes."""
    tables, targets = [], []
    for (features, target), may in zip(sets, free, strict=True):
        use = np.isfinite(features).all(axis=-1) & np.isfinite(target) & may[:, : target.shape[1]]
        tables.append(features[use])
        targets.append(target[use])
    rows, wanted = np.concatenate(tables), np.concatenate(targets)
    size = np.maximum(np.abs(rows).mean(axis=0), 1e-9)
    # The policy's own episodes weigh as much as the others together.
    share = np.concatenate([np.full(len(t), 1.0 / max(1, len(t))) for t in targets])
    matrix = rows / size * np.sqrt(share)[:, None]
    ridge = 1e-4 * np.eye(matrix.shape[1])
    weights = np.linalg.solve(matrix.T @ matrix + ridge, matrix.T @ (wanted * np.sqrt(share)))
    weights = weights / size
    errors = [_usual(table, target, weights) for table, target in zip(tables, targets, strict=True)]
    # A joint that the policy does not move is known only from the other episodes.
    return _LinearFit(weights, max(errors[0], 0.3 * errors[-1], 1e-6))


def _usual(table: Floats, target: Floats, weights: Floats) -> float:
    """Root mean square error without outliers, of the rows with motion."""
    error = target - table @ weights
    error = error[np.abs(target) >= np.quantile(np.abs(target), 0.6)]
    return float(np.sqrt(np.mean(np.square(np.clip(error, *np.quantile(error, (0.02, 0.98)))))))
