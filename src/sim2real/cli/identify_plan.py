"""`sim2real identify plan`: which motions to record next."""

from __future__ import annotations

from pathlib import Path

from sim2real.cli.adapter import carry_out
from sim2real.cli.output import print_table, say
from sim2real.errors import Sim2RealError
from sim2real.plan import FORMATS, MotionPlan, PlanConfig, plan_motions
from sim2real.report import plot_plan


def run_plan(config: PlanConfig) -> int:
    """Choose motions and say how to record them; 0."""
    if config.out is not None and config.out.suffix not in FORMATS:
        raise Sim2RealError(f"a plan is a .toml or .json file, not {config.out.name!r}")
    return carry_out(config, plan_motions, show=_show, keep=_keep)


def _keep(found: MotionPlan, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    found.save(path)
    plot_plan(path.with_suffix(".png"), found)


def _show(found: MotionPlan, out: Path) -> None:
    print_table(
        ("motion", "seconds", "worth in nats"),
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
        say(f"none of the motions would say much about: {', '.join(hardly)}")
    if found.refused:
        say(f"{len(found.refused)} motions are not possible from the twin's default pose")
    say("")
    for motion in found.motions:
        say(motion.record)
    say("each is a dry run; add --robot, --execute and --person to move the robot")
