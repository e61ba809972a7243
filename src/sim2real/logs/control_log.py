"""A recording in the form of a contract: one row per control period, columns in its order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from sim2real.arrays import Bools, Floats
from sim2real.contract import Contract, SensorSpec
from sim2real.data import Episode, Signal
from sim2real.errors import Sim2RealError
from sim2real.logs.cleaning import Cleaning, clean
from sim2real.logs.thresholds import LOG_THRESHOLDS
from sim2real.twin import Channel

_PAUSE_S = 10.0


@dataclass(frozen=True, kw_only=True)
class ControlLog:
    """What a robot measured and was sent, one row per control period, in the contract's order."""

    contract: Contract
    episode: str
    """Id of its episode."""
    times: Floats
    """(periods,) start of each period [s]."""
    readings: Floats
    """(periods, numbers) newest reading of each sensor at that time; nan if there is none."""
    fresh: Bools
    """(periods, sensors) whether the sensor has a new reading in the period."""
    command: Floats
    """(periods, commands) what was sent; nan where unknown."""
    wanted: Floats | None = None
    """(periods, commands) what the policy asked for, before limits."""
    action: Floats | None = None
    """(periods, actions) output of the network."""
    observation: Floats | None = None
    """(periods, frame or input) input of the network."""
    goals: Floats | None = None
    """(periods, goals) goals of the robot."""
    missing: tuple[str, ...] = ()
    """Sensors of the contract without a channel."""
    enabled: Bools | None = None
    """(periods, commands) whether the drive was on; None if it always was."""
    spoilt: Bools | None = None
    """(periods,) whether cleaning changed a reading there; None if nothing was left out."""
    known: Mapping[str, Floats] = field(default_factory=dict)
    """(periods,) values of parameters that the log states; nan where it does not."""
    cleaning: Cleaning = field(default_factory=Cleaning)
    """What was done to the recording, and what is still wrong with it."""

    @classmethod
    def of(
        cls, episode: Episode, contract: Contract, channels: Mapping[str, Channel] | None = None
    ) -> ControlLog:
        """The cleaned log in an episode, at control periods as they were recorded.

        One without any channel of the contract is a `Sim2RealError`.

        A sensor is found as `sensor/NAME`, as `NAME`, or by the twin's channel map; commands as
        `command`, as `actuator/NAME` each, or by the map. A period starts at every sample of the
        command, or else of the action, or else of the first sensor.

        A channel mapped to `actuator/NAME/enabled` says when a drive was on. An entry of the
        episode's calibration that is mapped to a parameter is that parameter's value.
        """
        channels = channels or {}
        cleaned, done = clean(episode, contract, channels, LOG_THRESHOLDS)
        log = cls.of_cleaned(cleaned, contract, channels, done)
        spoilt = _spoilt(episode, log, channels) if done.left_out else None
        return replace(log, episode=episode.id, spoilt=spoilt)

    @classmethod
    def of_cleaned(
        cls,
        episode: Episode,
        contract: Contract,
        channels: Mapping[str, Channel],
        cleaning: Cleaning,
    ) -> ControlLog:
        """The log in an episode that has been cleaned."""
        finder = _Finder(episode, channels)
        sensors = [finder.sensor(spec.name, spec.of, spec.kind) for spec in contract.sensors]
        command = finder.commands([(spec.name, spec.joint) for spec in contract.commands])
        action = finder.vector("action", len(contract.actions))
        times = _clock([*command, action, *sensors], episode, contract)
        readings, fresh = [], []
        for spec, signal in zip(contract.sensors, sensors, strict=True):
            values, new = _at(signal, times, spec.width)
            readings.append(values)
            fresh.append(new)
        widths = {goal.name: goal.width for goal in contract.goals}
        goals = [finder.vector(f"goal/{name}", width) for name, width in widths.items()]
        told = [_at(g, times, w)[0] for g, w in zip(goals, widths.values(), strict=True)]
        frame = contract.frame_width
        observation = finder.vector("observation", frame) or finder.vector(
            "observation", contract.input_width
        )
        count = len(contract.commands)
        switches = [finder.switch(spec.name) for spec in contract.commands]
        return cls(
            contract=contract,
            episode=episode.id,
            times=times,
            readings=np.concatenate(readings, axis=1),
            fresh=np.stack(fresh, axis=1),
            command=_sent(command, times, count),
            wanted=_or_none(finder.vector("wanted", count), times),
            action=_or_none(action, times),
            observation=_or_none(observation, times),
            goals=np.concatenate(told, axis=1) if told else np.zeros((len(times), 0)),
            missing=tuple(
                s.name for s, found in zip(contract.sensors, sensors, strict=True) if found is None
            ),
            enabled=np.concatenate([_at(s, times, 1)[0] != 0 for s in switches], axis=1)
            if any(s is not None for s in switches)
            else None,
            known={n: np.full(len(times), v) for n, v in finder.known().items()},
            cleaning=cleaning,
        )

    @classmethod
    def join(cls, logs: Sequence[ControlLog]) -> ControlLog:
        """Logs of one contract as one, separated by pauses that no segment spans."""
        first = logs[0]
        if any(log.contract != first.contract for log in logs):
            raise Sim2RealError("logs of different contracts cannot be joined")
        times, end = [], 0.0
        for log in logs:
            times.append(log.times - log.times[0] + end)
            end = float(times[-1][-1]) + _PAUSE_S
        fields = {
            name: np.concatenate([getattr(log, name) for log in logs])
            for name in ("readings", "fresh", "command")
        }
        missing = {name for log in logs for name in log.missing}
        names = dict.fromkeys(name for log in logs for name in log.known)
        known = {
            name: np.concatenate(
                [log.known.get(name, np.full(len(log.times), np.nan)) for log in logs]
            )
            for name in names
        }
        if any(log.enabled is not None for log in logs):
            fields["enabled"] = np.concatenate(
                [
                    np.ones(log.command.shape, bool) if log.enabled is None else log.enabled
                    for log in logs
                ]
            )
        return cls(
            known=known,
            contract=first.contract,
            episode="+".join(log.episode[:8] for log in logs),
            times=np.concatenate(times),
            missing=tuple(sorted(missing)),
            cleaning=Cleaning.of_all([log.cleaning for log in logs]),
            **fields,
        )

    @property
    def left_out(self) -> int:
        """Samples that cleaning left out."""
        return self.cleaning.left_out

    def part(self, rows: slice) -> ControlLog:
        """Some periods of the log, without the policy's inputs and outputs."""
        return replace(
            self,
            times=self.times[rows],
            readings=self.readings[rows],
            fresh=self.fresh[rows],
            command=self.command[rows],
            wanted=None,
            action=None,
            observation=None,
            goals=None,
            enabled=None if self.enabled is None else self.enabled[rows],
            spoilt=None if self.spoilt is None else self.spoilt[rows],
            known={name: values[rows] for name, values in self.known.items()},
        )

    def columns(self) -> Iterator[tuple[SensorSpec, slice]]:
        """Every sensor with the columns of its numbers among the readings."""
        begin = 0
        for spec in self.contract.sensors:
            yield spec, slice(begin, begin + spec.width)
            begin += spec.width

    def column(self, sensor: str) -> slice:
        """Columns of a sensor's numbers among the readings."""
        for spec, part in self.columns():
            if spec.name == sensor:
                return part
        raise Sim2RealError(f"the contract has no sensor {sensor!r}")


