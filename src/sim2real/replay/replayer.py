"""Replays a real log in the twin: what the twin predicts, against what happened.

The logged commands are sent to worlds that start from measured states, in short segments, so that
errors do not accumulate (multiple shooting). All segments, times all parameter vectors, are one
batch of worlds.

Random effects (noise, jitter, loss, pushes) are off, and so is the rounding of readings: a
prediction is the expected reading. Deterministic effects (delays, bias, scale, rounding and slew of
commands) are on. Before each segment the worlds are led along the measured states, so that the
delay buffers hold what was really sent and measured.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import mujoco
import numpy as np
import torch

from sim2real.arrays import Bools, Floats, Ints
from sim2real.contract import Contract
from sim2real.errors import Sim2RealError, nearest
from sim2real.logs import ControlLog
from sim2real.replay.measured_states import MeasuredStates
from sim2real.replay.randomness import Randomness, with_randomness
from sim2real.replay.segments import Segments
from sim2real.twin import SensorEffects, Twin
from sim2real.worlds import Worlds, open_worlds

_MAX_WORLDS = 4096
"""Most worlds that run at once."""
_MIN_NOISE = 1e-4
"""Least noise of a reading, as a share of its range, for twins that declare none."""


@dataclass(frozen=True, kw_only=True)
class Replay:
    """Predictions of one log by segment; numbers are in the contract's order."""

    log: ControlLog
    period_s: float
    names: tuple[str, ...]
    """Parameters, in the order of the columns of `values`."""
    values: Floats
    """(values, parameters) of the worlds."""
    starts: Ints
    """(segments,) row of the log that each segment starts from."""
    predicted: Floats
    """(values, segments, periods, numbers); nan after a world diverged."""
    measured: Floats
    """(segments, periods, numbers) of the log; nan where there is no new reading."""
    noise: Floats
    """(numbers,) standard deviation of a reading in the nominal twin, from noise and rounding."""
    start_effects: Floats
    """(coordinates, segments, periods, numbers) change of the first vector's prediction if one
    number of the measured start is off by its expected standard deviation."""
    assumed: tuple[str, ...] = ()
    """Joints that no sensor measures; they start at the model's default."""

    @property
    def valid(self) -> Bools:
        """(segments, periods, numbers) whether there is a new reading."""
        return np.isfinite(self.measured)

    @property
    def errors(self) -> Floats:
        """(values, segments, periods, numbers) measured minus predicted; nan where unknown."""
        return self.measured - self.predicted

    def column(self, sensor: str) -> slice:
        """Columns of a sensor's numbers."""
        return self.log.column(sensor)


