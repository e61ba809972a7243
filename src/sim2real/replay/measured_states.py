"""A robot's state at any time, measured from the log of its sensors.

A reading shows a past value, delayed, scaled and shifted by its sensor. This undoes it with each
world's own sensor parameters, so the state written into a world is the one that this world's
sensors would report as in the log.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import mujoco
import numpy as np
import torch

from sim2real.arrays import Bools, Floats
from sim2real.errors import Sim2RealError
from sim2real.logs import ControlLog
from sim2real.worlds import Worlds

_FITTED_READINGS = 5
"""Readings in a fit of a position and its speed, if no sensor measures the speed."""
_FREE, _BALL = int(mujoco.mjtJoint.mjJNT_FREE), int(mujoco.mjtJoint.mjJNT_BALL)
_SENSOR = mujoco.mjtSensor
_POSITIONS = (int(_SENSOR.mjSENS_JOINTPOS), int(_SENSOR.mjSENS_TENDONPOS))
_SPEEDS = (int(_SENSOR.mjSENS_JOINTVEL), int(_SENSOR.mjSENS_TENDONVEL))


@dataclass(frozen=True)
class _Track:
    """One measured coordinate over time, and the numbers of the state that it gives."""

    times: Floats
    """(knots,) times of new readings [s]."""
    values: Floats
    """(knots,) readings."""
    rates: Floats
    """(knots,) their time derivative [1/s]."""
    reading: int
    """Index among the numbers of the model's sensors, whose delay, scale and bias it has."""
    qpos: int
    """Index in qpos; -1 if it gives a speed only."""
    qvel: int
    """Index in qvel; -1 if it gives a position only."""
    offset: float = 0.0
    """The sensor's position in its body, which is subtracted [m]."""
    fitted: bool = False
    """Whether its rates come from its values, because no sensor measures them."""


