"""A real log replayed in the twin: what the twin says would have happened, against what did.

The logged commands are sent again to worlds that start from measured states, in short segments, so
that errors do not pile up (multiple shooting). All segments, times all parameter vectors asked for,
are one batch of worlds.

What is random in the twin (noise, jitter, loss, pushes) is off, and so is the rounding of readings:
the prediction is what is expected to be read. What is certain (delays, bias, scale, the rounding
and slew of commands) is on. Before each segment the worlds are led along the measured states, so
that the buffers of delays hold what was really sent and seen.
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
from sim2real.replay.randomness import Chance, with_chance
from sim2real.replay.segments import recordings_of, starts_of
from sim2real.twin import SensorEffects, Twin
from sim2real.worlds import CpuWorlds

_MOST_WORLDS = 4096
_LEAST_NOISE = 1e-4
"""Share of a reading's range that is taken as its noise where the twin declares none."""


@dataclass(frozen=True, kw_only=True)
class Replay:
    """Predictions of one log, segment by segment; numbers are in the contract's order."""

    log: ControlLog
    period_s: float
    names: tuple[str, ...]
    """Parameters, in the order of the columns of `values`."""
    values: Floats
    """(values, parameters) what the worlds were given."""
    starts: Ints
    """(segments,) row of the log that each segment starts from."""
    predicted: Floats
    """(values, segments, periods, numbers); nan from where a world diverged."""
    measured: Floats
    """(segments, periods, numbers) of the log; nan where there is no new reading."""
    noise: Floats
    """(numbers,) standard deviation the nominal twin expects of a reading: noise and rounding."""
    start_effects: Floats
    """(coordinates, segments, periods, numbers) change of the first vector's prediction when one
    measured number of the start is off by the standard deviation expected of it."""
    assumed: tuple[str, ...] = ()
    """Joints no sensor measures; they start as the model has them."""

    @property
    def valid(self) -> Bools:
        """(segments, periods, numbers) whether there is a new reading to compare with."""
        return np.isfinite(self.measured)

    @property
    def errors(self) -> Floats:
        """(values, segments, periods, numbers) measured less predicted; nan where unknown."""
        return self.measured - self.predicted

    def column(self, sensor: str) -> slice:
        """Places of a sensor's numbers."""
        return self.log.column(sensor)


