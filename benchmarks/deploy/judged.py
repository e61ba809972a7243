"""What a fault did, judged after the fact from what was true.

Nothing here is shared with the runner or the supervisor. A limit counts as exceeded where a joint
goes further beyond it than the same robot would that stops at the end of the detection bound: that
robot is simulated from the same state, once relaxed and once in its own safe stop (it holds, or
brakes where drives give torques), and the larger of the two counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from benchmarks.deploy.flights import Flown
from benchmarks.deploy.true_trace import Departure, Motion, TrueTrace
from sim2real.arrays import Bools, Floats
from sim2real.contract import Limits

DETECTION_S = 0.1
"""Time after which a fault of anything that moves has to be noticed [s]."""
FURTHER_RAD = np.radians(2.0)
"""How much further than its limit a joint could be when a fault is noticed, at most [rad]."""
_NOTICED_S = 0.1
"""How long after it ended a fault still explains that a limit is passed [s]."""
_MATTERS = {"position": FURTHER_RAD, "speed": 0.02, "tool": 0.02}
"""Excess that is within what sensors err: [rad], share of the limit, [m]."""
_MORE = {"position": 0.01, "speed": 0.02, "tool": 0.005}
"""Excess over the other robot's that is within what simulating it again differs by."""
_AFTER_S = 2.0
"""How long the other robot is simulated [s]."""
_RESTS = 0.1
"""Speed of a robot at rest [rad/s]."""
_PRESSED_S, _PRESSED_SHARE, _STILL = 1.0, 0.4, 0.02
"""A blocked joint may be pressed against with that share of its torque for so long [s]; it is the
half second of the table for a joint that does not follow, and half a second to be noticed in."""
_STEP_SLACK = 1.01
_CALL_S = 1e-4
"""A call takes at least so long on hardware; in virtual time none [s]."""
_ROUNDING = 1e-6


