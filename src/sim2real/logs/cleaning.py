"""Cleans a recording, once and the same way for every analysis, and keeps what it did.

A few bad samples are left out. What is too wrong for that stays as recorded and is a fault: an
analysis of motion refuses it, the doctor looks into it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from sim2real.contract import Contract
from sim2real.data import Episode, LogFault, Signal, bad_samples, check_episode
from sim2real.errors import Sim2RealError
from sim2real.logs.thresholds import LogThresholds
from sim2real.plain import PlainData
from sim2real.twin import Channel

_CLOCK_FAULTS = ("time-not-finite", "time-repeated", "time-backward", "time-rate", "clock-drift")
"""Faults of time; a few samples with one of the first three are left out."""
_MIN_STEP_S, _MAX_STEP_S = 2e-5, 1.0
"""Plausible steps of a control clock [s]."""


@dataclass(frozen=True, kw_only=True)
class Cleaning(PlainData):
    """What was done to a recording before it became a log, and what is still wrong with it."""

    bad_values: Mapping[str, int] = field(default_factory=dict)
    """Samples left out, by channel, that were not finite or physically impossible."""
    bad_stamps: Mapping[str, int] = field(default_factory=dict)
    """Samples left out, by channel, whose time stamps were not finite, repeated or went back."""
    faults: tuple[str, ...] = ()
    """What is too wrong to be left out; it is as recorded."""
    even_hz: float = 0.0
    """Rate of the even control periods it was resampled to [Hz]; 0 for periods as recorded."""
    content: str = ""
    """SHA-256 of the cleaned channels."""

    @classmethod
    def of_all(cls, parts: Sequence[Cleaning]) -> Cleaning:
        """What was done to several recordings together."""
        return cls(
            bad_values=sum((Counter(part.bad_values) for part in parts), Counter()),
            bad_stamps=sum((Counter(part.bad_stamps) for part in parts), Counter()),
            faults=tuple(fault for part in parts for fault in part.faults),
            even_hz=max((part.even_hz for part in parts), default=0.0),
            content=hashlib.sha256("".join(part.content for part in parts).encode()).hexdigest(),
        )

    @property
    def left_out(self) -> int:
        """Samples that were left out."""
        return sum(self.bad_values.values()) + sum(self.bad_stamps.values())


def clean(
    episode: Episode,
    contract: Contract,
    channels: Mapping[str, Channel],
    thresholds: LogThresholds,
) -> tuple[Episode, Cleaning]:
    """The episode without its few bad samples, under the same id, and what was done."""
    kinds = channels_of(episode, contract, channels)
    signals = {name: episode.signals[name] for name in kinds}
    faults = list(_clock_faults(episode, signals, thresholds.wrong_stamps))
    bad_values, bad_stamps = {}, {}
    for name, kind in kinds.items():
        recorded = signals[name]
        stamped, fault = _forward(name, recorded, thresholds.wrong_stamps)
        faults += fault
        bad_stamps[name] = len(recorded.times) - len(stamped.times)
        signals[name], fault = _possible(name, stamped, kind, thresholds.lost_samples)
        faults += fault
        bad_values[name] = len(stamped.times) - len(signals[name].times)
    hashed = hashlib.sha256()
    for name in sorted(signals):
        hashed.update(name.encode() + signals[name].digest())
    done = Cleaning(
        bad_values={name: count for name, count in bad_values.items() if count},
        bad_stamps={name: count for name, count in bad_stamps.items() if count},
        faults=tuple(faults),
        content=hashed.hexdigest(),
    )
    return replace(episode, channels={**episode.channels, **signals}), done


def refuse_spoilt(
    episode: Episode,
    contract: Contract,
    channels: Mapping[str, Channel],
    done: Cleaning,
) -> None:
    """Raise a `Sim2RealError` for an episode whose motion cannot be analysed."""
    kinds = channels_of(episode, contract, channels).values()
    if contract.sensors and "reading" not in kinds:
        wanted = ", ".join(f"sensor/{spec.name}" for spec in contract.sensors[:3])
        raise Sim2RealError(
            f"episode {episode.id} has none of the readings of twin {contract.robot!r}: is it of"
            f" another robot? It has {', '.join(list(episode.channels)[:6])}; the twin has"
            f" {wanted}. Map its channels in [channels] of the twin, or in a file given as"
            " --channels"
        )
    if contract.commands and "command" not in kinds:
        raise Sim2RealError(
            f"episode {episode.id} has no commands of twin {contract.robot!r}"
            f" ({', '.join(spec.name for spec in contract.commands)}); record what was sent as"
            " `command`, or map its channel in [channels] of the twin"
        )
    if done.faults:
        raise Sim2RealError(f"episode {episode.id}: {done.faults[0]}")


def channels_of(
    episode: Episode, contract: Contract, channels: Mapping[str, Channel]
) -> dict[str, str]:
    """Kind of each channel of the episode that the twin knows: 'reading', 'command' or 'switch'."""
    readings = {name for spec in contract.sensors for name in (f"sensor/{spec.name}", spec.name)}
    commands = {"command"} | {f"actuator/{spec.name}" for spec in contract.commands}
    switches = {f"actuator/{spec.name}/enabled" for spec in contract.commands}
    for name, channel in channels.items():
        if channel.source in switches:
            switches.add(name)
        elif channel.source.startswith("actuator/"):
            commands.add(name)
        elif channel.source.startswith(("sensor/", "joint/")):
            readings.add(name)
    kinds = (("reading", readings), ("command", commands), ("switch", switches))
    return {name: kind for kind, names in kinds for name in episode.signals if name in names}


def _clock_faults(episode: Episode, signals: dict[str, Signal], most_wrong: float) -> Iterator[str]:
    for name, signal in signals.items():
        steps = np.diff(signal.times[np.isfinite(signal.times)])
        steps = steps[steps > 0]
        typical = float(np.median(steps)) if len(steps) else 0.0
        if typical > _MAX_STEP_S or 0 < typical < _MIN_STEP_S:
            yield (
                f"the time stamps of {name!r} are {typical:.3g} s apart:"
                " give them in seconds (are they milliseconds, or microseconds?)"
            )
    for finding in check_episode(replace(episode, channels=signals)) if signals else ():
        few = finding.span.count <= most_wrong * len(signals[finding.channel].times)
        spared = few and finding.kind in _CLOCK_FAULTS[:3]
        if finding.severity == "error" and finding.kind in _CLOCK_FAULTS and not spared:
            yield _clock_words(finding)


def _clock_words(finding: LogFault) -> str:
    more = f" and {len(finding.also)} more" if finding.also else ""
    remedy = finding.remedy
    if finding.kind == "time-rate":
        remedy = "give the stamps in seconds, or correct the stated rate"
    return (
        f"time stamps of {finding.channel!r}{more} are wrong:"
        f" {finding.message}; {remedy} (`sim2real data check --repair` can help)"
    )


def _forward(name: str, signal: Signal, most_wrong: float) -> tuple[Signal, list[str]]:
    """The samples whose time stamps increase; all of them, with a fault, if too many do not."""
    times = signal.times
    good = np.isfinite(times)
    good[good] &= np.concatenate([[True], np.diff(np.maximum.accumulate(times[good])) > 0])
    if good.all():
        return signal, []
    if (~good).mean() > most_wrong:
        return signal, [
            f"{(~good).mean():.0%} of the time stamps of {name!r} repeat or go backwards;"
            " `sim2real data check --repair` says what is wrong"
        ]
    return replace(signal, times=times[good], values=signal.values[good]), []


def _possible(name: str, signal: Signal, kind: str, most_lost: float) -> tuple[Signal, list[str]]:
    """The signal without values that are not finite and impossible readings; all of them, with a
    fault, if they are too many.

    Unknown commands stay, as nan: nothing is replayed across them.
    """
    if signal.values.dtype.kind != "f" or not len(signal.values):
        return signal, []
    broken, absurd = bad_samples(signal, name)
    wrong = broken | absurd if kind == "reading" else broken
    good = np.asarray(~wrong.any(axis=1))
    lost = float((~good).mean())
    if lost > most_lost:
        return signal, [
            f"{lost:.0%} of the values of {name!r} are not finite or physically impossible, and at"
            f" most {most_lost:.0%} can be left out: repair the recording, or leave it out"
        ]
    if good.all():
        return signal, []
    if kind == "command":
        return replace(
            signal, values=np.where(np.isfinite(signal.values), signal.values, np.nan)
        ), []
    return replace(signal, times=signal.times[good], values=signal.values[good]), []
