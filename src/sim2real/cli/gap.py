"""`sim2real gap`: how far a twin is from its robot, and where."""

from __future__ import annotations

from pathlib import Path

from sim2real.cli.adapter import carry_out
from sim2real.cli.output import print_table, say
from sim2real.files import write_json
from sim2real.gap import Gap, GapConfig, measure_gap, two_figures
from sim2real.report import write_gap

_PLACES = 5


def run_gap(config: GapConfig) -> int:
    """Measure the gap as configured, write its page; 0."""
    return carry_out(config, measure_gap, show=_show, keep=_keep, runs="gap")


def _keep(found: Gap, folder: Path) -> None:
    write_gap(folder / "gap.html", found)
    write_json(folder / "gap.json", found.to_dict())


def _show(found: Gap, out: Path) -> None:
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
