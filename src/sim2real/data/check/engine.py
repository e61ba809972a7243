"""All checks of an episode, in the order in which one fault may hide another."""

from __future__ import annotations

import numpy as np

from sim2real.data.check.clipped import check_clipped
from sim2real.data.check.clocks import check_clock, check_clock_channels, check_spans, clocks
from sim2real.data.check.finding import SEVERITIES, Finding
from sim2real.data.check.pace import check_drift, check_pace, drifts
from sim2real.data.check.pairs import followings, motions
from sim2real.data.check.shift import check_shift
from sim2real.data.check.stuck import check_stuck
from sim2real.data.check.tracks import Track, tracks
from sim2real.data.check.units import check_units
from sim2real.data.check.values import all_bad_samples, check_values
from sim2real.data.episode import Episode


def check(episode: Episode) -> list[Finding]:
    """What is wrong with a recorded log, worst first; nothing for a clean one.

    Clocks are checked for every channel, values for the numeric ones. Time stamps and values
    found wrong are left out of what follows, so that one fault is told once.
    """
    with np.errstate(over="ignore", under="ignore"):
        return sorted(_findings(episode), key=lambda f: SEVERITIES.index(f.severity))


def _findings(episode: Episode) -> list[Finding]:
    found: list[Finding] = []
    ticking = clocks(episode)
    for clock in ticking:
        found += check_clock(clock)
    marks = all_bad_samples(episode)
    for name, (broken, absurd) in marks.items():
        found += check_values(name, episode.signals[name], broken, absurd)
    single = tracks(episode, {name: broken | absurd for name, (broken, absurd) in marks.items()})
    moving = motions(single)
    following = followings(single)
    clipped = list(check_clipped(single, moving))
    # A flat top is told once, as what it is, and tells nothing about time or units.
    cut = {(f.channel, f.place.component) for f in clipped}
    found += clipped
    found += check_stuck(single, moving, following, {channel for channel, _ in cut})
    moving = [m for m in moving if not {_key(m.position), _key(m.velocity)} & cut]
    found += check_units(single, moving, following)
    if not any(f.kind == "time-rate" for f in found):
        found += check_pace(moving)
    found += check_clock_channels(single)
    lags = drifts(moving, following)
    sharing = {name: len(clock.names) for clock in ticking for name in clock.names}
    drifting = list(check_drift(lags, sharing))
    found += drifting
    if not drifting:
        steady = {frozenset((d.cause.channel, d.response.channel)) for d in lags if not d.rate}
        found += check_spans(ticking, steady)
    # A clock that drifts is at another rate than stated by that alone.
    drifted = {name for f in found if f.kind == "clock-drift" for name in f.channels}
    found = [f for f in found if f.kind != "time-rate" or not drifted & set(f.channels)]
    # An action on a drifting clock is early or late by that alone.
    if not drifted:
        found += check_shift(single, following)
    return found


def _key(track: Track) -> tuple[str, int | None]:
    return track.channel, track.component
