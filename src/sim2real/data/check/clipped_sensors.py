"""Flat tops: sensors that were driven beyond their range."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sim2real.arrays import Bools, Floats, Ints
from sim2real.data.check.channel_roles import ChannelQuantity
from sim2real.data.check.frozen_channels import runs_of, told_by_partner
from sim2real.data.check.log_fault import LogFault
from sim2real.data.check.related_channels import PositionVelocityPair
from sim2real.data.check.scalar_series import ScalarSeries

MIN_TOP_SAMPLES = 3
"""Fewest samples of a flat top."""
MIN_TOPS = 3
"""Fewest flat tops: one may be chance, or rest."""
MIN_SHOWN_TOPS = 2
"""Fewest flat tops where a related channel shows motion during them."""
MIN_HIDDEN_QUANTA = 3.0
"""What a flat top hides must exceed what quantisation can hide, one quantum, by this factor."""
MAX_FINE_QUANTUM = 1e-5
"""Resolution as a share of the range below which a series is not an encoder's count."""
MIN_PARTNER_SPEED = 0.25
"""Speed over a flat top by a related channel, relative to that at its edges; a parabola has 0.5."""


def check_clipped(
    all_series: list[ScalarSeries], motions: list[PositionVelocityPair]
) -> Iterator[LogFault]:
    """Measured channels with flat tops at their extremes that were entered with speed."""
    partners: dict[int, PositionVelocityPair] = {}
    for motion in motions:
        if motion.confirmed:
            partners.setdefault(id(motion.position), motion)
            partners.setdefault(id(motion.velocity), motion)
    for series in all_series:
        if series.role.driven or series.role.quantity == ChannelQuantity.TIME or series.span == 0:
            continue
        if len(np.unique(series.values[:4096])) < 20:
            continue  # a switch, a mode, a coarse count
        for bound in (float(series.values.max()), float(series.values.min())):
            tops = _flat_tops(series, bound)
            if len(tops) < MIN_SHOWN_TOPS:
                continue
            real = _real(series, tops, partners.get(id(series)))
            least = MIN_SHOWN_TOPS if id(series) in partners else MIN_TOPS
            if real.sum() >= max(0.5 * len(tops), least):
                yield _fault(series, bound, tops[real])


def _flat_tops(series: ScalarSeries, bound: float) -> Ints:
    """First and last sample of each span at a bound, (spans, 2); not at the log's ends."""
    at = series.values == bound
    if at.sum() < MIN_TOP_SAMPLES * MIN_SHOWN_TOPS:
        return np.zeros((0, 2), dtype=int)
    tops = runs_of(at[1:] & at[:-1])
    inside = (tops[:, 0] >= 3) & (tops[:, 1] < len(series.values) - 3)
    return np.asarray(tops[inside & (tops[:, 1] - tops[:, 0] + 1 >= MIN_TOP_SAMPLES)])


def _real(series: ScalarSeries, tops: Ints, motion: PositionVelocityPair | None) -> Bools:
    """Which flat tops come from the sensor rather than from the joint.

    A sensor's range cuts the top off a curve: it enters with a speed v and leaves with about the
    same after a time T, and a parabola between the two would have risen by v T / 4. At a natural
    turning point of a quantised signal that is one quantum at most; for a joint that rests at its
    stop it is more than its whole range.
    """
    lengths = tops[:, 1] - tops[:, 0] + 1
    # The speed over half as many samples as the top has: over one sample, flicker would be speed.
    wide = np.clip(lengths // 2, 2, 25)
    last = len(series.values) - 1
    before, after = np.maximum(tops[:, 0] - wide, 0), np.minimum(tops[:, 1] + wide, last)
    top = series.values[tops[:, 0]]
    enter = np.abs(series.values[before] - top) / wide
    leave = np.abs(series.values[after] - top) / wide
    slower = np.minimum(enter, leave)
    hidden = 0.25 * slower * lengths
    quantum = MIN_HIDDEN_QUANTA * series.quantum
    real = (hidden > quantum) & (hidden < series.span) & (slower * wide > quantum)
    real &= slower > 0.1 * np.maximum(enter, leave)
    if motion is None or motion.lag is None:
        # A quantised joint at its stop, a cruise at full speed: as flat as a clipped sensor.
        fine = series.quantum < MAX_FINE_QUANTUM * series.span
        return np.asarray(real & (fine or series.role.quantity == ChannelQuantity.EFFORT))
    # A top that is no parabola is cut off too, if the related channel shows clear motion over it.
    shown = np.array([bool(told_by_partner(series, motion, (int(a), int(b)))) for a, b in tops])
    moves = _moves(series, motion, tops)
    if series is motion.position:
        beyond = moves > MIN_PARTNER_SPEED * slower / series.step_s
    else:
        beyond = moves - abs(float(top[0])) > np.maximum(MIN_PARTNER_SPEED * hidden, quantum)
    return np.asarray(shown | (real & beyond))


def _moves(series: ScalarSeries, motion: PositionVelocityPair, tops: Ints) -> Floats:
    """Mean speed over each flat top according to the related channel, in the series' own units."""
    assert motion.lag is not None
    ratio = abs(1.0 / motion.si if motion.units_known else motion.slope()[0])
    late = motion.lag.lag_s
    if series is motion.position:
        partner = motion.velocity
        told = np.interp(series.times + late, partner.times, np.abs(partner.values)) * ratio
        return np.array([told[first + 1 : last].mean() for first, last in tops])
    partner = motion.position
    ends = np.interp(series.times[tops] - late, partner.times, partner.values)
    spans = np.maximum(series.times[tops[:, 1]] - series.times[tops[:, 0]], series.step_s)
    return np.asarray(np.abs(ends[:, 1] - ends[:, 0]) / spans / ratio)


def _fault(series: ScalarSeries, bound: float, tops: Ints) -> LogFault:
    count = int((tops[:, 1] - tops[:, 0] + 1).sum())
    first, last = int(tops[0, 0]), int(tops[-1, 1])
    return LogFault(
        kind="clipped",
        channel=series.channel,
        span=series.span_of(series.component, first, last, count),
        message=f"{series.label} is flat at {bound:.6g} {series.unit} in {len(tops)} spans, "
        f"{count} samples, each entered and left with speed".replace("  ", " "),
        remedy="the values beyond are lost: leave these spans out, or widen the range",
    )