class Replayer:
    """A log, ready to be predicted with any parameters; worlds are kept from call to call."""

    def __init__(
        self,
        twin: Twin,
        log: ControlLog,
        *,
        horizon_s: float,
        stride_s: float | None = None,
        values: Floats | None = None,
        chance: Chance = "none",
        start_noise: float = 1.0,
        remainder: bool = False,
        recordings: bool = False,
        lead_s: float = 0.0,
        seed: int = 0,
        threads: int = 0,
    ) -> None:
        """Cut the log into segments of `horizon_s`, one every `stride_s`, by default end to end.

        `values` (n, parameters) are those that will be asked for, or the extremes of them: they
        decide how long a delay there may be; the parameters' bounds by default. With
        `chance` what is random in the twin is on, in its motion or in its readings too: a
        prediction is then one of many, by `seed`. `start_noise` is how uncertain a measured start
        is taken to be, against the noise of its readings. With `remainder` the twin's learned
        remainder acts. Worlds are led along the measured states until every delay is filled, and
        for `lead_s` at least. A log that is too short, too uneven or of another robot is a
        `Sim2RealError`.

        With `recordings` there is one segment a recording, from its first row on: of `horizon_s`,
        or less where the recording ends (nothing is measured after that). What was before the
        first row is taken to have been as it is then.
        """
        self.twin = twin
        self._quiet, self._columns = with_chance(twin, chance)
        place = twin.compile()
        self.period_s = _period(log, place.model.opt.timestep)
        self._numbers, self._controls = places_of(place.model, log.contract)
        self.log = _slow_thinned(log, place.effects.sensors, self.period_s)
        self._states = MeasuredStates(place.model, self.log)
        extremes = np.array([p.bounds for p in twin.parameters]).T if values is None else values
        shortest = math.ceil(lead_s / self.period_s - 1e-9)
        filled = lead_periods(twin, extremes, self.period_s)
        self._lead = 0 if recordings else max(shortest, filled)
        lengths = self._cut(horizon_s, stride_s, recordings=recordings)
        self.rounding = _rounding(self.log, place.effects.sensors)
        self.noise = _expected_noise(self.log, place.effects.sensors, self.rounding)
        spread = np.full(place.model.nsensordata, 0.0)
        spread[self._numbers] = self.noise
        self._start_noise = start_noise * self._states.noise(spread, self.period_s)
        self.measured = self._readings(lengths)
        self._known = self._stated()
        self._threads, self._remainder, self._seed = threads, remainder, seed
        self._worlds: dict[int, CpuWorlds] = {}

    def _cut(self, horizon_s: float, stride_s: float | None, *, recordings: bool) -> Ints:
        """Cut the log into segments; (segments,) periods of each."""
        self.steps = max(1, round(horizon_s / self.period_s))
        if recordings:
            self.starts, lengths = recordings_of(self.log, self._states, self.period_s)
            self.steps = min(self.steps, int(lengths.max()))
            return lengths
        stride = max(1, round((stride_s or self.steps * self.period_s) / self.period_s))
        self.starts = starts_of(
            self.log, self._states, self.period_s, steps=self.steps, lead=self._lead, stride=stride
        )
        return np.full(len(self.starts), self.steps)

    def _readings(self, lengths: Ints) -> Floats:
        """(segments, periods, numbers) what is read anew in segments of those lengths."""
        ahead = np.arange(1, self.steps + 1)
        rows = np.minimum(self.starts[:, None] + ahead, len(self.log.times) - 1)
        there = (ahead <= lengths[:, None])[..., None]
        return np.where(there & _new(self.log)[rows], self.log.readings[rows], np.nan)

    def _stated(self) -> dict[int, Floats]:
        """(segments,) values of parameters that the log itself states, by column."""
        columns = {parameter.name: k for k, parameter in enumerate(self.twin.parameters)}
        return {
            columns[name]: values[self.starts]
            for name, values in self.log.known.items()
            if name in columns
        }

    def __call__(
        self,
        values: Floats,
        *,
        vary_starts: bool = False,
        moved: Floats | None = None,
        report: Callable[[int, int], None] = lambda done, of: None,
    ) -> Replay:
        """Predict every segment with every row of `values` (n, parameters).

        With `vary_starts` the effects of the noise in the starts are computed too. `moved`
        (segments, coordinates), or (n, segments, coordinates), are corrections of the starts, in
        standard deviations expected of them.
        """
        given = self._given(values)
        coordinates = len(self._states.coordinates)
        shifts = np.zeros((len(given), coordinates))
        rows_of = np.arange(len(given))
        if vary_starts:
            shifts = np.concatenate([shifts, np.diag(self._start_noise)])
            rows_of = np.concatenate([rows_of, np.zeros(coordinates, dtype=int)])
        predicted = np.full((len(rows_of), *self.measured.shape), np.nan)
        jobs = np.indices((len(rows_of), len(self.starts))).reshape(2, -1)
        for first in range(0, jobs.shape[1], _MOST_WORLDS):
            vectors, segments = jobs[:, first : first + _MOST_WORLDS]
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
            assumed=self._states.assumed,
        )

    def _given(self, values: Floats) -> Floats:
        """Rows of values, one for each parameter; anything else is a `Sim2RealError`."""
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
        # The same chance at every call, and another in each part of a call.
        worlds.tick = tick
        with _without_warnings():
            return _run(
                worlds, self.log, self._states, self.starts[segments], shift, self.steps,
                self._lead, self._numbers, self._controls,
            )  # fmt: skip

    def part(self, segments: Ints) -> Replayer:
        """The same for some of the segments only."""
        found = copy.copy(self)
        found.starts, found.measured = self.starts[segments], self.measured[segments]
        found._known = {column: stated[segments] for column, stated in self._known.items()}
        found._worlds = {}
        return found

    @property
    def coordinates(self) -> int:
        """Measured numbers of a start."""
        return len(self._states.coordinates)

    def features(self, values: Floats) -> Floats:
        """(segments, joints, features) of the remainder in the last period of every segment.

        With values (parameters,); see `twin.remainder`. Of many segments the first few thousand.
        """
        self(values[None])
        features = self._many(min(len(self.starts), _MOST_WORLDS)).features
        if features is None:
            raise Sim2RealError(f"twin {self.twin.name!r} was not replayed with a remainder")
        return features.numpy().copy()

    def _many(self, count: int) -> CpuWorlds:
        """Worlds in that number; making them takes longer than a short replay."""
        if count not in self._worlds:
            self._worlds[count] = CpuWorlds(
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
    """Without the engine's own words about worlds that diverge, which it also writes to a file."""
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda text: None)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)


