"""`sim2real identify`: from recordings to a new version of a twin."""

from __future__ import annotations

from pathlib import Path

from sim2real.cli.adapter import carry_out
from sim2real.cli.output import print_table, say
from sim2real.identification import Identification, IdentifyConfig, identify
from sim2real.plan import advice
from sim2real.report import write_page


def run_identify(config: IdentifyConfig) -> int:
    """Identify as configured; 0, or 1 where the new twin was not promoted."""
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
    for k, (name, value) in enumerate(found.values.items()):
        shrunk = found.told.shrinkage[k]
        told = "yes" if shrunk < 0.5 else "hardly" if shrunk < 0.9 else "no"
        interval = f"± {1.96 * found.posterior.std[k]:.2g}"
        rows.append((name, found.problem.center[k], value, interval, told))
    print_table(("parameter", "before", "after", "95 %", "told"), rows)
    for group in found.told.combinations:
        say(f"only in combination: {', '.join(group)}")
    for note in found.notes:
        say(note)
    check = found.check
    say(
        f"recordings held back: error over {check.horizon_s:g} s is {check.ratio:.2f} times what it"
        " was"
    )
    if found.promoted:
        say(f"new twin: {out / 'twin'}, version {found.twin.version}")
    else:
        say(f"not promoted: {found.why}")
    twin = out / "twin" if found.promoted else found.twin.folder
    for line in advice(found.told, str(twin)):
        say(line)
    if (learned := found.learned) is not None:
        say(
            f"no remainder: {learned.why}"
            if learned.why
            else f"remainder: held-back error is {learned.ratio:.2f} times what it was without"
        )
