"""`sim2real gap`: how far a twin is from its robot, and where."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from sim2real.cli.logs import read_logs
from sim2real.cli.output import print_json, print_table, say
from sim2real.gap.config import GapConfig

if TYPE_CHECKING:
    from sim2real.gap.measure import Gap

_PLACES = 5


def run_gap(config: GapConfig) -> int:
    """Measure the gap as configured, write its page; 0."""
    from sim2real.files import refuse_file, write_json
    from sim2real.gap.measure import check_options, measure
    from sim2real.identify.align import aligned
    from sim2real.policy import Bundle
    from sim2real.report.gap import write_gap
    from sim2real.report.progress import bar
    from sim2real.twin import Twin

    if config.out is not None:
        refuse_file(config.out)
    check_options(horizon_s=config.horizon_s, seed=config.seed)
    source = Bundle.open(config.twin).twin if Bundle.is_bundle(config.twin) else config.twin
    twin = Twin.load(source)
    episodes = read_logs(config.logs, channels=config.channels)
    logs = [aligned(episode, twin, rate_hz=config.rate_hz) for episode in episodes]
    with bar("gap", quiet=config.json) as report:
        found = measure(
            twin,
            logs,
            horizon_s=config.horizon_s,
            remainder=config.remainder,
            seed=config.seed,
            threads=config.threads,
            report=report,
        )
    out = config.out or Path("runs") / "gap" / twin.name / f"{datetime.now():%Y%m%d-%H%M%S}"
    write_gap(out / "gap.html", found)
    write_json(out / "gap.json", found.to_dict())
    if config.json:
        print_json({"folder": str(out), **found.to_dict()})
    else:
        _show(found, out)
    return 0


def _show(found: Gap, out: Path) -> None:
    from sim2real.gap.measure import two_figures

    print_table(
        (
            "channel",
            "unit",
            "error",
            "noise levels",
            "of its spread",
            "error / floor",
            "if it stayed",
        ),
        (
            (
                c.name,
                c.unit or "1",
                f"{c.error:.3g}",
                f"{c.in_noise:.3g}",
                c.spread_words,
                f"{c.ratio:.2f} ({c.ratio_low:.2f} to {c.ratio_high:.2f})",
                f"{c.stays[-1]:.3g}",
            )
            for c in found.channels
        ),
    )
    print_table(
        ("told apart", "segments", "MMD²", "p", "classifier", "p"),
        (
            (
                d.of,
                d.pairs,
                f"{d.mmd:.2g}",
                f"{d.mmd_p:.2g}",
                f"{d.accuracy:.2f}",
                f"{d.accuracy_p:.2g}",
            )
            for d in found.distances
        ),
    )
    for place in found.worst_places[:_PLACES]:
        say(
            f"larger: {place.channel} {place.words}: {two_figures(place.excess)} noise levels"
            f" beyond chance within {place.horizon_s:.2g} s, {two_figures(place.elsewhere)}"
            f" elsewhere (p = {place.p_value:.2g})"
        )
    for note in found.notes:
        say(note)
    say(found.verdict)
    say(f"written: {out / 'gap.html'}, {out / 'gap.json'}")