def _clock(signals: Sequence[Signal | None], episode: Episode, contract: Contract) -> Floats:
    """(periods,) times of the first signal that has any [s]."""
    clock = next((s for s in signals if s is not None and len(s.times)), None)
    if clock is None:
        raise Sim2RealError(
            f"episode {episode.id} has no channel of the contract for {contract.robot}, which has"
            f" {', '.join(f'sensor/{s.name}' for s in contract.sensors[:3])}, …"
        )
    return np.asarray(clock.times[np.isfinite(clock.times)])


class _Finder:
    """Channels of an episode by their meaning."""

    def __init__(self, episode: Episode, channels: Mapping[str, Channel]) -> None:
        self._signals = episode.signals
        self._calibration = episode.provenance.calibration
        self._channels = channels
        self._mapped = {
            channel.source: (name, channel)
            for name, channel in channels.items()
            if name in self._signals
        }

    def sensor(self, name: str, of: str, kind: str) -> Signal | None:
        for key in (f"sensor/{name}", name):
            if key in self._signals:
                return self._signals[key]
        sources = [f"sensor/{name}"] + ([f"joint/{of}"] if kind == "jointpos" else [])
        return self._by_source(sources)

    def commands(self, names: list[tuple[str, str]]) -> list[Signal | None]:
        """One signal of all commands, or one for each."""
        whole = self.vector("command", len(names))
        if whole is not None:
            return [whole]
        return [
            self._signals.get(f"actuator/{name}") or self._by_source([f"actuator/{name}"])
            for name, _ in names
        ]

    def switch(self, name: str) -> Signal | None:
        """Whether the drive of an actuator is on."""
        source = f"actuator/{name}/enabled"
        return self._signals.get(source) or self._by_source([source])

    def known(self) -> dict[str, float]:
        """Parameter values in the calibration."""
        return {
            channel.source: channel.scale * float(value) + channel.offset
            for name, channel in self._channels.items()
            if isinstance(value := self._calibration.get(name), int | float)
            and channel.source.count("/") == 2
        }

    def vector(self, name: str, width: int) -> Signal | None:
        signal = self._signals.get(name)
        if signal is None:
            return None
        values = signal.values.reshape(len(signal.values), -1) if len(signal.values) else None
        if values is None or values.shape[1] != width:
            return None
        return Signal(signal.times, values, signal.unit, signal.stated_hz)

    def _by_source(self, sources: list[str]) -> Signal | None:
        for source in sources:
            if source in self._mapped:
                name, channel = self._mapped[source]
                signal = self._signals[name]
                return Signal(
                    signal.times,
                    np.multiply(channel.scale, signal.values) + channel.offset,
                    channel.unit or signal.unit,
                    signal.stated_hz,
                )
        return None


