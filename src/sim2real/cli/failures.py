"""The verb `failures`: why attempts on a robot failed."""

from __future__ import annotations

from pathlib import Path

from sim2real.attribution import Explanation, FailuresConfig, explain_failures
from sim2real.cli.adapter import carry_out
from sim2real.cli.output import say


def run_failures(config: FailuresConfig) -> int:
    """Explain failures as configured; 0."""
    return carry_out(config, explain_failures, show=_show, keep=Explanation.save)


def _show(found: Explanation, out: Path) -> None:
    failures = found.failures
    say(f"{failures.failed} of {failures.tried} trials failed")
    for diagnosis in failures.diagnoses:
        say(str(diagnosis))
    for kind in failures.kinds:
        say("")
        for sentence in kind.sentences():
            say(sentence)
        for phase in kind.phases:
            say(f"  {phase}")
    for one in found.advice:
        say(f"do: {one.do}, because {one.why}")
