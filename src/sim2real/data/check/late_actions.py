"""Actions that were logged late, after their effect."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import linalg

from sim2real.arrays import Floats, Ints
from sim2real.data.check.channel_roles import ChannelQuantity
from sim2real.data.check.lags import shifted, slope_of
from sim2real.data.check.log_fault import LogFault
from sim2real.data.check.related_channels import CommandPositionPair
from sim2real.data.check.scalar_series import ScalarSeries

MIN_LEAD_SAMPLES = 0.75
"""Fewest samples by which an effect must precede its action: feedforward servos have no lag."""
MIN_CORRELATION = 0.9
"""Least correlation of a command and its effect for their order to count."""
MIN_CHANGE_GAIN = 1.5
"""The acausal order must lower the unexplained part of a position's changes by this factor, so that
a periodic command, which leads as much as it lags, raises no fault."""
MIN_POSITION_GAIN = 1.2
"""The factor for the position itself, of which friction and sag leave more unexplained."""
MIN_FORCE_GAIN = 1.3
"""The factor for an acceleration, most of which is noise."""
MIN_LATE_JOINTS = 0.6
"""Smallest share of a channel's joints that must show that it is late."""
MAX_FEEDBACK_SHARE = 0.9
"""Share of an action that the state explains, above which it comes from a feedback controller."""
MAX_FORCE_DELAY_S = 0.25
"""Longest delay of a force or voltage that is tested [s]."""
MAX_ROWS = 4000
"""Most samples that are used; enough for every statistic here."""


def check_late_actions(
    all_series: list[ScalarSeries], followings: list[CommandPositionPair]
) -> Iterator[LogFault]:
    """Position commands that the position precedes, and forces that the motion precedes."""
    groups: dict[str, list[CommandPositionPair]] = {}
    for pair in followings:
        groups.setdefault(pair.command.channel, []).append(pair)
    for pairs in groups.values():
        early = np.array([lag for pair in pairs if (lag := _early(pair)) is not None])
        if not len(early) or not (early > 0).any():
            continue
        middle = float(np.median(early[early > 0]))
        # A channel is late as a whole: most of its joints must show it, each with its own lag.
        alike = (early > 0) & (np.abs(early - middle) <= 2.0 + 0.5 * middle)
        if alike.mean() > MIN_LATE_JOINTS:
            yield _fault(pairs[0].command, middle, pairs[0].step_s, pairs[0].position.channel)
    if not followings:  # a servo would make the forces from the position commands
        yield from _forces(all_series)


def _early(pair: CommandPositionPair) -> float | None:
    """Samples by which the position precedes the command, 0 for none; None if unrelated."""
    lag = pair.lag
    if lag is None or lag.correlation < MIN_CORRELATION:
        return None
    samples = -lag.lag_s / pair.step_s
    if samples < MIN_LEAD_SAMPLES:
        return 0.0
    causal = float(lag.curve[lag.lags_s > -0.25 * pair.step_s].max())
    if (1 - causal**2) < MIN_CHANGE_GAIN * (1 - lag.correlation**2):
        return 0.0
    # The positions themselves must fit better too, not only their changes.
    _, command, position = pair.grid
    now = slope_of(command, position)[1]
    then = slope_of(shifted(command, -samples), position)[1]
    return samples if (1 - now**2) > MIN_POSITION_GAIN * (1 - then**2) else 0.0


def _forces(all_series: list[ScalarSeries]) -> Iterator[LogFault]:
    """Forces, torques and voltages that the motion precedes, where no controller made them."""
    asked = [t for t in all_series if t.role.command and t.role.quantity == ChannelQuantity.EFFORT]
    states = [
        t
        for t in all_series
        if not t.role.command
        and t.role.quantity in (ChannelQuantity.POSITION, ChannelQuantity.VELOCITY)
    ]
    if not asked or not states or len(states) > 24:
        return
    told: set[str] = set()
    for action in asked:
        if action.channel in told or action.span == 0:
            continue
        samples, effect = _precedes(action, states)
        if samples > 0:
            told.add(action.channel)
            yield _fault(action, samples, action.step_s, effect)


