"""Driver faults that only physics shows: the log is consistent, but the robot does not obey.

A hypothesis corrects a joint's motion. It is accepted if the correction makes the motion more
normal, by far more than it improves any clean simulated episode.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim2real.arrays import Bools, Floats
from sim2real.doctor.driver_faults import DELAYS, Hypothesis, earlier, single_joint, swaps
from sim2real.doctor.findings import Fault, Finding
from sim2real.doctor.graph_interface import GraphInterface
from sim2real.doctor.impossible_readings import ReadingBounds
from sim2real.doctor.joint_response import JointMotion, JointResponseModel
from sim2real.doctor.resting_positions import RestingPositions
from sim2real.doctor.simulated_reference import ReferenceEpisodes, simulated
from sim2real.doctor.thresholds import DoctorThresholds
from sim2real.logs import ControlLog
from sim2real.units import counted

_EXACT_FAULTS = (Fault.SIGN, Fault.PERMUTED)
"""Faults without a number to fit."""
_DELAY_FAULTS = (Fault.OBSERVATION_DELAYED, Fault.ACTION_DELAYED)
_FOLLOWS, _STRAYS = 0.85, 0.6
"""A servo follows its command above the first share of its moving periods, and does not below the
second."""
_PARTS = 2
"""Parts of a motion; a fault must show in each."""
_MIN_MOVING_PERIODS = 12
"""Fewest moving periods of a joint that is judged."""
_MIN_STUCK_PERIODS = 5
"""Fewest equal readings in a row that can count as stuck."""


@dataclass(frozen=True, kw_only=True)
class AcceptedFault:
    """A hypothesis that was accepted for one joint."""

    joint: str
    hypothesis: Hypothesis
    gain: float
    """Improvement of the misfit."""
    left: float
    """Remaining misfit."""


@dataclass(frozen=True)
class TriedHypothesis:
    """A hypothesis about one joint, and the misfit (episodes, parts) before and after it."""

    hypothesis: Hypothesis
    before: Floats
    after: Floats
    """With the fee of the hypothesis."""
    corrected: JointMotion


class PhysicalReference:
    """What is normal for a bundle's robot, and tests for what is not."""

    def __init__(self, interface: GraphInterface, thresholds: DoctorThresholds) -> None:
        """Simulate the reference; a `Sim2RealError` if the task is not installed here."""
        contract, twin = interface.contract, interface.policy.twin
        driven, excited = simulated(interface, worlds=thresholds.worlds, wider=thresholds.wider)
        self._limits = thresholds
        self.bounds = ReadingBounds(driven, excited, interface.limits, thresholds)
        self.model = JointResponseModel(contract, twin, [driven, excited])
        motions = self.model.reference[0]
        means = [np.mean(self._travel(m, k), axis=1) for k, m in enumerate(motions)]
        speeds = [
            np.mean(self._losses(m, k, self.model.speeding(m, k), speed=True), axis=1)
            for k, m in enumerate(motions)
        ]
        self.usual = np.array([_quantile(mean, 0.5) for mean in means])
        self._odd = {apart: [_quantile(m, 0.9) for m in (means, speeds)[apart]] for apart in (0, 1)}
        self._worst = {
            apart: [_quantile(m, 0.97) for m in (means, speeds)[apart]] for apart in (0, 1)
        }
        self._most = [
            [_most(np.min(t.before - t.after, axis=1)) for t in self._tried(motions, k)]
            for k in range(len(motions))
        ]
        self._most_late = [_most(self._late(motions, p)[0]) for p in DELAYS]
        self._most_stuck = [
            max(_stuck(m, e, self.model.period_s)[0] for e in range(len(m.position)))
            for m in motions
        ]
        self._resting = RestingPositions(self.model)
        at_limit = np.where(np.isnan(driven.action), np.nan, np.abs(driven.action) > 0.999)
        self.at_limit = np.nanmean(at_limit, axis=(1, 2))

    def _losses(self, motion: JointMotion, k: int, moving: Bools, *, speed: bool = False) -> Floats:
        """(episodes, parts) misfit of joint `k` in each part of its moving time.

        An interface fault is there all the time; a collision is not.
        """
        loss = self.model.loss(motion, k, speed=speed)
        found = np.full((len(loss), _PARTS), np.nan)
        for episode, (row, use) in enumerate(zip(loss, moving, strict=True)):
            rows = row[use & np.isfinite(row)]
            if len(rows) >= _MIN_MOVING_PERIODS:
                found[episode] = [part.mean() for part in np.array_split(rows, _PARTS)]
        return found

    def _travel(self, motion: JointMotion, k: int) -> Floats:
        """The same of the travel, in all of the moving time."""
        return self._losses(motion, k, self.model.moving(motion, k))

    def motions(self, log: ControlLog) -> list[JointMotion]:
        """Each joint's motion in a log."""
        action = np.zeros((1, len(log.times), 1))
        return self.model.motions(
            ReferenceEpisodes(readings=log.readings[None], command=log.command[None], action=action)
        )

    def gap(self, motions: list[JointMotion]) -> float:
        """Misfit of a log relative to the reference's; nan if the log is too short."""
        costs = np.array([np.mean(self._travel(m, k)[0]) for k, m in enumerate(motions)])
        known = np.isfinite(costs) & np.isfinite(self.usual)
        if not known.any():
            return float("nan")
        return float(np.mean(costs[known]) / np.mean(self.usual[known]))

    def findings(self, log: ControlLog) -> list[Finding]:
        """Faults that physics shows in a log whose software chain is intact."""
        motions = self.motions(log)
        found = self._frozen(log, motions)
        if found:
            return found
        named = [n for k in range(len(motions)) if (n := self._joint(motions, k)) is not None]
        mixed = [n for n in named if n.hypothesis.fault is Fault.PERMUTED]
        if len(mixed) == 1:  # a swap takes two
            named.remove(mixed[0])
        late = self._delay(motions)
        strongest: dict[Fault, float] = {}
        for n in named:
            strongest[n.hypothesis.fault] = strongest.get(n.hypothesis.fault, 0.0) + n.gain
        if late is not None and late[1] >= max(strongest.values(), default=0.0):
            return [self._late_finding(log, *late)]
        if not strongest:
            return self._resting.findings(motions)
        resting = self._resting.findings(motions)
        best = max(strongest, key=lambda f: strongest[f])
        if (
            resting
            and resting[0].fault in _EXACT_FAULTS
            and best not in (*_EXACT_FAULTS, *_DELAY_FAULTS)
        ):
            # A sign or an order has no free number; a zero or a factor fits nearly anything.
            return resting
        top = max(strongest.values())
        order = sorted(strongest, key=lambda f: -strongest[f])
        return [
            self._finding(fault, [n for n in named if n.hypothesis.fault is fault])
            for fault in order
            if strongest[fault] >= 0.5 * top
        ]

    def _tried(self, motions: list[JointMotion], k: int) -> list[TriedHypothesis]:
        """Every hypothesis about joint `k`."""
        motion, joint = motions[k], self.model.joints[k]
        moving, speeding = self.model.moving(motion, k), self.model.speeding(motion, k)
        free = moving & self.model.free(motion)
        base, base_free = (self._losses(motion, k, rows) for rows in (moving, free))
        turning = self._losses(motion, k, speeding, speed=True)
        found = []
        alone = single_joint(motion.speed is not None, joint.servo, self._limits)
        for h in [*alone, *swaps(motions, k)]:
            corrected = self.model.reweighed(h.corrected(motions, k), joint)
            before, rows = base, moving
            if h.apart:
                # Position against speed: nothing outside of the robot can make them disagree.
                before, rows = turning, speeding
            elif h.fault in (Fault.OFFSET, Fault.SCALE):
                # Contact with a table looks like a zero error or a weak drive.
                before, rows = base_free, free
            if h.fault is Fault.PERMUTED:
                busy = self.model.speeding if h.apart else self.model.moving
                rows = rows | busy(corrected, k)
            after = self._losses(corrected, k, rows, speed=h.apart) + h.fee
            found.append(TriedHypothesis(h, before, after, corrected))
        return found

    def _joint(self, motions: list[JointMotion], k: int) -> AcceptedFault | None:
        if not self.model.moves_enough(motions[k], k):
            return None
        moving = self.model.moving(motions[k], k)
        servo, margin = self.model.joints[k].servo, self._limits.misfit_margin
        follows = self.model.follows(motions[k], moving) if servo else np.nan
        accepted = []
        for tried, most in zip(self._tried(motions, k), self._most[k], strict=True):
            h = tried.hypothesis
            before, left = float(np.mean(tried.before)), float(np.mean(tried.after)) - h.fee
            if not before > self._odd[h.apart][k] + margin:
                continue
            normal = left < self._worst[h.apart][k] + margin
            if servo and not h.apart and h.fault in _EXACT_FAULTS:
                # Sent far off, a drive saturates and no model fits, but it still follows.
                both = moving | self.model.moving(tried.corrected, k)
                would = self.model.follows(tried.corrected, both)
                normal = would > _FOLLOWS and follows < _STRAYS
            # The first log's gain must show in each part of its motion.
            gains = tried.before[0] - tried.after[0]
            if normal and np.min(gains) > max(0.0, most) + margin:
                gain = float(np.mean(tried.before - tried.after))
                name = self.model.joints[k].name
                accepted.append(AcceptedFault(joint=name, hypothesis=h, gain=gain, left=left))
        if not accepted:
            return None
        # Position against speed is the stronger evidence.
        accepted = [n for n in accepted if n.hypothesis.apart] or accepted
        best = max(n.gain for n in accepted)
        chosen = next(n for n in accepted if n.gain >= best - margin)
        return None if chosen.hypothesis.benign else chosen

    def _late(self, motions: list[JointMotion], periods: int) -> tuple[Floats, Floats]:
        """(episodes,) gain of most joints, and misfit left beyond the worst normal one, with
        readings taken a number of periods earlier."""
        gains, left = [], []
        for k, motion in enumerate(motions):
            moved = earlier(motion, "readings", periods)
            base = self._losses(motion, k, self.model.moving(motion, k) & self.model.free(motion))
            parts = self._losses(moved, k, self.model.moving(moved, k) & self.model.free(motion))
            gains.append(np.mean(base - parts, axis=1))
            left.append(np.mean(parts, axis=1) - self._worst[False][k])
        # A delay is in all joints, but one that hardly moved does not show it.
        return _shared(gains, 0.3), _shared(left, 0.5)

    def _delay(self, motions: list[JointMotion]) -> tuple[int, float] | None:
        best: tuple[int, float] | None = None
        for periods, most in zip(DELAYS, self._most_late, strict=True):
            gains, left = self._late(motions, periods)
            gain = float(gains[0])
            enough = (
                gain > max(0.0, most) + self._limits.delay_margin
                and left[0] < self._limits.misfit_margin
            )
            if enough and (best is None or gain > best[1] / len(motions)):
                best = (periods, gain * len(motions))
        return best

    def _late_finding(self, log: ControlLog, periods: int, gain: float) -> Finding:
        # A delay line that was empty at first repeats its first reading.
        first = log.readings[: periods + 1]
        repeated = len(first) > 1 and bool((first[1:] == first[:1]).all())
        fault, other = Fault.ACTION_DELAYED, Fault.OBSERVATION_DELAYED
        if repeated:
            fault, other = other, fault
        evidence = (
            f"The joints respond {counted(periods, 'period')}"
            f" ({1e3 * periods / log.contract.rate_hz:.0f} ms) later than in any of the twin's"
            f" worlds (with earlier readings the misfit improves by {gain:.2f})."
        )
        return Finding(fault, ("all joints",), evidence, 0.7, (other,))

    def _finding(self, fault: Fault, named: list[AcceptedFault]) -> Finding:
        first = max(named, key=lambda n: n.gain)
        hypothesis = first.hypothesis
        what, value = hypothesis.what, hypothesis.value
        unit = next(j.unit for j in self.model.joints if j.name == first.joint)
        how = {
            Fault.SIGN: f"its {what} negated",
            Fault.DEGREES: f"its {what} divided by {value:.3g}",
            Fault.SCALE: f"its {what} divided by {value:.3g}",
            Fault.OFFSET: f"its zero moved by {-value:+.2f} {unit}",
            Fault.OBSERVATION_DELAYED: f"its {what} taken {value:.0f} periods earlier",
        }.get(fault, "")
        if fault is Fault.PERMUTED:
            how = f"the {what} of {self.model.joints[int(value)].name}"
        evidence = (
            f"Joint {first.joint} moves like the twin's worlds with {how}: misfit"
            f" {first.left:.2f} instead of {first.left + first.gain:.2f}."
        )
        sure = float(np.clip(first.gain / (first.gain + first.left), 0.3, 0.95))
        others = (Fault.POSE,) if fault is Fault.OFFSET else ()
        return Finding(fault, tuple(n.joint for n in named), evidence, sure, others)

    def _frozen(self, log: ControlLog, motions: list[JointMotion]) -> list[Finding]:
        stuck: dict[Fault, list[tuple[str, float, int]]] = {}
        for k, joint in enumerate(self.model.joints):
            motion = motions[k]
            size, what, length = _stuck(motion, 0, self.model.period_s)
            if motion.speed is None or size <= 2.0 * self._most_stuck[k] + 0.05:
                continue
            series = motion.position[0] if what == "position" else motion.speed[0]
            zero = bool((series[np.isfinite(series)] == 0.0).all())
            fault = Fault.MISSING if zero else Fault.STALE
            stuck.setdefault(fault, []).append((f"{joint.name} {what}", size, length))
        found = []
        for fault, entries in stuck.items():
            name, size, length = max(entries, key=lambda e: e[1])
            evidence = (
                f"{name} keeps one value for {length} periods, while the joint's other reading"
                f" shows a motion of {size:.2f}."
            )
            other = Fault.STALE if fault is Fault.MISSING else Fault.MISSING
            names = tuple(entry[0] for entry in entries)
            found.append(Finding(fault, names, evidence, 0.9, (other,)))
        return found


