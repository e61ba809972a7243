"""`sim2real randomize show`: the ranges that episodes draw from, and whether they are right."""

from __future__ import annotations

from pathlib import Path

from sim2real.cli.adapter import carry_out
from sim2real.cli.output import print_table, say
from sim2real.gap import Ranges, RangesConfig, look_at_ranges
from sim2real.report import write_ranges


def run_ranges(config: RangesConfig) -> int:
    """Draw the ranges, check them against logs; 0, or 1 where they do not fit."""
    return carry_out(
        config,
        look_at_ranges,
        show=_show,
        keep=_keep,
        runs="randomize",
        fine=lambda found: found.fine,
    )


def _keep(found: Ranges, folder: Path) -> None:
    found.save(folder)
    write_ranges(folder / "ranges.html", found)


def _show(found: Ranges, out: Path) -> None:
    print_table(*found.table())
    for one, other, value in found.correlations()[:5]:
        say(f"correlated ({value:+.2f}): {one}, {other}")
    if (covered := found.coverage) is not None:
        print_table(*covered.table())
        say(f"the ranges are {covered.verdict}; 95 % should be inside")