class Outcome(StrEnum):
    """How a fault ended."""

    SUPERVISOR = "safe_by_supervisor"
    WATCHDOG = "safe_by_watchdog"
    HARMLESS = "safe_without_action"
    UNSAFE = "unsafe"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a fault did."""

    outcome: Outcome
    harms: tuple[str, ...] = ()
    """What makes it unsafe, in words with numbers."""
    limits_exceeded: int = 0
    """How many of them are limits."""
    passed_later: int = 0
    """Limits that a stop right after the fault would have kept, but that were passed by a motion
    which nothing but itself gave away, and was then stopped in time."""
    step_ratio: float = 0.0
    """Largest step of a command that reached the drives, as a share of what was allowed."""
    stopped_after_s: float = np.inf
    """Time from the fault to a safe stop [s]."""


def judge(flown: Flown) -> Verdict:
    """How a flight with a fault ended."""
    trace, trouble = flown.trace, flown.trouble
    ratio = largest_step_ratio(trace.departures, flown.limits, 1.0 / flown.rate_hz)
    passed = list(_passed(flown))
    harms = [limit.words for limit in passed if limit.most > limit.allowed]
    harms += _bad_commands(trace.departures, flown.limits)
    if ratio > _STEP_SLACK:
        harms.append(f"a step of {ratio:.2f} times what is allowed")
    limits_exceeded = len(harms)
    harms += [*_pressed(flown), *_restless(flown)]
    trip = trace.first_trip(trouble.begin_s)
    return Verdict(
        outcome=Outcome.UNSAFE if harms else _who(flown),
        harms=tuple(harms),
        limits_exceeded=limits_exceeded,
        passed_later=sum(limit.allowed >= limit.most > limit.at_once for limit in passed),
        step_ratio=ratio,
        stopped_after_s=trip[0] - trouble.begin_s if trip else np.inf,
    )


def detection_end_s(motion: Motion, limits: Limits, since_s: float) -> float:
    """When something that began at `since_s` has to be noticed at the latest."""
    part = motion.since(since_s)
    if not len(part.times):
        return since_s + DETECTION_S
    wait_s = DETECTION_S
    for joint, angle, speed in zip(limits.joints, part.angles[0], part.speeds[0], strict=True):
        ahead = joint.position_high - angle if speed > 0 else angle - joint.position_low
        if abs(speed) > 1e-6:
            wait_s = min(wait_s, max(0.0, (ahead + FURTHER_RAD) / abs(speed)))
    return since_s + wait_s


def excesses(motion: Motion, limits: Limits) -> dict[tuple[str, str], Floats]:
    """How far beyond each limit it was, (times,) for each ('position', joint) and the like."""
    found: dict[tuple[str, str], Floats] = {}
    for k, joint in enumerate(limits.joints):
        angle, speed = motion.angles[:, k], motion.speeds[:, k]
        beyond = np.maximum(angle - joint.position_high, joint.position_low - angle)
        found["position", joint.name] = beyond
        found["speed", joint.name] = np.abs(speed) / joint.velocity - 1.0
    if limits.tool and motion.tools.shape[1]:
        low, high = np.array(limits.workspace_low), np.array(limits.workspace_high)
        outside = np.maximum(motion.tools - high, low - motion.tools)
        found["tool", limits.tool] = outside.max(axis=1)
    return found


def largest_step_ratio(departures: list[Departure], limits: Limits, period_s: float) -> float:
    """Largest change between commands that reached the drives, over the largest allowed.

    Each command allows its rate times the time since the one before it left, and that of at most a
    period; of commands that were lost the allowance stays.
    """
    rate = np.array([joint.command_rate for joint in limits.joints])
    largest, allowed, reached, least = 0.0, np.zeros(len(rate)), None, rate * _CALL_S
    for k, departure in enumerate(departures):
        before_s = departures[k - 1].leaves_s if k else departure.leaves_s - period_s
        allowed = allowed + rate * min(departure.leaves_s - before_s, period_s)
        if departure.arrives_s is None:
            continue
        values = np.array(departure.values)
        if reached is not None:
            step = np.abs(values - reached)
            largest = max(largest, float(((step - _ROUNDING) / np.maximum(allowed, least)).max()))
        reached, allowed = values, np.zeros(len(rate))
    return largest


@dataclass(frozen=True, kw_only=True)
class _Passed:
    """A limit that was passed: how far, and how far it may be."""

    words: str
    most: float
    allowed: float
    """Excess of the robot that stops in time."""
    at_once: float
    """Excess of the robot that stops in time after the fault, not after the limit was passed."""


def _passed(flown: Flown) -> Iterator[_Passed]:
    """Limits that were passed, by more than sensors err."""
    trouble, limits = flown.trouble, flown.limits
    motion = flown.trace.motion
    after = motion.since(trouble.begin_s)
    others = _Others(flown)
    for (what, name), beyond in excesses(after, limits).items():
        peak = int(np.argmax(beyond))
        most = float(beyond[peak])
        if most <= _MATTERS[what]:
            continue
        before = np.flatnonzero(beyond[:peak] <= 0.0)
        crossed_s = float(after.times[before[-1] + 1 if len(before) else 0])
        from_fault, from_passing = _starts(flown, motion, crossed_s)
        at_once, allowed = (
            max(
                0.0,
                *(
                    others.excess((what, name), detection_end_s(motion, limits, since_s))
                    for since_s in starts
                ),
            )
            + _MORE[what]
            for starts in (from_fault, [*from_fault, *from_passing])
        )
        yield _Passed(
            words=f"{what} of {name} {most:.3f} beyond its limit"
            f" {after.times[peak] - trouble.begin_s:.3f} s after the fault,"
            f" {allowed:.3f} is allowed",
            most=most,
            allowed=allowed,
            at_once=at_once,
        )


def _starts(flown: Flown, motion: Motion, crossed_s: float) -> tuple[list[float], list[float]]:
    """From when on a limit that was passed at `crossed_s` could have been foreseen: from the fault,
    and, where nothing kept the runner from seeing it and stopping, from where it was passed."""
    shows_s = flown.trouble.shows_s(motion)
    blind = [
        begin for begin, end in flown.trouble.impaired if begin <= crossed_s < end + _NOTICED_S
    ]
    return [shows_s, *(max(shows_s, begin) for begin in blind)], [] if blind else [crossed_s]


class _Others:
    """The same robot, stopped at some moment: how far it would have gone beyond each limit."""

    def __init__(self, flown: Flown) -> None:
        self._flown = flown
        self._known: dict[float, dict[tuple[str, str], float]] = {}

    def excess(self, limit: tuple[str, str], stop_s: float) -> float:
        """Its largest excess when it is stopped at a moment, whatever its stop."""
        if stop_s not in self._known:
            self._known[stop_s] = self._simulated(stop_s)
        return self._known[stop_s][limit]

    def _simulated(self, stop_s: float) -> dict[tuple[str, str], float]:
        device, trace = self._flown.robot.device, self._flown.trace
        limits, begin_s = self._flown.limits, self._flown.trouble.begin_s
        until_then = excesses(trace.motion.since(begin_s).until(stop_s), limits)
        most = {name: float(beyond.max(initial=-np.inf)) for name, beyond in until_then.items()}
        stops: tuple[Callable[[], None], ...] = (device.relax, device.stop)
        moment = trace.moment(stop_s)
        for stop in stops:
            device.load(moment)
            seen = TrueTrace(device)
            if device.state == "tripped":  # it had stopped already, by then
                device.state = "ready"
            stop()
            device.advance(device.now_s + _AFTER_S)
            for name, beyond in excesses(seen.motion, limits).items():
                most[name] = max(most[name], float(beyond.max()))
        return most


def _bad_commands(departures: list[Departure], limits: Limits) -> list[str]:
    low = np.array([joint.command_low for joint in limits.joints])
    high = np.array([joint.command_high for joint in limits.joints])
    for departure in departures:
        values = np.array(departure.values)
        inside: Bools = (low - 1e-6 <= values) & (values <= high + 1e-6)
        if not inside.all():
            return [f"a command of {values[int(np.argmin(inside))]:g}, outside its range"]
    return []


def _pressed(flown: Flown) -> list[str]:
    """Blocked joints that a servo pressed against for too long; what a torque drive gives is what
    it is asked for."""
    body = None if flown.robot.device.torque_driven else flown.trouble.body
    motion = flown.trace.motion.since(flown.trouble.begin_s)
    harms = []
    for k in body.blocks if body else ():
        joint = flown.limits.joints[k]
        pressed = np.abs(motion.torques[:, k]) > _PRESSED_SHARE * joint.torque
        pressed &= np.abs(motion.speeds[:, k]) < _STILL
        longest_s = _longest(pressed, motion.times)
        if longest_s > _PRESSED_S:
            harms.append(f"{joint.name} pressed against its block for {longest_s:.2f} s")
    return harms


def _longest(true: Bools, times: Floats) -> float:
    """Longest stretch of time in which something was true [s]."""
    longest, since = 0.0, None
    for is_true, time_s in zip(true, times, strict=True):
        since = (time_s if since is None else since) if is_true else None
        longest = max(longest, 0.0 if since is None else time_s - since)
    return float(longest)


def _restless(flown: Flown) -> list[str]:
    """Whether the robot moves on after the runner has left it."""
    motion = flown.trace.motion
    speed = float(np.abs(motion.speeds[-1]).max())
    if speed <= _RESTS:
        return []
    return [f"it still moves at {speed:.2f} rad/s {motion.times[-1] - flown.left_s:.1f} s later"]


def _who(flown: Flown) -> Outcome:
    """Who made the robot stop, by its own account."""
    trip = flown.trace.first_trip(flown.trouble.begin_s)
    if trip is None:
        return Outcome.HARMLESS
    if not trip[1].startswith("asked to"):
        return Outcome.WATCHDOG
    return Outcome.SUPERVISOR if flown.stopped or flown.raised else Outcome.HARMLESS
