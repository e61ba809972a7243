"""Recordings that would spoil an identification are refused, with one line that says what to do.

Clocks and values are checked as in `sim2real data check`, for the channels that the twin knows: a
few bad samples are left out, many are refused. Motion is checked in the aligned logs: a robot at
rest, or one driven by a command that was not recorded, says nothing about its parameters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sim2real.errors import Sim2RealError
from sim2real.identification.thresholds import IdentifyThresholds
from sim2real.logs import ControlLog
from sim2real.replay import Replayer, seconds_of
from sim2real.twin import Twin

_MAX_SPREAD_AT_REST = 1.5
"""Spread, relative to the scatter between samples, up to which a reading is noise at rest."""
_MAX_LATER_SPEED = 0.9
"""Later speed, relative to that at the start, above which something still drives the robot."""
_HORIZON_S = 0.5
"""Time ahead over which a twin must predict better than the mean reading [s]."""


def refuse_poor(logs: Sequence[ControlLog], thresholds: IdentifyThresholds) -> None:
    """Refuse logs from which no fit can learn anything: a `Sim2RealError`."""
    seconds = seconds_of(logs)
    if seconds < thresholds.shortest_s:
        raise Sim2RealError(
            f"the logs have {seconds:.2g} s in all; at least {thresholds.shortest_s:g} s are"
            " needed, and 20 s of motion is a good start: `sim2real record` makes them"
        )
    if all(_rests(log) for log in logs):
        raise Sim2RealError(
            f"the robot rests in all {len(logs)} recordings: its readings show only noise;"
            " record motions with `sim2real record`"
        )
    if not logs[0].command.shape[1]:
        return
    if all(_undriven(log) for log in logs):
        raise Sim2RealError(
            "the command never changes, but the robot keeps moving: what moved it was not recorded;"
            " record the commands that were really sent, in the channel that the twin knows as"
            f" {', '.join(f'actuator/{c.name}' for c in logs[0].contract.commands[:3])}"
        )
    _refuse_saturated(logs, thresholds)


def another_robot(twin: Twin, logs: Sequence[ControlLog]) -> str:
    """Why these logs seem to be of another robot than the twin describes; '' if they do not.

    Over half a second from a measured state, a twin of the robot predicts most readings better than
    their mean does.
    """
    values = twin.best_guess()[None]
    try:
        found = Replayer(twin, ControlLog.join(logs), horizon_s=_HORIZON_S, values=values)(values)
    except Sim2RealError:  # the logs are too short, which others report
        return ""
    worst: list[float] = []
    for _, part in found.log.columns():
        measured, seen = found.measured[..., part], found.valid[..., part]
        spread = float(measured[seen].std()) if seen.any() else 0.0
        if spread <= 3.0 * float(found.noise[part].max()):
            continue  # at rest the mean predicts as well as anything
        error = found.errors[0][..., part][seen]
        size = float(np.sqrt(np.mean(error**2))) if np.isfinite(error).all() else math.inf
        worst.append(size / spread)
    if not worst or float(np.median(worst)) < 1.0:
        return ""
    return (
        f"errors over {_HORIZON_S:g} s are {float(np.median(worst)):.1f} times the spread of the"
        " readings themselves: the recordings are of another robot, or their channels or units are"
        " not what the twin expects"
    )


def _rests(log: ControlLog) -> bool:
    """Whether every reading of a log only scatters around one value."""
    for column in range(log.readings.shape[1]):
        known = log.readings[np.isfinite(log.readings[:, column]), column]
        if len(known) < 3:
            continue
        scatter = float(np.diff(known).std()) / math.sqrt(2)
        if known.std() > _MAX_SPREAD_AT_REST * scatter + 1e-9 * (1 + float(np.abs(known).max())):
            return False
    return True


def _undriven(log: ControlLog) -> bool:
    """Whether a robot keeps moving under a constant command, and not by itself."""
    known = log.command[np.isfinite(log.command).all(axis=1)]
    if not len(known) or np.ptp(known, axis=0).max() > 1e-9 or log.enabled is not None:
        return False
    if _rests(log):
        return False
    servos = [spec.stiffness > 0 for spec in log.contract.commands]
    if not any(servos):
        return bool(known[0].any())  # without torque it may swing freely
    # A servo that is released, or steps to its target, moves most at first; a driven one does not.
    speed = np.abs(np.diff(log.readings, axis=0)) / np.maximum(
        np.nanstd(log.readings, axis=0), 1e-9
    )
    thirds = [float(np.nanmean(part)) for part in np.array_split(speed, 3)]
    return max(thirds[1:]) > _MAX_LATER_SPEED * thirds[0]


def _refuse_saturated(logs: Sequence[ControlLog], thresholds: IdentifyThresholds) -> None:
    command = np.concatenate([log.command for log in logs])
    for column, spec in enumerate(logs[0].contract.commands):
        low, high = spec.low, spec.high
        sent = command[np.isfinite(command[:, column]), column]
        if not len(sent) or not math.isfinite(high - low):
            continue
        slack = 1e-6 * max(1.0, high - low)
        beyond = float(((sent < low - slack) | (sent > high + slack)).mean())
        at = float(((sent <= low + slack) | (sent >= high - slack)).mean())
        is_beyond = beyond > thresholds.beyond_limits
        if is_beyond or at > thresholds.at_limits:
            share, where = (beyond, "beyond") if is_beyond else (at, "at")
            raise Sim2RealError(
                f"the command of {spec.name!r} is {where} its limits {low:g} .. {high:g}"
                f" {spec.unit} in {share:.0%} of the rows, so the drive did not do what was sent;"
                " record smaller motions, or correct the channel's unit"
            )
