"""The verb `failures`: why attempts on a robot failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim2real.attribute.config import FailuresConfig
from sim2real.cli.output import print_json, say
from sim2real.data import read_logs

if TYPE_CHECKING:
    from sim2real.attribute.failures import Failures


def run_failures(config: FailuresConfig) -> int:
    """Explain failures as configured."""
    from sim2real.attribute.advice import advise
    from sim2real.attribute.failures import explain_failures
    from sim2real.evaluate.config import EvaluateConfig
    from sim2real.evaluate.evaluate import open_subject
    from sim2real.files import write_json
    from sim2real.report.progress import bar
    from sim2real.tasks import find_task
    from sim2real.twin import Twin

    subject = open_subject(EvaluateConfig(run=config.policy))
    task = find_task(subject.task)
    twin = subject.twin or Twin.load(task.twin)
    identified = None
    if config.identified is not None:
        inner = config.identified / "twin"
        identified = Twin.load(inner if inner.is_dir() else config.identified)
    episodes = read_logs(config.logs, channels=None)
    with bar("failures", quiet=config.json) as report:
        found = explain_failures(
            twin,
            task,
            subject.policy,
            episodes,
            source=subject.source,
            remainder=subject.remainder,
            identified=identified,
            worlds=config.worlds,
            seed=config.seed,
            threads=config.threads,
            report=report,
        )
    advice = advise(twin, failures=found)
    result = found.to_dict() | {"advice": [one.to_dict() for one in advice]}
    if config.out is not None:
        write_json(config.out, result)
    if config.json:
        print_json(result)
        return 0
    _show(found)
    for one in advice:
        say(f"do: {one.do}, because {one.why}")
    return 0


def _show(found: Failures) -> None:
    say(f"{found.failed} of {found.tried} attempts failed")
    for diagnosis in found.diagnoses:
        say(str(diagnosis))
    for kind in found.kinds:
        say("")
        for sentence in kind.sentences():
            say(sentence)
        for phase in kind.phases:
            say(f"  {phase}")