def _at(signal: Signal | None, times: Floats, width: int) -> tuple[Floats, Bools]:
    """(values (times, width) held at the given times, whether each is new)."""
    nothing = np.full((len(times), width), np.nan), np.zeros(len(times), dtype=bool)
    if signal is None or not np.isfinite(signal.times).any():
        return nothing
    values = signal.values.reshape(len(signal.values), -1).astype(float)
    if values.shape[1] != width:
        return nothing
    rows = signal.held(times + 1e-9)
    known = times + 1e-9 >= np.nanmin(signal.times)
    found = np.where(known[:, None], values[rows], np.nan)
    new = np.concatenate([[True], rows[1:] != rows[:-1]]) & known
    return found, new


def _spoilt(episode: Episode, log: ControlLog, channels: Mapping[str, Channel]) -> Bools:
    """(periods,) whether the recorded reading of any sensor differs from the cleaned one."""
    finder, found = _Finder(episode, channels), np.zeros(len(log.times), dtype=bool)
    for spec, part in log.columns():
        recorded, _ = _at(finder.sensor(spec.name, spec.of, spec.kind), log.times, spec.width)
        same = np.isclose(recorded, log.readings[:, part], rtol=0.0, atol=0.0, equal_nan=True)
        found |= ~same.all(axis=1)
    return found


def _sent(signals: list[Signal | None], times: Floats, count: int) -> Floats:
    """(times, count) commands from one signal of all of them, or from one for each."""
    width = 1 if len(signals) == count else count
    parts = [_at(signal, times, width)[0] for signal in signals]
    return np.concatenate([np.zeros((len(times), 0)), *parts], axis=1)


def _or_none(signal: Signal | None, times: Floats) -> Floats | None:
    return None if signal is None else _at(signal, times, signal.values.shape[1])[0]
