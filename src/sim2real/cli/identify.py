"""`sim2real identify`: from recordings to a new version of a twin."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from sim2real.cli.logs import read_logs
from sim2real.cli.output import print_json, print_table, say
from sim2real.errors import Sim2RealError
from sim2real.identify.config import IdentifyConfig

if TYPE_CHECKING:
    from sim2real.identify.identify import Identification


def run_identify(config: IdentifyConfig) -> int:
    """Identify as configured; 0, or 1 where the new twin was not promoted."""
    from sim2real.files import write_json
    from sim2real.identify.align import aligned
    from sim2real.identify.identify import identify
    from sim2real.policy import Bundle
    from sim2real.report.identify import write_page
    from sim2real.report.progress import bar
    from sim2real.twin import Twin

    folder = Bundle.open(config.twin).twin if Bundle.is_bundle(config.twin) else config.twin
    twin = Twin.load(folder)
    time = datetime.now().strftime("%Y%m%d-%H%M%S")
    out = config.out or Path("runs") / "identify" / twin.name / time
    if out.exists() and any(out.iterdir()):
        raise Sim2RealError(f"{out} is not empty; choose another with --out")
    episodes = read_logs(config.logs, channels=config.channels)
    held_back = read_logs(config.held_back, channels=config.channels) if config.held_back else []
    with bar("identify", quiet=config.json) as report:
        found = identify(
            twin,
            episodes,
            fitted=config.parameters,
            held_back=held_back,
            rate_hz=config.rate_hz,
            starts=config.starts,
            seed=config.seed,
            threads=config.threads,
            report=lambda stage, done, of: report(done, of),
        )
    out.mkdir(parents=True, exist_ok=True)
    if found.promoted:
        found.twin.save(out / "twin")
    kept = {episode.id: episode for episode in [*episodes, *held_back]}
    test = [
        aligned(kept[name], twin, rate_hz=config.rate_hz)
        for name in found.check.recordings
        if name in kept
    ]
    write_page(out / "report.html", found, twin, test)
    write_json(out / "result.json", found.to_dict())
    if config.json:
        print_json({"folder": str(out), **found.to_dict()})
    else:
        _show(found, out)
    return 0 if found.promoted else 1


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
    say(f"report: {out / 'report.html'}")