class MeasuredStates:
    """The measured part of a robot's state at any time of a log."""

    def __init__(self, model: mujoco.MjModel, log: ControlLog) -> None:
        self._model = model
        self._log = log
        self._tracks = list(self._find())
        self._turns = list(self._find_turns())
        if not self._tracks:
            raise Sim2RealError(
                f"episode {log.episode}: no reading gives a joint's position, so nothing can be"
                " replayed from it"
            )
        given = {track.qpos for track in self._tracks}
        self.assumed = tuple(
            model.joint(k).name for k in range(model.njnt) if int(model.jnt_qposadr[k]) not in given
        )
        """Joints that no sensor measures; they start at the model's default."""
        self.coordinates = tuple(
            [("qpos", track.qpos) for track in self._tracks if track.qpos >= 0]
            + [("qvel", track.qvel) for track in self._tracks if track.qvel >= 0]
        )
        """(field, index) of every measured number of the state."""

    def known(self, times: Floats, longest_gap_s: float) -> Bools:
        """(n,) whether all measured coordinates have readings close enough to each time."""
        good = np.ones(len(times), dtype=bool)
        for track in self._tracks:
            after = np.searchsorted(track.times, times - 1e-9)
            inside = after < len(track.times)
            after = np.minimum(after, len(track.times) - 1)
            before = np.maximum(np.searchsorted(track.times, times + 1e-9) - 1, 0)
            good &= inside & (track.times[0] <= times + 1e-9)
            good &= track.times[after] - track.times[before] <= longest_gap_s
        return good

    def noise(self, reading_noise: Floats, period_s: float) -> Floats:
        """(coordinates,) noise of the measured state, from that of each number of the sensors."""
        places = [track for track in self._tracks if track.qpos >= 0]
        rates = [track for track in self._tracks if track.qvel >= 0]
        # Of a parabola through `_FITTED_READINGS` readings, at its middle.
        still, moving = math.sqrt(17 / 35), 1 / (math.sqrt(10) * period_s)
        found = [reading_noise[t.reading] * (still if t.fitted else 1.0) for t in places]
        found += [reading_noise[t.reading] * (moving if t.fitted else 1.0) for t in rates]
        return np.array(found)

    def write(self, worlds: Worlds, times: Floats, shift: Floats | None = None) -> None:
        """Put every world into the state measured at its own time (worlds,) [s], plus `shift`
        (worlds, coordinates)."""
        qpos, qvel = worlds.state("qpos"), worlds.state("qvel")
        delay, scale, bias = (
            worlds.tables[f"sensor.{name}"].numpy().astype(float)
            for name in ("delay", "scale", "bias")
        )
        # The engine reads sensors at the start of the last physics step of a period.
        step_s = float(self._model.opt.timestep)
        for track in self._tracks:
            at = times + delay[:, track.reading] + step_s
            gain, zero = scale[:, track.reading], bias[:, track.reading]
            value, rate = _between(track, at)
            if track.qpos >= 0:
                place = (value - zero) / gain - track.offset
                qpos[:, track.qpos] = torch.from_numpy(place)
            if track.qvel >= 0:
                speed = rate / gain if track.qpos >= 0 else (value - zero) / gain
                qvel[:, track.qvel] = torch.from_numpy(speed)
        for knots, values, reading, address in self._turns:
            turn = _turned(knots, values, times + delay[:, reading] + step_s)
            qpos[:, address : address + 4] = torch.from_numpy(turn)
        if shift is not None:
            for column, (field, place) in enumerate(self.coordinates):
                worlds.state(field)[:, place] += torch.from_numpy(shift[:, column])

    def _find(self) -> Iterator[_Track]:
        """Tracks of measured joints and free bodies: positions, and speeds if they are measured."""
        model, nowhere = self._model, np.zeros(1)
        speeds = {joint: row for row, joint in self._joint_sensors(_SPEEDS)}
        for row, joint in self._joint_sensors(_POSITIONS):
            yield from self._motion(row, speeds.get(joint), joint, nowhere)
        # Away from the joint, velocity also depends on rotation.
        linear = self._body_sensors(int(_SENSOR.mjSENS_FRAMELINVEL))
        speeds = {joint: row for row, joint, offset in linear if not offset.any()}
        for row, joint, offset in self._body_sensors(int(_SENSOR.mjSENS_FRAMEPOS)):
            yield from self._motion(row, speeds.get(joint), joint, offset)
        for row in self._rows():
            site = int(model.sensor_objid[row])
            if int(model.sensor_type[row]) != int(_SENSOR.mjSENS_GYRO):
                continue
            joint = int(model.body_jntadr[model.site_bodyid[site]])
            # A free joint's angular velocity is in the body's frame, like an aligned gyroscope's.
            in_line = abs(float(model.site_quat[site, 0])) > 1 - 1e-9
            if joint >= 0 and int(model.jnt_type[joint]) == _FREE and in_line:
                yield from self._speeds(row, int(model.jnt_dofadr[joint]) + 3)

    def _motion(self, row: int, speed: int | None, joint: int, offset: Floats) -> Iterator[_Track]:
        """Tracks of a position sensor that is `offset` from the joint, and of the speed sensor, or
        else of the speeds that a fit of the positions gives."""
        model = self._model
        qpos, qvel = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
        at = int(model.sensor_adr[row])
        times, values = self._readings(row)
        fast, rates = (np.zeros(0), values) if speed is None else self._readings(speed)
        for k in range(len(offset)):
            place = float(offset[k])
            if len(fast) and len(times):
                slopes = np.interp(times, fast, rates[:, k])
                yield _Track(times, values[:, k], slopes, at + k, qpos + k, -1, place)
            elif len(times) >= _FITTED_READINGS:
                yield _fitted(times, values[:, k], at + k, qpos + k, qvel + k, place)
        if len(times) and speed is not None:
            yield from self._speeds(speed, qvel)

    def _speeds(self, row: int, qvel: int) -> Iterator[_Track]:
        """Tracks of a sensor that measures speeds only."""
        times, values = self._readings(row)
        at, unused = int(self._model.sensor_adr[row]), np.zeros(len(times))
        for k in range(values.shape[1]) if len(times) else ():
            yield _Track(times, values[:, k], unused, at + k, -1, qvel + k)

    def _find_turns(self) -> Iterator[tuple[Floats, Floats, int, int]]:
        """(times, quaternions, reading, index in qpos) of free bodies of known orientation."""
        for row, joint, _ in self._body_sensors(int(_SENSOR.mjSENS_FRAMEQUAT)):
            times, values = self._readings(row)
            length = np.linalg.norm(values, axis=1, keepdims=True)
            good = length[:, 0] > 0.5
            if good.any():
                at = int(self._model.jnt_qposadr[joint]) + 3
                turn = values[good] / length[good]
                yield times[good], turn, int(self._model.sensor_adr[row]), at

    def _joint_sensors(self, kinds: tuple[int, int]) -> Iterator[tuple[int, int]]:
        """(sensor, hinge or slide) of sensors of a joint, or of a tendon that represents one."""
        model = self._model
        for row in self._rows():
            if int(model.sensor_type[row]) not in kinds:
                continue
            joint = int(model.sensor_objid[row])
            if int(model.sensor_type[row]) == kinds[1]:
                # An encoder behind backlash reads a tendon over the joint and its play.
                first = int(model.tendon_adr[joint])
                if int(model.wrap_type[first]) != int(mujoco.mjtWrap.mjWRAP_JOINT):
                    continue
                joint = int(model.wrap_objid[first])
            if int(model.jnt_type[joint]) not in (_FREE, _BALL):
                yield row, joint

    def _body_sensors(self, kind: int) -> Iterator[tuple[int, int, Floats]]:
        """(sensor, free joint, offset in the body [m]) of world-frame sensors of free bodies."""
        model = self._model
        for row in self._rows():
            if int(model.sensor_type[row]) != kind or int(model.sensor_refid[row]) >= 0:
                continue
            thing, what = int(model.sensor_objid[row]), int(model.sensor_objtype[row])
            if what == int(mujoco.mjtObj.mjOBJ_SITE):
                body, place = int(model.site_bodyid[thing]), model.site_pos[thing]
            elif what == int(mujoco.mjtObj.mjOBJ_GEOM):
                body, place = int(model.geom_bodyid[thing]), model.geom_pos[thing]
            elif what == int(mujoco.mjtObj.mjOBJ_BODY):
                body, place = thing, model.body_ipos[thing]
            else:
                body, place = thing, np.zeros(3)
            joint = int(model.body_jntadr[body])
            if joint < 0 or int(model.jnt_type[joint]) != _FREE:
                continue
            turn = np.zeros(9)
            mujoco.mju_quat2Mat(turn, model.qpos0[int(model.jnt_qposadr[joint]) + 3 :][:4])
            yield row, joint, turn.reshape(3, 3) @ place

    def _rows(self) -> Iterator[int]:
        """Sensors of the model that are in the log's contract."""
        named = {spec.name for spec in self._log.contract.sensors}
        for row in range(self._model.nsensor):
            if self._model.sensor(row).name in named:
                yield row

    def _readings(self, row: int) -> tuple[Floats, Floats]:
        """(times, values) of a sensor's new readings."""
        log, name = self._log, self._model.sensor(row).name
        place = [spec.name for spec in log.contract.sensors].index(name)
        values = log.readings[:, log.column(name)]
        good = log.fresh[:, place] & np.isfinite(values).all(axis=1)
        return log.times[good], values[good]


