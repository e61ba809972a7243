"""Faults put into clean logs.

The recomputed chain of such a log disagrees with itself, unlike that of a flight with a
`FaultyRobot`, where the policy acted on what was broken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sim2real.contract import Contract
from sim2real.data import Episode, Signal
from sim2real.doctor import Fault, GraphInterface
from sim2real.errors import Sim2RealError, nearest
from sim2real.policy import Bundle

LEVELS = (0, 1, 2)
"""Magnitudes, the smallest first."""
OFFSETS = (0.03, 0.1, 0.3)
"""Zeros that are off by so much, a level each [rad or m]."""
FACTORS = (1.1, 1.5, 3.0)
"""Scales that are off by so much."""
PERIODS = (1, 2, 4)
"""Delays [periods]."""
_FROZEN = (0.2, 0.5, 0.9)
_SLOWER = (1.1, 1.35, 2.0)
_AT_LIMIT = (0.3, 0.6, 0.95)
"""Share of the actions that a gain brings to their limit."""
DEGREES = 180.0 / np.pi
"""Degrees in a radian."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where in a log a fault is put: one channel and some of its columns."""

    channel: str
    columns: tuple[int, ...]


def possible(fault: Fault, contract: Contract) -> bool:
    """Whether a fault can exist under a contract."""
    if fault is Fault.PERMUTED:
        return len(contract.commands) > 1
    if fault is Fault.QUATERNION:
        return any(sensor.quaternion for sensor in contract.sensors)
    if fault is Fault.HISTORY:
        return contract.history > 1
    if fault is Fault.POSE:
        return any(command.unit in ("rad", "m") for command in contract.commands)
    return True


def inject(
    bundle: Bundle | GraphInterface, episode: Episode, fault: Fault | str, *, level: int, seed: int
) -> Episode:
    """The episode with an interface fault in it, somewhere the seed decides.

    The fault may be named as the doctor names it, `'sign flipped'`; `level` is one of `LEVELS`. An
    `GraphInterface` saves the time of working it out from the bundle for each of many episodes.
    """
    fault, interface = _named(fault), _interface(bundle)
    rng = np.random.default_rng([seed, level, list(Fault).index(fault)])
    contract = interface.contract
    channels = episode.signals
    if fault is Fault.RATE:
        _slow(channels, level, rng)
    elif fault is Fault.MISSING:
        _take_away(channels, contract, level, rng)
    elif fault in (Fault.HISTORY, Fault.NORMALISER, Fault.SATURATED):
        _network(channels, interface, fault, level, rng)
    elif fault is Fault.PERMUTED:
        _permute(channels, contract, level, rng)
    elif fault is Fault.QUATERNION:
        for sensor in contract.sensors:
            if sensor.quaternion:
                name = f"sensor/{sensor.name}"
                channels[name] = _with(channels[name], np.roll(channels[name].values, -1, axis=1))
    else:
        for place in _places(channels, contract, fault, level, rng):
            signal = channels[place.channel]
            values = np.array(signal.values, dtype=float).reshape(len(signal.values), -1)
            for column in place.columns:
                values[:, column] = _spoilt(values[:, column], fault, level, rng)
            channels[place.channel] = _with(signal, values.reshape(signal.values.shape))
    return episode.derive(f"fault injected: {fault}", channels={**episode.videos, **channels})


def _named(fault: Fault | str) -> Fault:
    try:
        return Fault(fault)
    except ValueError:
        raise Sim2RealError(f"no fault {fault!r}{nearest(fault, list(Fault))}") from None


def _interface(bundle: Bundle | GraphInterface) -> GraphInterface:
    return bundle if isinstance(bundle, GraphInterface) else GraphInterface.of(bundle)


def _with(signal: Signal, values: np.ndarray) -> Signal:
    return Signal(signal.times, values, signal.unit, signal.stated_hz)