class Replayer:
    """Predicts a log with any parameters; worlds are kept from call to call."""

    def __init__(
        self,
        twin: Twin,
        log: ControlLog,
        *,
        horizon_s: float,
        stride_s: float | None = None,
        values: Floats | None = None,
        randomness: Randomness = "none",
        start_noise: float = 1.0,
        remainder: bool = False,
        recordings: bool = False,
        lead_s: float = 0.0,
        seed: int = 0,
        threads: int = 0,
    ) -> None:
        """Cut the log into segments of `horizon_s`, one every `stride_s`, by default end to end.

        `values` (n, parameters) are those that will be asked for, or their extremes, and decide the
        longest possible delay; by default the parameters' bounds. `randomness` switches on what is
        random in the twin's motion, or in its readings, too: a prediction is then one random
        outcome, by `seed`. `start_noise` is the noise of a measured start, relative to that of its
        readings. With `remainder` the twin's learned remainder acts. Worlds are led along the
        measured states until every delay buffer is full, and for at least `lead_s`. A log that is
        too short, too uneven or of another robot is a `Sim2RealError`.

        With `recordings` there is one segment per recording, from its first row on, of `horizon_s`
        or up to the end of the recording. The robot is assumed to be at rest before the first row.
        """
        self.twin = twin
        self._quiet, self._columns = with_randomness(twin, randomness)
        place = twin.compile()
        self.period_s = _period(log, place.model.opt.timestep)
        self._numbers, self._controls = places_of(place.model, log.contract)
        held = _slow_thinned(log, place.effects.sensors, self.period_s)
        states = MeasuredStates(place.model, held)
        extremes = np.array([p.bounds for p in twin.parameters]).T if values is None else values
        shortest = math.ceil(lead_s / self.period_s - 1e-9)
        cut = (
            Segments.whole(held, states, self.period_s, horizon_s=horizon_s)
            if recordings
            else Segments.cut(
                held,
                states,
                self.period_s,
                horizon_s=horizon_s,
                stride_s=stride_s,
                lead=max(shortest, lead_periods(twin, extremes, self.period_s)),
            )
        )
        self._take(cut)
        self.noise, self.rounding = _noise_and_rounding(self.log, place.effects.sensors)
        spread = np.zeros(place.model.nsensordata)
        spread[self._numbers] = self.noise
        self._start_noise = start_noise * states.noise(spread, self.period_s)
        self._threads, self._remainder, self._seed = threads, remainder, seed

    def _take(self, segments: Segments) -> None:
        self.segments, self.log, self.steps = segments, segments.log, segments.steps
        self.starts, self.measured = segments.starts, segments.measured
        self._known = segments.stated([parameter.name for parameter in self.twin.parameters])
        self._worlds: dict[int, Worlds] = {}

    def __call__(
        self,
        values: Floats,
        *,
        vary_starts: bool = False,
        moved: Floats | None = None,
        report: Callable[[int, int], None] = lambda done, of: None,
    ) -> Replay:
        """Predict every segment with every row of `values` (n, parameters).

        With `vary_starts` the effects of noise in the starts are computed, too. `moved` (segments,
        coordinates), or (n, segments, coordinates), are corrections of the starts, in their
        expected standard deviations.
        """
        given = self._given(values)
        coordinates = len(self.segments.states.coordinates)
        shifts = np.zeros((len(given), coordinates))
        rows_of = np.arange(len(given))
        if vary_starts:
            shifts = np.concatenate([shifts, np.diag(self._start_noise)])
            rows_of = np.concatenate([rows_of, np.zeros(coordinates, dtype=int)])
        predicted = np.full((len(rows_of), *self.measured.shape), np.nan)
        jobs = np.indices((len(rows_of), len(self.starts))).reshape(2, -1)
        for first in range(0, jobs.shape[1], _MAX_WORLDS):
            vectors, segments = jobs[:, first : first + _MAX_WORLDS]
            shift = shifts[vectors]
            if moved is not None:
                off = moved[segments] if moved.ndim == 2 else moved[rows_of[vectors], segments]
                shift = shift + off * self._start_noise
            mine = given[rows_of[vectors]]
            predicted[vectors, segments] = self._run(mine, segments, shift, tick=first)
            report(first + len(vectors), jobs.shape[1])
        predicted = _same_sign(self.log, predicted, self.measured)
        return Replay(
            log=self.log,
            period_s=self.period_s,
            names=tuple(parameter.name for parameter in self.twin.parameters),
            values=given,
            starts=self.starts,
            predicted=predicted[: len(given)],
            measured=self.measured,
            noise=self.noise,
            start_effects=predicted[len(given) :] - predicted[:1],
            assumed=self.segments.states.assumed,
        )

    def _given(self, values: Floats) -> Floats:
        """The values as rows; a wrong shape is a `Sim2RealError`."""
        given = np.atleast_2d(np.asarray(values, dtype=float))
        count = len(self.twin.parameters)
        if given.shape[1] != count or not np.isfinite(given).all():
            raise Sim2RealError(
                f"values of shape {given.shape} are not rows of {count} numbers, one for each"
                f" parameter of twin {self.twin.name!r}"
            )
        return given

    def _run(self, values: Floats, segments: Ints, shift: Floats, *, tick: int) -> Floats:
        """(worlds, periods, numbers) readings in segments (worlds,), each with its own values."""
        worlds = self._many(len(segments))
        for column, stated in self._known.items():
            here = stated[segments]
            values[:, column] = np.where(np.isfinite(here), here, values[:, column])
        worlds.set_parameters(
            torch.from_numpy(values[:, self._columns]), torch.arange(len(segments))
        )
        # The same random numbers at every call, and others in each part of a call.
        worlds.tick = tick
        with _without_warnings():
            return self._readings_of(worlds, self.starts[segments], shift)

    def _readings_of(self, worlds: Worlds, starts: Ints, shifts: Floats) -> Floats:
        """(worlds, periods, numbers) readings after each period of segments that start at rows."""
        log, states, lead = self.log, self.segments.states, self.segments.lead
        everyone = torch.arange(worlds.count)
        sent = torch.zeros(worlds.count, worlds.model.nu, dtype=torch.float64)
        worlds.reset(everyone)
        states.write(worlds, log.times[starts - lead], None if lead else shifts)
        sent[:, self._controls] = torch.from_numpy(log.command[starts - lead])
        worlds.state("ctrl").copy_(sent)
        worlds.begin(everyone)
        found = np.full((worlds.count, self.steps, len(self._numbers)), np.nan)
        broken = torch.zeros(worlds.count, dtype=torch.bool)
        # A drive that is off neither drives nor brakes, which worlds understand as nan.
        command = log.command if log.enabled is None else np.where(log.enabled, log.command, np.nan)
        last = len(command) - 1
        for step in range(-lead, self.steps):
            # After the last row nothing is measured, and the command is held.
            rows = np.minimum(starts + step, last)
            sent[:, self._controls] = torch.from_numpy(command[rows])
            broken |= worlds.step(sent.float())
            if step < 0:
                # Only the start itself is shifted: readings before it have their own noise.
                at_start = shifts if step == -1 else None
                states.write(worlds, log.times[starts + step + 1], at_start)
            else:
                reading = worlds.measured[:, self._numbers].double().numpy()
                found[:, step] = np.where(broken[:, None].numpy(), np.nan, reading)
        return found

    def part(self, segments: Ints) -> Replayer:
        """The same for some of the segments."""
        found = copy.copy(self)
        found._take(self.segments.part(segments))
        return found

    @property
    def coordinates(self) -> int:
        """Number of measured coordinates of a start."""
        return len(self.segments.states.coordinates)

    def features(self, values: Floats) -> Floats:
        """(segments, joints, features) of the remainder in the last period of each segment.

        With values (parameters,), for at most the first 4,096 segments; see `twin.remainder`.
        """
        self(values[None])
        features = self._many(min(len(self.starts), _MAX_WORLDS)).features
        if features is None:
            raise Sim2RealError(f"twin {self.twin.name!r} was not replayed with a remainder")
        return features.numpy().copy()

    def _many(self, count: int) -> Worlds:
        """That many worlds, from a cache: making them takes longer than a short replay."""
        if count not in self._worlds:
            self._worlds[count] = open_worlds(
                self._quiet,
                count=count,
                period_s=self.period_s,
                seed=self._seed,
                threads=self._threads,
                switches=self.log.enabled is not None,
                remainder=self._remainder,
            )
        return self._worlds[count]


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Silences the engine's warnings about diverging worlds, which would also go to a file."""
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda text: None)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)