def _shared(values: list[Floats], share: float) -> Floats:
    """(episodes,) quantile over joints; nan where fewer than half of them are known."""
    stacked = np.array(values)
    enough = np.isfinite(stacked).sum(axis=0) >= max(1, len(values) / 2)
    found = [_quantile(column, share) for column in stacked.T]
    return np.where(enough, found, np.nan)


def _quantile(values: Floats, share: float) -> float:
    """A quantile of the finite values; nan without any."""
    known = values[np.isfinite(values)]
    return float(np.quantile(known, share)) if len(known) else float("nan")


def _most(gains: Floats) -> float:
    """The most by which a correction improves a clean episode."""
    return float(np.nanmax(gains)) if np.isfinite(gains).any() else 0.0


def _stuck(motion: JointMotion, episode: int, period_s: float) -> tuple[float, str, int]:
    """(disagreement of position and speed while one of them repeats exactly [rad or m], which of
    them repeats, for how many periods)."""
    best = (0.0, "position", 0)
    if motion.speed is None:
        return best
    position, speed = motion.position[episode], motion.speed[episode]
    gone = np.concatenate([[0.0], np.cumsum(np.nan_to_num(speed))]) * period_s
    for what, series in (("position", position), ("speed", speed)):
        for begin, end in _runs(series):
            moved = position[begin:end] - position[begin]
            said = 0.5 * (gone[begin:end] + gone[begin + 1 : end + 1])
            size = float(np.abs(np.nan_to_num(moved - (said - said[0]))).max())
            # A lost packet repeats one reading: ignore one period of travel.
            size -= float(np.nanmax(np.abs(speed[begin:end]), initial=0.0)) * period_s
            if size > best[0]:
                best = (size, what, end - begin)
    return best


def _runs(series: Floats) -> list[tuple[int, int]]:
    """(begin, end) of runs of one value that are long enough to be suspicious."""
    same = np.concatenate([[False], series[1:] == series[:-1], [False]])
    edges = np.flatnonzero(same[1:] != same[:-1])
    pairs = zip(edges[::2], edges[1::2], strict=True)
    return [(int(b), int(e) + 1) for b, e in pairs if e - b + 1 >= _MIN_STUCK_PERIODS]