def _precedes(action: ScalarSeries, states: list[ScalarSeries]) -> tuple[float, str]:
    """Samples by which a state's acceleration precedes an action, and that state; 0 for none."""
    start = max(t.times[0] for t in (action, *states))
    end = min(t.times[-1] for t in (action, *states))
    step = action.step_s
    count = int(min((end - start) / step, 20000)) if end > start else 0
    reach = int(np.clip(MAX_FORCE_DELAY_S / step, 4, 60))
    half = max(1, int(0.008 / step))
    if count < max(300, 8 * reach):
        return 0.0, ""
    grid = start + np.arange(count) * step
    force = np.interp(grid, action.times, action.values)
    motion = [np.interp(grid, t.times, t.values) for t in states]
    first, last = reach + 2 * half, count - reach - 2 * half
    rows = np.arange(first, last, max(1, (last - first) // MAX_ROWS))
    basis = _orthonormal(_features(motion, states, rows, half))
    if _explained(basis, force[rows]) > MAX_FEEDBACK_SHARE:
        return 0.0, ""
    lags = np.arange(-reach, reach + 1)
    forces = np.stack([force[rows - lag] for lag in lags], axis=1)
    forces -= basis @ (basis.T @ forces)
    power = np.einsum("ij,ij->j", forces, forces)
    if power.min() <= 1e-9 * float(force.var()) * len(rows):
        return 0.0, ""  # it never changes, or the states explain all of it
    best = (0.0, "", 0.0)
    for series, values in zip(states, motion, strict=True):
        pull = _acceleration(values, series, rows, half)
        pull = pull - basis @ (basis.T @ pull)
        total = float(pull @ pull)
        if total <= 0:
            continue
        gain = (forces.T @ pull) ** 2 / np.maximum(power, 1e-12 * power.max()) / total
        at = int(np.argmax(gain))
        causal = float(gain[lags >= 0].max())
        # The window of the acceleration blurs the order by its half: only beyond that is it early.
        clear = gain[at] > 0.3 and (1 - causal) > MIN_FORCE_GAIN * (1 - gain[at])
        if -reach < lags[at] < -(half + MIN_LEAD_SAMPLES) and clear and gain[at] > best[2]:
            best = (float(-lags[at]), series.label, float(gain[at]))
    return best[0], best[1]


def _acceleration(values: Floats, series: ScalarSeries, rows: Ints, half: int) -> Floats:
    if series.role.quantity == ChannelQuantity.VELOCITY:
        found = values[rows + half] - values[rows - half]
    else:
        found = values[rows + 2 * half] - 2 * values[rows] + values[rows - 2 * half]
    return np.asarray(found - found.mean())


def _features(motion: list[Floats], states: list[ScalarSeries], rows: Ints, half: int) -> Floats:
    """What a controller or a passive force may depend on: states, rates, sines of angles."""
    columns = []
    for values, series in zip(motion, states, strict=True):
        columns.append(values[rows])
        if series.role.quantity == ChannelQuantity.POSITION:
            columns.append(values[rows + half] - values[rows - half])
            if series.role.dimension == "angle":
                columns += [np.sin(values[rows]), np.cos(values[rows])]
        else:
            columns += [np.sign(values[rows]), np.abs(values[rows]) * values[rows]]
    return np.stack(columns, axis=1)


def _orthonormal(columns: Floats) -> Floats:
    """Orthonormal basis of the columns and a constant, without what is nearly dependent."""
    spread = columns.std(axis=0)
    columns = (columns - columns.mean(axis=0))[:, spread > 0] / spread[spread > 0]
    columns = np.c_[np.ones(len(columns)), columns]
    return np.asarray(linalg.orth(columns, rcond=1e-6))


def _explained(basis: Floats, values: Floats) -> float:
    values = values - values.mean()
    total = float(values @ values)
    part = basis.T @ values
    return float(part @ part) / total if total > 0 else 1.0


def _fault(command: ScalarSeries, samples: float, step_s: float, effect: str) -> LogFault:
    whole = int(np.ceil(samples - 0.25))
    return LogFault(
        kind="shift",
        channel=command.channel,
        span=command.span_of(None),
        message=f"{effect} precedes {command.channel} by {samples:.2f} samples "
        f"({1e3 * samples * step_s:.4g} ms): the effect is logged before its cause",
        remedy=f"move {command.channel} at least {whole} samples earlier; log an action with the "
        "state it was applied in",
        repairable=True,
        amount=whole * step_s,
    )
