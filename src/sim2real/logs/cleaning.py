"""Cleans a recording: leaves out a few bad samples, and refuses faults that spoil an analysis."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sim2real.arrays import Bools
from sim2real.contract import Contract
from sim2real.data import Episode, LogFault, Signal, bad_samples, check_episode
from sim2real.errors import Sim2RealError
from sim2real.logs.thresholds import LogThresholds
from sim2real.twin import Twin

_CLOCK_FAULTS = ("time-not-finite", "time-repeated", "time-backward", "time-rate", "clock-drift")
"""Faults of time; a few samples with one of the first three are left out."""
_MIN_STEP_S, _MAX_STEP_S = 2e-5, 1.0
"""Plausible steps of a control clock [s]."""


def usable(episode: Episode, contract: Contract, twin: Twin, thresholds: LogThresholds) -> Episode:
    """The episode without its few bad samples; too many of them are a `Sim2RealError`."""
    known = channels_of(episode, contract, twin)
    readings = [name for name, kind in known.items() if kind == "reading"]
    if contract.sensors and not readings:
        wanted = ", ".join(f"sensor/{spec.name}" for spec in contract.sensors[:3])
        raise Sim2RealError(
            f"episode {episode.id} has none of the readings of twin {twin.name!r}: is it of another"
            f" robot? It has {', '.join(list(episode.channels)[:6])}; the twin has {wanted}. Map"
            " its channels in [channels] of the twin, or in a file given as --channels"
        )
    if contract.commands and "command" not in known.values():
        raise Sim2RealError(
            f"episode {episode.id} has no commands of twin {twin.name!r}"
            f" ({', '.join(spec.name for spec in contract.commands)}); record what was sent as"
            " `command`, or map its channel in [channels] of the twin"
        )
    mine = {name: episode.signals[name] for name in known}
    _refuse_clocks(episode, mine, thresholds.wrong_stamps)
    channels = dict(episode.channels)
    for name, signal in mine.items():
        channels[name] = _numbers_only(episode, name, signal, known[name], thresholds.lost_samples)
    return replace(episode, channels=channels)


def channels_of(episode: Episode, contract: Contract, twin: Twin) -> dict[str, str]:
    """Kind of each channel of the episode that the twin knows: 'reading', 'command' or 'switch'."""
    readings = {name for spec in contract.sensors for name in (f"sensor/{spec.name}", spec.name)}
    commands = {"command"} | {f"actuator/{spec.name}" for spec in contract.commands}
    switches = {f"actuator/{spec.name}/enabled" for spec in contract.commands}
    for name, channel in twin.channels.items():
        if channel.source in switches:
            switches.add(name)
        elif channel.source.startswith("actuator/"):
            commands.add(name)
        elif channel.source.startswith(("sensor/", "joint/")):
            readings.add(name)
    kinds = (("reading", readings), ("command", commands), ("switch", switches))
    return {name: kind for kind, names in kinds for name in episode.signals if name in names}


def _refuse_clocks(episode: Episode, signals: dict[str, Signal], most_wrong: float) -> None:
    for name, signal in signals.items():
        steps = np.diff(signal.times[np.isfinite(signal.times)])
        steps = steps[steps > 0]
        typical = float(np.median(steps)) if len(steps) else 0.0
        if typical > _MAX_STEP_S or 0 < typical < _MIN_STEP_S:
            raise Sim2RealError(
                f"episode {episode.id}: the time stamps of {name!r} are {typical:.3g} s apart:"
                " give them in seconds (are they milliseconds, or microseconds?)"
            )
    for finding in check_episode(replace(episode, channels=signals)):
        few = finding.span.count <= most_wrong * len(signals[finding.channel].times)
        spared = few and finding.kind in _CLOCK_FAULTS[:3]
        if finding.severity == "error" and finding.kind in _CLOCK_FAULTS and not spared:
            raise Sim2RealError(_clock_words(episode, finding))


def _clock_words(episode: Episode, finding: LogFault) -> str:
    more = f" and {len(finding.also)} more" if finding.also else ""
    remedy = finding.remedy
    if finding.kind == "time-rate":
        remedy = "give the stamps in seconds, or correct the stated rate"
    return (
        f"episode {episode.id}: time stamps of {finding.channel!r}{more} are wrong:"
        f" {finding.message}; {remedy} (`sim2real data check --repair` can help)"
    )


def _numbers_only(
    episode: Episode, name: str, signal: Signal, kind: str, most_lost: float
) -> Signal:
    """The signal without bad samples: values that are not finite, and impossible readings.

    Unknown commands stay, as nan.
    """
    signal = signal if np.isfinite(signal.times).all() else _kept(signal, np.isfinite(signal.times))
    if signal.values.dtype.kind != "f" or not len(signal.values):
        return signal
    broken, absurd = bad_samples(signal, name)
    wrong = broken | absurd if kind == "reading" else broken
    good = np.asarray(~wrong.any(axis=1))
    lost = float((~good).mean())
    if lost > most_lost:
        raise Sim2RealError(
            f"episode {episode.id}: {lost:.0%} of the values of {name!r} are not finite or"
            f" physically impossible, and at most {most_lost:.0%} can be left out: repair the"
            " recording, or leave it out"
        )
    if good.all():
        return signal
    if kind == "command":
        # What was sent is unknown, so nothing is replayed across it.
        return replace(signal, values=np.where(np.isfinite(signal.values), signal.values, np.nan))
    return _kept(signal, good)


def _kept(signal: Signal, good: Bools) -> Signal:
    return replace(signal, times=signal.times[good], values=signal.values[good])
