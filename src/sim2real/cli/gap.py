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
    print_table(*found.channel_table())
    print_table(*found.distance_table())
    for place in found.worst_places[:_PLACES]:
        say(
            f"hotspot: {place.channel} {place.words}: {two_figures(place.excess)} noise levels"
            f" beyond its own noise within {place.horizon_s:.2g} s,"
            f" {two_figures(place.elsewhere)} elsewhere (p = {place.p_value:.2g})"
        )
    for note in found.notes:
        say(note)
    say(found.verdict)
