"""Compares what a policy's contract promises with what logs show, and names the fault.

There are three checks, each made only if those before it find nothing: names and clocks; the
software chain, recomputed exactly; the robot's motion against the twin's. What is normal is learned
from the twin's own worlds, so that nothing is tuned to a task.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from scipy.stats import binom

from sim2real.data import Episode, Logs, select
from sim2real.doctor.findings import Diagnosis, Fault, Finding, joined
from sim2real.doctor.graph_interface import GraphInterface
from sim2real.doctor.log_clocks import clock_findings
from sim2real.doctor.physical_faults import PhysicalReference
from sim2real.doctor.software_chain import SoftwareChain
from sim2real.doctor.thresholds import DOCTOR_THRESHOLDS, DoctorThresholds
from sim2real.errors import Sim2RealError
from sim2real.evaluation import PolicySource, open_policy
from sim2real.logs import ControlLog

_NOT_FREELY_DRIVEN = ("deploy: shadow", "deploy: limited")
"""Recordings in which the commands are not those of the policy."""

_PASSING = (Fault.STALE, Fault.MISSING)
"""Faults that may come and go: one log is enough."""


class Doctor:
    """A policy with everything that its diagnoses need, made once."""

    def __init__(
        self, policy: PolicySource, *, thresholds: DoctorThresholds = DOCTOR_THRESHOLDS
    ) -> None:
        self.thresholds = thresholds
        self.interface = GraphInterface.of(policy)
        self.policy = self.interface.policy
        self._channels = self.policy.twin.channels
        self._physics: PhysicalReference | None = None
        self._why_not = ""

    def diagnose(
        self,
        episodes: Sequence[Episode],
        *,
        report: Callable[[int, int], None] = lambda done, of: None,
    ) -> Diagnosis:
        """What is wrong with the interface in these logs of one robot, at least one."""
        if not episodes:
            raise Sim2RealError("there is no log to diagnose")
        sure: list[list[Finding]] = []
        likely: list[list[Finding]] = []
        notes = list(self.policy.missing_for("interface"))
        gaps: list[float] = []
        periods = 0
        for done, episode in enumerate(episodes):
            log = ControlLog.of(episode, self.policy.contract, self._channels)
            if episode.provenance.process in _NOT_FREELY_DRIVEN:
                # What was sent differs from what the policy asked for on purpose.
                log = replace(log, wanted=None, action=None, observation=None)
                notes.append("only the motion of shadow and limited runs was checked")
            periods += len(log.times)
            exact, motion, gap = self._log(log, notes)
            sure.append(exact)
            likely.append(motion)
            gaps.append(gap)
            report(done + 1, len(episodes))
        known = [gap for gap in gaps if np.isfinite(gap)]
        gap = float(np.median(known)) if known else float("nan")
        if self._why_not:
            notes.append(self._why_not)
        lasting, rare = self._lasting(likely, tested=sum(not exact for exact in sure))
        notes += rare
        faults = joined([exact + motion for exact, motion in zip(sure, lasting, strict=True)])
        return Diagnosis(
            findings=faults,
            logs=len(episodes),
            periods=periods,
            physics="" if faults else _physics_words(gap, self.thresholds.misfit),
            gap=gap,
            notes=tuple(dict.fromkeys(notes)),
        )

    def _log(self, log: ControlLog, notes: list[str]) -> tuple[list[Finding], list[Finding], float]:
        """What one log shows for certain, else what its motion looks like, and its misfit."""
        findings = clock_findings(log, self.thresholds)
        chain = SoftwareChain(self.interface, log)
        if not findings:
            findings = chain.findings()
        notes += chain.notes
        physics = None if findings else self._reference()
        if physics is None:
            return findings, [], float("nan")
        findings = physics.bounds.units(log)
        motion = [] if findings else physics.findings(log) or physics.bounds.findings(log)
        if not findings and not motion:
            findings = self._saturation(log, physics)
        return findings, motion, physics.gap(physics.motions(log))

    def _lasting(
        self, per_log: Sequence[Sequence[Finding]], *, tested: int
    ) -> tuple[list[list[Finding]], list[str]]:
        """Findings from motion without those of so few logs that chance explains them, and notes.

        A weak servo that sags in one log moves in it as if its zero were off; a real error of its
        zero shows in more.
        """
        limits, notes, rare = self.thresholds, [], set()
        found = joined(per_log)
        for finding in found:
            logs = sum(any(f.fault == finding.fault for f in log) for log in per_log)
            by_chance = float(binom.sf(logs - 1, tested, limits.false_alarm))
            if finding.fault not in _PASSING and by_chance > limits.chance:
                rare.add(finding.fault)
                notes.append(
                    f"{logs} of {len(per_log)} logs look{'s' * (logs == 1)} like"
                    f" {finding.fault}: {', '.join(finding.where)}; that may be chance"
                    f" ({100 * by_chance:.0f} %), but if more logs show it, it is a fault"
                )
        return [[f for f in log if f.fault not in rare] for log in per_log], notes

    @property
    def complete(self) -> bool:
        """Whether it has read its policy and simulated its reference, which hold for every log."""
        return self._physics is not None and self.policy.policy.abilities.repeatable

    def _reference(self) -> PhysicalReference | None:
        if self._physics is None and not self._why_not:
            try:
                self._physics = PhysicalReference(self.interface, self.thresholds)
            except Sim2RealError as error:
                self._why_not = f"the robot's motion was not checked: {error}"
        return self._physics

    def _saturation(self, log: ControlLog, physics: PhysicalReference) -> list[Finding]:
        if log.action is None or len(log.times) < 20:
            return []
        share = float((np.abs(log.action) > 0.999).mean())
        most, limits = float(np.nanmax(physics.at_limit)), self.thresholds
        if share <= max(most + limits.saturated_more, limits.saturated_share):
            return []
        evidence = (
            f"{100 * share:.0f} % of the actions are at their limit; in the twin's worlds at most"
            f" {100 * most:.0f} % are."
        )
        names = tuple(action.name for action in self.policy.contract.actions)
        return [Finding(Fault.SATURATED, names, evidence, 0.6)]


_DOCTORS: dict[tuple[str, DoctorThresholds], Doctor] = {}


def diagnose(
    policy: PolicySource,
    logs: Logs,
    *,
    thresholds: DoctorThresholds = DOCTOR_THRESHOLDS,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> Diagnosis:
    """What is wrong with the interface between a policy and the robot that made these logs.

    The simulated reference is made once per policy and process.
    """
    opened = open_policy(policy)
    doctor = _DOCTORS.get((opened.seal, thresholds)) or Doctor(opened, thresholds=thresholds)
    found = doctor.diagnose(select(logs, twin=opened.contract.robot).episodes, report=report)
    if doctor.complete:  # the policy of an incomplete one may be gone by its next use
        _DOCTORS[opened.seal, thresholds] = doctor
    return found


def _physics_words(gap: float, usual: float) -> str:
    if not np.isfinite(gap):
        return "the interface is fine; the motion was too short to compare with the twin"
    if gap <= usual:
        return (
            "the interface is fine, and the robot moves like the twin's worlds"
            f" ({gap:.2f} times their usual misfit)"
        )
    return (
        "the interface is fine; the difference is physics: the twin's misfit on this robot is"
        f" {gap:.2f} times the usual misfit of its own worlds"
    )
