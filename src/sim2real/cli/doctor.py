"""The verb `doctor`: what is wrong between a policy and the robot that made these logs?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from sim2real.cli.output import print_json, say

if TYPE_CHECKING:
    from sim2real.gap.findings import Diagnosis


@dataclass(frozen=True, kw_only=True)
class DoctorConfig:
    """Compare logs of a robot with what a bundle's contract promises; exit code 1 for a fault.

    Names permuted joints, flipped signs, degrees, offsets, scales, quaternion order, reversed
    history, a lost normaliser, delays, a slow loop, frozen channels, saturation, a wrong pose and
    missing sensors, with evidence and a remedy; or says that the difference is physics.
    """

    bundle: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="BUNDLE")]
    """Folder of the bundle that was run."""
    logs: tuple[str, ...]
    """Recordings, folders of them, lakes or files of other formats; all of one robot."""
    json: bool = False
    """Print as JSON."""


def run_doctor(config: DoctorConfig) -> int:
    """Run the verb; 0 where the interface is fine, 1 where a fault was found."""
    from sim2real.data import read_logs
    from sim2real.gap.doctor import diagnose
    from sim2real.policy import Bundle
    from sim2real.report.progress import bar

    bundle = Bundle.open(config.bundle)
    episodes = read_logs(config.logs)
    with bar("logs", quiet=config.json) as report:
        diagnosis = diagnose(bundle, episodes, report=report)
    if config.json:
        print_json(diagnosis.to_dict())
    else:
        _tell(diagnosis)
    return 0 if diagnosis.fine else 1


def _tell(diagnosis: Diagnosis) -> None:
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