def _run(
    worlds: CpuWorlds,
    log: ControlLog,
    states: MeasuredStates,
    starts: Ints,
    shifts: Floats,
    steps: int,
    lead: int,
    numbers: Ints,
    controls: Ints,
) -> Floats:
    """(worlds, periods, numbers) readings after each period of segments that start at rows."""
    everyone = torch.arange(worlds.count)
    sent = torch.zeros(worlds.count, worlds.model.nu, dtype=torch.float64)
    worlds.reset(everyone)
    states.write(worlds, log.times[starts - lead], None if lead else shifts)
    sent[:, controls] = torch.from_numpy(log.command[starts - lead])
    worlds.state("ctrl").copy_(sent)
    worlds.begin(everyone)
    found = np.full((worlds.count, steps, len(numbers)), np.nan)
    broken = torch.zeros(worlds.count, dtype=torch.bool)
    # A drive that was off neither drives nor brakes: worlds take a nan as that.
    command = log.command if log.enabled is None else np.where(log.enabled, log.command, np.nan)
    last = len(command) - 1
    for step in range(-lead, steps):
        # After the last row of all nothing is measured, and nothing new is sent.
        sent[:, controls] = torch.from_numpy(command[np.minimum(starts + step, last)])
        broken |= worlds.step(sent.float())
        if step < 0:
            # The noise of the readings before the start is another one.
            states.write(worlds, log.times[starts + step + 1], shifts if step == -1 else None)
        else:
            reading = worlds.measured[:, numbers].double().numpy()
            found[:, step] = np.where(broken[:, None].numpy(), np.nan, reading)
    return found


def _period(log: ControlLog, timestep_s: float) -> float:
    """Length of the log's control period, a whole number of time steps [s]."""
    spans = np.diff(log.times)
    typical = float(np.median(spans)) if len(spans) else 0.0
    if typical <= 0:
        raise Sim2RealError(
            f"episode {log.episode} has {len(log.times)} periods: too few to replay"
        )
    period = round(typical / timestep_s) * timestep_s
    if period <= 0 or abs(period / typical - 1) > 0.02:
        raise Sim2RealError(
            f"episode {log.episode} has a period of {typical:.4g} s, which is not a whole number of"
            f" the twin's time steps of {timestep_s:g} s"
        )
    return period


def places_of(model: mujoco.MjModel, contract: Contract) -> tuple[Ints, Ints]:
    """(readings, commands) places of a contract's numbers among those of a twin's model.

    A sensor or an actuator that the twin has not is a `Sim2RealError`.
    """
    sensors = {model.sensor(k).name: k for k in range(model.nsensor)}
    actuators = {model.actuator(k).name: k for k in range(model.nactuator)}
    numbers: list[int] = []
    for spec in contract.sensors:
        row = sensors.get(spec.name, -1)
        if row < 0 or int(model.sensor_dim[row]) != spec.width:
            raise Sim2RealError(
                f"the twin has no sensor {spec.name!r} of {spec.width} numbers, which the contract"
                f" asks for{nearest(spec.name, sensors)}"
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
    """Call a slow sensor's repeated readings what they are: not new."""
    fresh = log.fresh.copy()
    for column, spec in enumerate(log.contract.sensors):
        mine = sensors.get(spec.name)
        if mine is not None and mine.period > 1.5 * period_s:
            values = log.readings[:, log.column(spec.name)]
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


def _new(log: ControlLog) -> Bools:
    """(periods, numbers) whether a number was read anew."""
    widths = [spec.width for spec in log.contract.sensors]
    return np.repeat(log.fresh, widths, axis=1)


def _same_sign(log: ControlLog, predicted: Floats, measured: Floats) -> Floats:
    """Predicted quaternions with the sign of the measured ones: both signs are the same turn."""
    for spec in log.contract.sensors:
        if spec.quaternion:
            part = log.column(spec.name)
            facing = (predicted[..., part] * measured[..., part]).sum(axis=-1, keepdims=True)
            predicted[..., part] *= np.where(facing < 0, -1.0, 1.0)
    return predicted


def _rounding(log: ControlLog, sensors: Mapping[str, SensorEffects]) -> Floats:
    """(numbers,) standard deviation of a reading around the truth by its quantum alone."""
    quanta = [
        sensors.get(spec.name, SensorEffects()).quantum
        for spec in log.contract.sensors
        for _ in range(spec.width)
    ]
    return np.array(quanta) / math.sqrt(12)


def _expected_noise(
    log: ControlLog, sensors: Mapping[str, SensorEffects], rounding: Floats
) -> Floats:
    """(numbers,) noise and rounding of each reading; never nothing, as no sensor is perfect."""
    noises = [
        sensors.get(spec.name, SensorEffects()).noise
        for spec in log.contract.sensors
        for _ in range(spec.width)
    ]
    known = np.where(np.isfinite(log.readings), log.readings, 0.0)
    least = _LEAST_NOISE * (1e-3 + np.ptp(known, axis=0))
    return np.array(np.maximum(np.hypot(noises, rounding), least))
