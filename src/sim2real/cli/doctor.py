"""The verb `doctor`: what is wrong between a policy and the robot that made these logs?"""

from __future__ import annotations

from pathlib import Path

from sim2real.cli.adapter import carry_out
from sim2real.cli.output import say
from sim2real.doctor import Diagnosis, DoctorConfig, diagnose


def run_doctor(config: DoctorConfig) -> int:
    """Run the verb; 0 where the interface is fine, 1 where a fault was found."""
    return carry_out(config, diagnose, show=_show, fine=lambda found: found.fine)


def _show(diagnosis: Diagnosis, out: Path) -> None:
    for number, finding in enumerate(diagnosis.findings, start=1):
        sure = f"{100 * finding.confidence:.0f} %"
        say(f"{number}. {finding.fault} ({sure}): {', '.join(finding.where)}")
        say(f"   {finding.evidence}")
        if finding.alternatives:
            say(f"   It could also be: {', '.join(finding.alternatives)}.")
        say(f"   Remedy: {finding.remedy}")
    if diagnosis.fine:
        say(diagnosis.physics)
    for note in diagnosis.notes:
        say(f"Note: {note}.")
    say(f"{diagnosis.logs} log(s), {diagnosis.periods} periods.")