def _spoilt(series: np.ndarray, fault: Fault, level: int, rng: np.random.Generator) -> np.ndarray:
    if fault is Fault.SIGN:
        return -series
    if fault is Fault.DEGREES:
        return series * DEGREES
    if fault in (Fault.OFFSET, Fault.POSE):
        return series + float(OFFSETS[level] * rng.choice([-1.0, 1.0]) * rng.uniform(0.8, 1.2))
    if fault is Fault.SCALE:
        return series * float(FACTORS[level] ** rng.choice([-1.0, 1.0]))
    if fault in (Fault.OBSERVATION_DELAYED, Fault.ACTION_DELAYED):
        late = np.concatenate([np.repeat(series[:1], PERIODS[level]), series])
        return late[: len(series)]
    if fault is Fault.STALE:
        length = max(2, int(_FROZEN[level] * len(series)))
        # Frozen where it moves: elsewhere nothing is broken.
        most = int(np.argmax(np.abs(np.diff(series))))
        first, last = max(0, most - length + 2), min(most, len(series) - length)
        begin = int(rng.integers(first, max(first, last) + 1))
        stuck = series.copy()
        stuck[begin : begin + length] = series[begin]
        return stuck
    raise ValueError(fault)


def _places(
    channels: Mapping[str, Signal], contract: Contract, fault: Fault, level: int,
    rng: np.random.Generator,
) -> list[Place]:  # fmt: skip
    """Channels and columns that move, some of which get the fault."""
    readings = [
        Place(channel=f"sensor/{s.name}", columns=tuple(range(s.width)))
        for s in contract.sensors
        if s.unit.startswith("rad") or fault is not Fault.DEGREES
    ]
    command = tuple(range(len(contract.commands)))
    joints: list[int] = []
    begin = 0
    for term in contract.observations:
        if term.unit.startswith("rad") or fault is not Fault.DEGREES:
            joints += range(begin, begin + term.width)
        begin += term.width
    shown = [Place(channel="observation", columns=(c,)) for c in joints]
    acted = [
        Place(channel=name, columns=(c,))
        for name in ("action",)
        for c in command[: _width(channels, "action")]
    ]
    sent = [Place(channel="command", columns=(c,)) for c in command]
    if fault is Fault.ACTION_DELAYED:
        name = str(rng.choice(["action", "command"]))
        return [Place(channel=name, columns=tuple(range(_width(channels, name))))]
    if fault is Fault.OBSERVATION_DELAYED:
        if rng.random() < 0.5:
            return [Place(channel="observation", columns=tuple(range(contract.frame_width)))]
        return readings if rng.random() < 0.5 else _moving(channels, readings, rng, 1)
    if fault is Fault.POSE:
        if rng.random() < 0.5:
            return [Place(channel="command", columns=command)]
        begin = 0
        for term in contract.observations:
            if all(s.endswith("_pos") for s in term.sources) and term.unit == "rad":
                return [
                    Place(channel="observation", columns=tuple(range(begin, begin + term.width)))
                ]
            begin += term.width
    if fault is Fault.OFFSET:
        return _moving(channels, [p for p in readings if len(p.columns) == 1], rng, 1)
    if fault is Fault.DEGREES:
        sets = [readings, shown, [Place(channel="command", columns=command)]]
        if contract.commands[0].unit != "rad":
            sets = sets[:2]
    elif fault is Fault.STALE:
        sets = [readings, shown]
    else:
        sets = [readings, shown, acted, sent]
    sets = [places for places in sets if _moving(channels, places, rng, 1)]
    chosen = sets[int(rng.integers(len(sets)))]
    count = (1, max(1, len(chosen) // 2), len(chosen))[level] if fault is not Fault.STALE else 1
    return _moving(channels, chosen, rng, count)


def _width(channels: Mapping[str, Signal], name: str) -> int:
    return int(np.prod(channels[name].values.shape[1:]))


def _moving(
    channels: Mapping[str, Signal], places: list[Place], rng: np.random.Generator, count: int
) -> list[Place]:
    """Some of the places, of those whose values change: a fault of a resting channel is none."""
    alive = []
    for place in places:
        values = channels[place.channel].values.reshape(len(channels[place.channel].values), -1)
        values = np.asarray(values, dtype=float)[:, list(place.columns)]
        restless = (np.abs(np.diff(values, axis=0)) > 1e-3).mean(axis=0).max() > 0.1
        if restless and np.ptp(values, axis=0).max() > 0.02:
            alive.append(place)
    chosen = rng.permutation(len(alive))[:count]
    return [alive[int(k)] for k in chosen]


def _permute(
    channels: dict[str, Signal], contract: Contract, level: int, rng: np.random.Generator
) -> None:
    count = len(contract.commands)
    order = np.arange(count)
    if level == 0:
        one, other = rng.choice(count, 2, replace=False)
        order[[one, other]] = order[[other, one]]
    elif level == 1:
        order = np.roll(order, 1)
    else:
        order = order[::-1]
    place = int(rng.integers(3))
    if place == 0:
        for kind in ("jointpos", "jointvel"):
            names = [f"sensor/{s.name}" for s in contract.sensors if s.kind == kind]
            if len(names) == count:
                old = {name: channels[name] for name in names}
                for k, name in enumerate(names):
                    channels[name] = old[names[order[k]]]
    elif place == 1:
        signal = channels["command"]
        channels["command"] = _with(signal, signal.values[:, order])
    else:
        begin, values = 0, np.array(channels["observation"].values)
        for term in contract.observations:
            if term.width == count:
                values[:, begin : begin + count] = values[:, begin : begin + count][:, order]
            begin += term.width
        channels["observation"] = _with(channels["observation"], values)


def _slow(channels: dict[str, Signal], level: int, rng: np.random.Generator) -> None:
    stretch = rng.random() < 0.5
    keep = np.ones(len(channels["action"].times), dtype=bool)
    if not stretch:
        keep = rng.random(len(keep)) < 1.0 / _SLOWER[level]
        times = channels["action"].times[keep]
    for name, signal in list(channels.items()):
        if stretch:
            channels[name] = Signal(
                signal.times * _SLOWER[level], signal.values, signal.unit, signal.stated_hz
            )
        else:
            some = np.isin(signal.times, times)
            channels[name] = Signal(
                signal.times[some], signal.values[some], signal.unit, signal.stated_hz
            )


def _take_away(
    channels: dict[str, Signal], contract: Contract, level: int, rng: np.random.Generator
) -> None:
    places = [
        Place(channel=f"sensor/{s.name}", columns=tuple(range(s.width))) for s in contract.sensors
    ]
    for place in _moving(channels, places, rng, 1 + level):
        how = int(rng.integers(3))
        signal = channels[place.channel]
        if how == 0:
            del channels[place.channel]
        else:
            filler = 0.0 if how == 1 else np.nan
            channels[place.channel] = _with(signal, np.full(signal.values.shape, filler))


def _network(
    channels: dict[str, Signal], interface: GraphInterface, fault: Fault, level: int,
    rng: np.random.Generator,
) -> None:  # fmt: skip
    """Actions as a network with a fault gives them."""
    signal = channels["observation"]
    given = interface.stacked(np.asarray(signal.values, dtype=float))
    if fault is Fault.HISTORY:
        history = interface.contract.history
        given = given.reshape(len(given), history, -1)[:, ::-1].reshape(len(given), -1)
    elif fault is Fault.NORMALISER and interface.normaliser is not None:
        mean, scale = interface.normaliser
        if rng.random() < 0.3:
            frame = signal.values.shape[1]
            spoilt = (signal.values.astype(float) - mean[-frame:]) / scale[-frame:]
            channels["observation"] = _with(signal, spoilt)
            return
        given = given * scale + mean if rng.random() < 0.5 else (given - mean) / scale
    raw = interface.runtime.policy(given)
    if fault is Fault.SATURATED:
        would = float((np.abs(raw) >= 1.0).mean())
        share = would + (1.0 - would) * _AT_LIMIT[level]
        raw = raw / np.quantile(np.abs(raw), 1.0 - share)
    action = np.clip(raw, -1.0, 1.0)
    channels["action"] = _with(channels["action"], action.astype(float))
