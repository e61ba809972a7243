"""The verbs `gap` and `randomize show`: how far a twin is from its robot, and its ranges."""

from __future__ import annotations

from pathlib import Path

from sim2real.cli.adapter import carry_out
from sim2real.cli.output import print_table, say
from sim2real.gap import (
    Gap,
    GapConfig,
    Ranges,
    RangesConfig,
    look_at_ranges,
    measure_gap,
    two_figures,
)
from sim2real.report import write_gap, write_ranges

_MAX_HOTSPOTS = 5


def run_gap(config: GapConfig) -> int:
    """Measure the gap as configured, write its page; 0."""
    return carry_out(config, measure_gap, show=_show, keep=_keep, runs="gap")


def _keep(found: Gap, folder: Path) -> None:
    write_gap(folder / "gap.html", found)
    found.save(folder / "gap.json")


def _show(found: Gap, out: Path) -> None:
    print_table(*found.channel_table())
    print_table(*found.distance_table())
    for place in found.worst_places[:_MAX_HOTSPOTS]:
        say(
            f"hotspot: {place.channel} {place.words}: {two_figures(place.excess)} noise levels"
            f" beyond its own noise within {place.horizon_s:.2g} s,"
            f" {two_figures(place.elsewhere)} elsewhere (p = {place.p_value:.2g})"
        )
    for note in found.notes:
        say(note)
    say(found.verdict)


def run_ranges(config: RangesConfig) -> int:
    """Show the ranges, and check them against logs; 0, or 1 if they do not cover the robot."""
    return carry_out(config, look_at_ranges, show=_show_ranges, keep=_keep_ranges, runs="randomize")


def _keep_ranges(found: Ranges, folder: Path) -> None:
    found.save(folder / "ranges.json")
    write_ranges(folder / "ranges.html", found)


def _show_ranges(found: Ranges, out: Path) -> None:
    print_table(*found.table())
    for pair in found.correlations()[:5]:
        say(f"correlated ({pair.correlation:+.2f}): {', '.join(pair.parameters)}")
    if (covered := found.coverage) is not None:
        print_table(*covered.table())
        say(covered.sentence)
