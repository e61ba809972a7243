"""The verb `attribute`: what a gap is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim2real.attribute.config import AttributeConfig
from sim2real.cli.output import print_json, print_table, say
from sim2real.data import read_logs
from sim2real.errors import Sim2RealError

if TYPE_CHECKING:
    from sim2real.attribute.attribution import Attribution, Share
    from sim2real.data import Episode
    from sim2real.evaluate.evaluate import Subject
    from sim2real.twin import Twin


def run_attribute(config: AttributeConfig) -> int:
    """Attribute as configured."""
    from sim2real.attribute.trajectory import attribute_trajectory
    from sim2real.files import atomic_folder, write_json
    from sim2real.identify.align import aligned
    from sim2real.policy import Bundle
    from sim2real.report.attribution_plots import plot_attribution
    from sim2real.report.progress import bar
    from sim2real.twin import Twin

    config.check()
    real = _real(config)
    source = Bundle.open(config.twin).twin if Bundle.is_bundle(config.twin) else config.twin
    twin = Twin.load(source)
    time = datetime.now().strftime("%Y%m%d-%H%M%S")
    subject = _subject(config, twin)
    out = config.out or Path("runs") / "attribute" / twin.name / time
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise Sim2RealError(f"{out} is not empty; choose another with --out")
    episodes = read_logs(config.logs, channels=config.channels)
    before, after, new = _before_and_after(config, twin, episodes)
    logs = [aligned(episode, before, rate_hz=config.rate_hz) for episode in episodes]
    found, why = [], ""
    with bar("trajectory error", quiet=config.json) as report:
        try:
            found.append(
                attribute_trajectory(
                    before,
                    after,
                    logs,
                    horizon_s=config.horizon_s,
                    draws=config.draws,
                    segments=config.segments,
                    with_refits=config.refits,
                    seed=config.seed,
                    threads=config.threads,
                    report=report,
                )
            )
        except Sim2RealError as none:
            if subject is None:
                raise
            why = str(none)  # what differs may show in the success only
    if subject is not None:
        found.append(_success(config, subject, before, after, real))
    result: dict[str, Any] = {
        "twin": before.name,
        "before": before.version,
        "after": after.version,
        **({"trajectory": {"why": why}} if why else {}),
        **{attribution.of: attribution.to_dict() for attribution in found},
    }
    if out.exists():
        out.rmdir()  # empty: it was looked at above
    with atomic_folder(out) as folder:
        if new:
            after.save(folder / "twin")
        for attribution in found:
            plot_attribution(folder / f"{attribution.of}.png", attribution)
        write_json(folder / "result.json", result)
    if config.json:
        print_json({"folder": str(out), **result})
        return 0
    if why:
        say(f"trajectory: {why}")
    for attribution in found:
        _show(attribution)
    say(f"written: {out}")
    return 0


def _real(config: AttributeConfig) -> tuple[int, int] | None:
    if not config.real:
        return None
    if config.policy is None:
        raise Sim2RealError("--real is of a policy: name it with --policy")
    won, _, tried = config.real.partition("/")
    if not (won.isdecimal() and tried.isdecimal() and int(won) <= int(tried) and int(tried) > 0):
        raise Sim2RealError(f"--real is successes and trials, as 12/20, not {config.real!r}")
    return int(won), int(tried)


def _before_and_after(
    config: AttributeConfig, twin: Twin, episodes: Sequence[Episode]
) -> tuple[Twin, Twin, bool]:
    """(the twin as it was, as it was identified, whether that was done just now)."""
    from sim2real.identify.identify import identify
    from sim2real.report.progress import bar
    from sim2real.twin import Twin

    if config.identified is not None:
        inner = config.identified / "twin"
        return twin, Twin.load(inner if inner.is_dir() else config.identified), False
    if twin.posterior is not None:
        return replace(twin, posterior=None, remainder=None), twin, False
    with bar("identify", quiet=config.json) as report:
        found = identify(
            twin,
            episodes,
            rate_hz=config.rate_hz,
            seed=config.seed,
            threads=config.threads,
            report=lambda stage, done, of: report(done, of),
        )
    if not found.promoted:
        raise Sim2RealError(f"the twin could not be identified from these logs: {found.why}")
    return twin, found.twin, True


def _subject(config: AttributeConfig, twin: Twin) -> Subject | None:
    """The policy whose lost success is attributed, trained in that twin."""
    from sim2real.evaluate.config import EvaluateConfig
    from sim2real.evaluate.evaluate import open_subject
    from sim2real.tasks import find_task
    from sim2real.twin import Twin

    if config.policy is None:
        return None
    subject = open_subject(EvaluateConfig(run=config.policy))
    its = subject.twin or Twin.load(find_task(subject.task).twin, check=False)
    if its.name != twin.name:
        raise Sim2RealError(
            f"{config.policy} is a policy for twin {its.name!r}, not for {twin.name!r}"
        )
    return subject


def _success(
    config: AttributeConfig,
    subject: Subject,
    before: Twin,
    after: Twin,
    real: tuple[int, int] | None,
) -> Attribution:
    from sim2real.attribute.success import attribute_success
    from sim2real.report.progress import bar
    from sim2real.tasks import find_task

    with bar("lost success", quiet=config.json) as report:
        return attribute_success(
            before,
            after,
            find_task(subject.task),
            subject.policy,
            source=subject.source,
            real=real,
            draws=config.draws,
            each=config.each,
            seed=config.seed,
            threads=config.threads,
            report=report,
        )


def _show(found: Attribution) -> None:
    if found.of == "trajectory":
        say(
            f"error above the readings' noise: {found.before:.3g} noise variances, identified"
            f" {found.after:.3g}"
        )
    else:
        say(f"success: {found.before:.1f} % as trained, {found.after:.1f} % identified")
    columns = [found.unit, "95 %", "parameter that does most"]
    evidence = any(share.refit is not None for share in found.shares)
    if evidence:
        columns += ["refit alone leaves", "refit without leaves"]
    rest = [] if found.unexplained is None else [found.unexplained]
    print_table(
        ("dimension", *columns), [_row(share, evidence) for share in [*found.shares, *rest]]
    )
    for sentence in found.sentences():
        say(sentence)


def _row(share: Share, evidence: bool) -> list[str]:
    known = [cause for cause in share.causes if cause.effect is not None]
    value, low, high = share.tenths()
    row = [
        share.name,
        f"{value}",
        f"{low} .. {high}",
        str(known[0]) if known and share.clear else "",
    ]
    if evidence:
        tried = share.refit
        row += ["", ""] if tried is None else [f"{tried.alone:.0f} %", f"{tried.without:.0f} %"]
    return row
