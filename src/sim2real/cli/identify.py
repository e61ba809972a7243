"""The verbs `identify` and `identify plan`: a new version of a twin, and what to record for it."""

from __future__ import annotations

from pathlib import Path

from sim2real.cli.adapter import carry_out
from sim2real.cli.output import print_table, say
from sim2real.errors import Sim2RealError
from sim2real.identification import Identification, IdentifyConfig, identify
from sim2real.plan import FORMATS, MotionPlan, PlanConfig, plan_motions
from sim2real.report import plot_plan, write_page


def run_identify(config: IdentifyConfig) -> int:
    """Identify as configured; 0, or 1 if the new twin was not promoted."""
    return carry_out(
        config,
        identify,
        show=_show,
        keep=_keep,
        runs="identify",
        fine=lambda found: found.promoted,
    )


def _keep(found: Identification, folder: Path) -> None:
    found.save(folder)
    write_page(folder / "report.html", found)


def _show(found: Identification, out: Path) -> None:
    rows = []
    for one in found.estimates:
        known = "yes" if one.shrinkage < 0.5 else "hardly" if one.shrinkage < 0.9 else "no"
        rows.append((one.name, one.before, one.value, f"± {1.96 * one.std:.2g}", known))
    print_table(("parameter", "before", "after", "95 %", "identified"), rows)
    for group in found.identifiability.combinations:
        say(f"determined only in combination: {', '.join(group)}")
    for note in found.notes:
        say(note)
    check = found.check
    say(
        f"held-back recordings: the error over {check.horizon_s:g} s is {check.ratio:.2f} times"
        " that of the old twin"
    )
    if found.promoted:
        say(f"new twin: {out / 'twin'}, version {found.version}")
    else:
        say(f"not promoted: {found.why}")
    twin = out / "twin" if found.promoted else found.twin.folder
    for line in found.identifiability.advice(str(twin)):
        say(line)
    if (learned := found.learned) is not None:
        say(
            f"no remainder: {learned.why}"
            if learned.why
            else f"remainder: the held-back error is {learned.ratio:.2f} times that without"
        )


def run_plan(config: PlanConfig) -> int:
    """Choose motions and say how to record them; 0."""
    if config.out is not None and config.out.suffix not in FORMATS:
        raise Sim2RealError(f"--out must be a .toml or .json file, not {config.out.name!r}")
    return carry_out(config, plan_motions, show=_show_plan, keep=_keep_plan)


def _keep_plan(found: MotionPlan, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    found.save(path)
    plot_plan(path.with_suffix(".png"), found)


def _show_plan(found: MotionPlan, out: Path) -> None:
    print_table(
        ("motion", "seconds", "information [nats]"),
        ((m.name, round(m.seconds, 1), round(m.gain, 2)) for m in found.motions),
    )
    say("")
    steps = [f"after {k + 1}" for k in range(len(found.motions))]
    print_table(
        ("standard deviation of", "unit", "prior", "now", *steps),
        (
            (name, unit or "×", *(f"{value:.2g}" for value in row))
            for name, unit, *row in zip(
                found.names,
                found.units,
                found.prior,
                found.before,
                *(motion.std for motion in found.motions),
                strict=True,
            )
            if name in found.wanted
        ),
    )
    hardly = [
        name
        for name, before, after in zip(found.names, found.before, found.after, strict=True)
        if name in found.wanted and after > 0.9 * before
    ]
    if hardly:
        say(f"none of the motions would tell much about: {', '.join(hardly)}")
    if found.refused:
        say(f"{len(found.refused)} motions are not possible from the twin's default pose")
    say("")
    for motion in found.motions:
        say(motion.record)
    say("each is a dry run; add --robot, --execute and --person to move the robot")