def _period(log: ControlLog, timestep_s: float) -> float:
    """The log's control period, a whole number of time steps [s]."""
    spans = np.diff(log.times)
    typical = float(np.median(spans)) if len(spans) else 0.0
    if typical <= 0:
        raise Sim2RealError(
            f"episode {log.episode} has too few control periods to replay: {len(log.times)}"
        )
    period = round(typical / timestep_s) * timestep_s
    if period <= 0 or abs(period / typical - 1) > 0.02:
        raise Sim2RealError(
            f"episode {log.episode} has a period of {typical:.4g} s, which is not a whole number of"
            f" the twin's time steps of {timestep_s:g} s"
        )
    return period


def places_of(model: mujoco.MjModel, contract: Contract) -> tuple[Ints, Ints]:
    """(readings, commands) indices of a contract's numbers among those of a twin's model.

    A sensor or actuator that the twin does not have is a `Sim2RealError`.
    """
    sensors = {model.sensor(k).name: k for k in range(model.nsensor)}
    actuators = {model.actuator(k).name: k for k in range(model.nactuator)}
    numbers: list[int] = []
    for spec in contract.sensors:
        row = sensors.get(spec.name, -1)
        if row < 0 or int(model.sensor_dim[row]) != spec.width:
            raise Sim2RealError(
                f"the twin has no sensor {spec.name!r} of {spec.width} numbers, which the contract"
                f" has{nearest(spec.name, sensors)}"
            )
        first = int(model.sensor_adr[row])
        numbers += range(first, first + spec.width)
    for command in contract.commands:
        if command.name not in actuators:
            raise Sim2RealError(
                f"the twin has no actuator {command.name!r}, which the contract commands"
                f"{nearest(command.name, actuators)}"
            )
    controls = [int(model.actuator_ctrladr[actuators[c.name]]) for c in contract.commands]
    return np.array(numbers), np.array(controls, dtype=int)