def _fitted(
    times: Floats, values: Floats, reading: int, qpos: int, qvel: int, offset: float
) -> _Track:
    """A track with speeds from a parabola through the readings around each one."""
    count = len(times)
    first = np.clip(np.arange(count) - _FITTED_READINGS // 2, 0, count - _FITTED_READINGS)
    window = first[:, None] + np.arange(_FITTED_READINGS)
    since = times[window] - times[:, None]
    powers = np.stack([np.ones_like(since), since, since**2], axis=2)
    fit = np.einsum("nkw,nw->nk", np.linalg.pinv(powers), values[window])
    return _Track(times, fit[:, 0], fit[:, 1], reading, qpos, qvel, offset, fitted=True)


def _turned(times: Floats, turns: Floats, at: Floats) -> Floats:
    """(n, 4) unit quaternions at any times: interpolated between knots, held outside of them."""
    low = np.clip(np.searchsorted(times, at, side="right") - 1, 0, max(0, len(times) - 2))
    high = np.minimum(low + 1, len(times) - 1)
    span = np.maximum(times[high] - times[low], 1e-12)
    s = np.clip((at - times[low]) / span, 0.0, 1.0)[:, None]
    left, right = turns[low], turns[high]
    # Both signs are the same rotation; interpolate to the nearer one.
    right = right * np.where((left * right).sum(axis=1, keepdims=True) < 0, -1.0, 1.0)
    found = (1 - s) * left + s * right
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True))


def _between(track: _Track, at: Floats) -> tuple[Floats, Floats]:
    """(values, rates) at any times: cubic between knots, held outside of them."""
    times, values, rates = track.times, track.values, track.rates
    if len(times) == 1:
        return np.full(len(at), values[0]), np.full(len(at), rates[0])
    low = np.clip(np.searchsorted(times, at, side="right") - 1, 0, len(times) - 2)
    span = times[low + 1] - times[low]
    s = np.clip((at - times[low]) / span, 0.0, 1.0)
    if track.qpos < 0:  # a measured speed is too rough for a cubic
        value = (1 - s) * values[low] + s * values[low + 1]
        return value, np.zeros(len(at))
    left, right = values[low], values[low + 1]
    m0, m1 = rates[low] * span, rates[low + 1] * span
    value = (
        (1 + 2 * s) * (1 - s) ** 2 * left
        + s * (1 - s) ** 2 * m0
        + s**2 * (3 - 2 * s) * right
        + s**2 * (s - 1) * m1
    )
    return value, (1 - s) * rates[low] + s * rates[low + 1]
