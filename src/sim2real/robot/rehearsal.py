"""The first step of the ladder: a policy on logs, with nothing that could move."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sim2real.arrays import Ints
from sim2real.data import Episode
from sim2real.doctor import Diagnosis, diagnose
from sim2real.errors import Sim2RealError
from sim2real.evaluation import OpenedPolicy
from sim2real.logs import ControlLog
from sim2real.plain import PlainData
from sim2real.policy import Pilot, PolicyRuntime
from sim2real.robot.kinematics import Kinematics
from sim2real.robot.readings import Goals, goal_vector
from sim2real.robot.shadow import Agreement, ShadowComparison
from sim2real.robot.supervisor import Inputs, State, Supervisor

_MIN_PERIODS = 50
"""Fewest control periods with which a replay counts."""


@dataclass(frozen=True, kw_only=True)
class Rehearsal(PlainData):
    """What a policy would have done in logs."""

    agreement: Agreement
    trips: tuple[str, ...]
    """Why the supervisor would have stopped it, one for each such log."""
    doctor: Diagnosis
    """What the doctor found in the logs."""

    def wrong(self) -> str:
        """Why the policy may not go on to a robot; '' if it may."""
        if self.doctor.findings:
            return f"the doctor says: {self.doctor.verdict}"
        if self.trips:
            return f"the supervisor would stop it: {self.trips[0]}"
        if self.agreement.periods < _MIN_PERIODS:
            return (
                f"the logs have only {self.agreement.periods} control periods; at least"
                f" {_MIN_PERIODS} are needed"
            )
        return self.agreement.wrong()


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
    comparison = ShadowComparison(policy.contract, policy.limits)
    trips = []
    for number, episode in enumerate(episodes):
        log = ControlLog.of(episode, policy.contract, twin.channels)
        if log.missing:
            raise Sim2RealError(
                f"episode {episode.id} has no {', '.join(log.missing)}: the robot lacks what the"
                " policy needs, or its channels have other names"
            )
        trip = _along(log, policy, runtime, kinematics, comparison, goals)
        if trip:
            trips.append(f"{trip} (episode {episode.id[:8]})")
        report(number + 1, len(episodes))
    return Rehearsal(
        agreement=comparison.agreement(),
        trips=tuple(trips),
        doctor=diagnose(policy, episodes),
    )


def _along(
    log: ControlLog,
    policy: OpenedPolicy,
    runtime: PolicyRuntime,
    kinematics: Kinematics,
    comparison: ShadowComparison,
    goals: Goals,
) -> str:
    """Run along one log; why the supervisor would have stopped, '' if it would not have."""
    rows = np.flatnonzero(np.isfinite(log.readings).all(axis=1))
    if not len(rows):
        return "there are no readings"
    goal = log.goals[rows[0]] if log.goals is not None else np.zeros(0)
    if not np.isfinite(goal).all():
        goal = goal_vector(policy.contract, goals)
    for part in _unbroken(log, rows, policy.limits.reaction_s * policy.contract.rate_hz):
        pilot, supervisor = Pilot(runtime), Supervisor(policy.contract, policy.limits)
        pilot.start(log.readings[part[0]], goal)
        supervisor.arm(person="rehearsal", resting=pilot.command[0])
        for row in part:
            readings, fresh = log.readings[row], bool(log.fresh[row].any())
            frame, _, wanted = pilot.step(readings)
            decision = supervisor.step(
                Inputs(
                    readings=readings,
                    age_s=0.0 if fresh else 1.0 / policy.contract.rate_hz,
                    fresh=fresh,
                    frame=frame,
                    wanted=wanted,
                    tool=kinematics.tool(readings),
                )
            )
            sent = log.command[row] if np.isfinite(log.command[row]).all() else wanted
            comparison.add(frame, wanted, sent)
            pilot.sent(sent)
            supervisor.follow(sent)
            if decision.state is not State.RUNNING:
                return decision.reason
    return ""


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