def _slow_thinned(
    log: ControlLog, sensors: Mapping[str, SensorEffects], period_s: float
) -> ControlLog:
    """Marks repeated readings of a slow sensor as not new."""
    fresh = log.fresh.copy()
    for column, (spec, part) in enumerate(log.columns()):
        mine = sensors.get(spec.name)
        if mine is not None and mine.period > 1.5 * period_s:
            values = log.readings[:, part]
            fresh[1:, column] &= (values[1:] != values[:-1]).any(axis=1)
    return replace(log, fresh=fresh)


def lead_periods(twin: Twin, values: Floats, period_s: float) -> int:
    """Periods before a segment that fill every delay buffer, for values (n, parameters)."""
    effects = twin.compile().effects
    longest = [0.0]
    for table in (effects.actuators, effects.sensors):
        longest += [entry.delay for entry in table.values()]
    for column, parameter in enumerate(twin.parameters):
        if parameter.name.endswith("/delay"):
            most = float(values[:, column].max())
            declared = max(longest)
            longest.append(
                {"scale": most * declared, "add": most + declared}.get(parameter.operation, most)
            )
    return math.ceil(max(longest) / period_s - 1e-9) + 1


def _same_sign(log: ControlLog, predicted: Floats, measured: Floats) -> Floats:
    """Gives predicted quaternions the sign of the measured ones: both are the same rotation."""
    for spec, part in log.columns():
        if spec.quaternion:
            facing = (predicted[..., part] * measured[..., part]).sum(axis=-1, keepdims=True)
            predicted[..., part] *= np.where(facing < 0, -1.0, 1.0)
    return predicted


def _noise_and_rounding(
    log: ControlLog, sensors: Mapping[str, SensorEffects]
) -> tuple[Floats, Floats]:
    """(numbers,) expected noise of each reading, including rounding, and that of rounding alone.

    The noise is never zero, as no sensor is perfect.
    """
    specs = log.contract.sensors
    effects = [sensors.get(s.name, SensorEffects()) for s in specs for _ in range(s.width)]
    rounding = np.array([one.quantum for one in effects]) / math.sqrt(12)
    known = np.where(np.isfinite(log.readings), log.readings, 0.0)
    least = _MIN_NOISE * (1e-3 + np.ptp(known, axis=0))
    return np.maximum(np.hypot([one.noise for one in effects], rounding), least), rounding
