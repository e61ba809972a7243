"""The first step of the ladder: a policy on logs, with nothing that could move."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sim2real.arrays import Ints, Reals
from sim2real.data import Episode
from sim2real.doctor import Diagnosis, diagnose
from sim2real.errors import Sim2RealError
from sim2real.evaluation import OpenedPolicy
from sim2real.logs import ControlLog
from sim2real.plain import PlainData
from sim2real.policy import Pilot, PolicyRuntime
from sim2real.robot.kinematics import Kinematics
from sim2real.robot.ladder import Shortfall
from sim2real.robot.readings import Goals, goal_vector
from sim2real.robot.shadow import Agreement, ShadowComparison
from sim2real.robot.supervisor import Inputs, State, Supervisor

_MIN_PERIODS = 50
"""Fewest control periods with which a replay counts."""


@dataclass(frozen=True, kw_only=True)
class Rehearsal(PlainData):
    """What a policy would have done in logs."""

    agreement: Agreement
    """In all of the logs."""
    trips: tuple[str, ...]
    """Why the supervisor would have stopped it, one for each such log that this policy drove."""
    doctor: Diagnosis
    """What the doctor found in the logs."""
    driven: Agreement | None = None
    """In the logs that this policy drove alone; None without any."""
    notes: tuple[str, ...] = ()
    """What the policy did not cause, and what is therefore no objection to it."""

    def shortfall(self) -> Shortfall | None:
        """Why the policy may not go on to a robot; None if it may.

        Logs that others drove show what the policy would command, and the interface. That they
        lead outside of training, or beyond a limit, is not the policy's doing.
        """
        if self.doctor.findings:
            return Shortfall(
                why=f"the doctor says: {self.doctor.verdict}",
                to_pass="mend what the doctor found, and record again",
            )
        if self.agreement.absurd:
            return of_agreement(self.agreement)
        if self.trips:
            return Shortfall(
                why=f"the supervisor would stop it: {self.trips[0]}",
                to_pass="give logs in which this policy keeps to the limits",
                doubt=True,
            )
        if self.agreement.periods < _MIN_PERIODS:
            return Shortfall(
                why=f"the logs have only {self.agreement.periods} control periods; at least"
                f" {_MIN_PERIODS} are needed",
                to_pass="give longer logs",
                doubt=True,
            )
        return of_agreement(self.driven) if self.driven else None

    def wrong(self) -> str:
        """The same in words; '' if it may go on."""
        short = self.shortfall()
        return short.why if short else ""


def of_agreement(found: Agreement) -> Shortfall | None:
    """What a comparison with what was sent says against a policy; None if nothing."""
    why = found.wrong()
    if not why:
        return None
    if found.absurd:
        return Shortfall(why=why, to_pass="export a policy whose commands are numbers")
    return Shortfall(
        why=why,
        to_pass="begin where episodes of training begin, or train in worlds that contain this",
        doubt=True,
    )


def rehearse(
    policy: OpenedPolicy,
    episodes: Sequence[Episode],
    *,
    goals: Goals,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> Rehearsal:
    """Run a policy along logs, as if it had been in charge of what was measured."""
    if not episodes:
        raise Sim2RealError("there is no log to replay: give recordings with --logs")
    twin = policy.twin
    kinematics = Kinematics(twin, policy.contract, policy.limits)
    runtime = policy.runtime()
    every, mine = (ShadowComparison(policy.contract, policy.limits) for _ in range(2))
    others = _Outside(policy)
    trips = []
    for number, episode in enumerate(episodes):
        log = ControlLog.of(episode, policy.contract, twin.channels)
        if log.missing:
            raise Sim2RealError(
                f"episode {episode.id} has no {', '.join(log.missing)}: the robot lacks what the"
                " policy needs, or its channels have other names"
            )
        if drove(policy, episode):
            trip = _along(log, policy, runtime, goals, [every, mine], kinematics)
        else:
            trip = _along(log, policy, runtime, goals, [every, others])
        if trip:
            trips.append(f"{trip} (episode {episode.id[:8]})")
        report(number + 1, len(episodes))
    return Rehearsal(
        agreement=every.agreement(),
        trips=tuple(trips),
        doctor=diagnose(policy, episodes),
        driven=mine.agreement() if mine.periods else None,
        notes=tuple(others.notes()),
    )


def drove(policy: OpenedPolicy, episode: Episode) -> bool:
    """Whether this policy moved the robot in an episode; a shadow only watched."""
    source = episode.provenance
    return source.policy == policy.id and source.process != "deploy: shadow"


class _Compared(Protocol):
    """Takes note of a period."""

    def add(self, frame: Reals, wanted: Reals, sent: Reals) -> None:
        """What the policy saw and would send, and what was sent."""


class _Outside:
    """Counts observations outside of training in logs that the policy did not drive."""

    def __init__(self, policy: OpenedPolicy) -> None:
        limits = policy.limits
        self._low, self._high = np.array(limits.observation_low), np.array(limits.observation_high)
        self._names = [
            f"{term.name}[{k}]" for term in policy.contract.observations for k in range(term.width)
        ]
        self._columns: Ints = np.zeros(len(self._low), dtype=np.int64)
        self._periods = self._outside = 0

    def add(self, frame: Reals, wanted: Reals, sent: Reals) -> None:
        """One period more."""
        outside = (frame < self._low) | (frame > self._high)
        self._columns += outside
        self._outside += bool(outside.any())
        self._periods += 1

    def notes(self) -> Iterator[str]:
        """What was outside, in a line; none where nothing was."""
        if self._outside:
            most = int(np.argmax(self._columns))
            yield (
                f"{100 * self._outside / self._periods:.2g} % of the observations in logs that"
                f" others drove lie outside training, most of them in {self._names[most]}; that is"
                " no fault of this policy"
            )


def _along(
    log: ControlLog,
    policy: OpenedPolicy,
    runtime: PolicyRuntime,
    goals: Goals,
    comparisons: Sequence[_Compared],
    kinematics: Kinematics | None = None,
) -> str:
    """Run along one log; why the supervisor would have stopped, '' if it would not have.

    It watches only with `kinematics`: a motion that others drove is none of this policy's.
    """
    rows = np.flatnonzero(np.isfinite(log.readings).all(axis=1))
    if not len(rows):
        return "there are no readings"
    goal = log.goals[rows[0]] if log.goals is not None else np.zeros(0)
    if not np.isfinite(goal).all():
        goal = goal_vector(policy.contract, goals)
    for part in _unbroken(log, rows, policy.limits.reaction_s * policy.contract.rate_hz):
        pilot, supervisor = Pilot(runtime), Supervisor(policy.contract, policy.limits)
        pilot.start(log.readings[part[0]], goal)
        if kinematics:
            supervisor.arm(person="rehearsal", resting=pilot.command[0])
        for row in part:
            frame, _, wanted = pilot.step(log.readings[row])
            decision = None
            if kinematics:
                decision = supervisor.step(_inputs(log, int(row), frame, wanted, kinematics))
            sent = log.command[row] if np.isfinite(log.command[row]).all() else wanted
            # An observation that is no number makes no command, whatever comes out.
            told = wanted if np.isfinite(frame).all() else np.full_like(wanted, np.nan)
            for comparison in comparisons:
                comparison.add(frame, told, sent)
            pilot.sent(sent)
            supervisor.follow(sent)
            if decision is not None and decision.state is not State.RUNNING:
                return decision.reason
    return ""


def _inputs(
    log: ControlLog, row: int, frame: Reals, wanted: Reals, kinematics: Kinematics
) -> Inputs:
    """What the supervisor would have seen in a period of a log."""
    readings, fresh = log.readings[row], bool(log.fresh[row].any())
    return Inputs(
        readings=readings,
        age_s=0.0 if fresh else 1.0 / log.contract.rate_hz,
        fresh=fresh,
        frame=frame,
        wanted=wanted,
        tool=kinematics.tool(readings),
    )


def _unbroken(log: ControlLog, rows: Ints, most_lost: float) -> list[Ints]:
    """Rows between the gaps of a log in which readings were missing for longer than allowed.

    A link that failed during the recording says nothing about the policy.
    """
    fresh = log.fresh[rows].any(axis=1)
    places = np.arange(len(rows))
    lost = places - np.maximum.accumulate(np.where(fresh, places, -1))
    usable = lost <= most_lost
    cuts = np.flatnonzero(np.diff(usable.astype(int))) + 1
    return [part for part in np.split(rows, cuts) if log.fresh[part[0]].any()]
