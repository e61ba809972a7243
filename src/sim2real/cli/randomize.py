"""`sim2real randomize show`: the ranges that episodes draw from, and whether they are right."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from sim2real.cli.output import print_json, print_table, say
from sim2real.data import read_logs

if TYPE_CHECKING:
    from sim2real.gap.coverage import Coverage
    from sim2real.report.ranges import Ranges
    from sim2real.twin import Twin

_SHOWN = 2000
"""Rows that are drawn for plots and ranges."""


@dataclass(frozen=True, kw_only=True)
class RandomizeShow:
    """Show the ranges of a twin's parameters; with --logs, whether they cover the real robot.

    Exit code 1 where they do not: too narrow, or far too wide.
    """

    twin: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="TWIN")]
    """Folder of the twin, or of a bundle."""
    logs: tuple[str, ...] = ()
    """Recordings of the robot, folders of them, lakes, or files of other formats. Better not those
    that the twin was identified from."""
    params: str = ""
    """Where parameters come from, as in `evaluate`: the posterior by default, or the priors."""
    out: Path | None = None
    """Folder for ranges.html and ranges.json; `runs/randomize/TWIN/TIME` by default."""
    channels: Path | None = None
    """Channel map (TOML) for CSV, npz, JSON and MATLAB files."""
    rate_hz: float = 0.0
    """Control rate of the logs [Hz]; their own by default."""
    horizon_s: float = 0.5
    """Length of a window [s]."""
    draws: int = 64
    """Vectors that every window is replayed with."""
    seed: int = 0
    threads: int = 0
    """Threads of the simulation; 0 for all cores."""
    json: bool = False
    """Print the result as JSON."""


def run_show(config: RandomizeShow) -> int:
    """Draw the ranges, check them against logs, write a page; 0, or 1 where they do not fit."""
    from sim2real.files import write_json
    from sim2real.policy import Bundle
    from sim2real.randomize import drawn
    from sim2real.report.ranges import Ranges, write_ranges
    from sim2real.twin import Twin

    folder = Bundle.open(config.twin).twin if Bundle.is_bundle(config.twin) else config.twin
    twin = Twin.load(folder)
    source = config.params or ("prior" if twin.posterior is None else "posterior")
    draws = drawn(twin, source, count=_SHOWN, seed=config.seed).numpy()
    ranges = Ranges(twin=twin, source=source, draws=draws)
    covered = _covered(config, twin, source) if config.logs else None
    out = config.out or Path("runs") / "randomize" / twin.name / f"{datetime.now():%Y%m%d-%H%M%S}"
    out.mkdir(parents=True, exist_ok=True)
    told = ranges.to_dict() | {"coverage": covered.to_dict() if covered else None}
    write_ranges(out / "ranges.html", ranges, covered)
    write_json(out / "ranges.json", told)
    if config.json:
        print_json({"folder": str(out), **told})
    else:
        _say(ranges, covered, out)
    return 0 if covered is None or covered.verdict == "fine" else 1


def _covered(config: RandomizeShow, twin: Twin, source: str) -> Coverage:
    from sim2real.gap.coverage import coverage
    from sim2real.identify.align import aligned
    from sim2real.report.progress import bar

    episodes = read_logs(config.logs, channels=config.channels)
    with bar("coverage", quiet=config.json) as report:
        return coverage(
            twin,
            [aligned(episode, twin, rate_hz=config.rate_hz) for episode in episodes],
            source=source,
            draws=config.draws,
            horizon_s=config.horizon_s,
            seed=config.seed,
            threads=config.threads,
            report=report,
        )


def _say(ranges: Ranges, covered: Coverage | None, out: Path) -> None:
    told = ranges.to_dict()["parameters"]
    print_table(
        ("parameter", "unit", "prior, 95 %", "range, 95 %"),
        (
            (
                name,
                entry["unit"] or "×",
                f"{entry['prior'][0]:.4g} .. {entry['prior'][2]:.4g}",
                f"{entry['range'][0]:.4g} .. {entry['range'][2]:.4g}",
            )
            for name, entry in told.items()
        ),
    )
    for one, other, value in ranges.correlations()[:5]:
        say(f"go together ({value:+.2f}): {one}, {other}")
    if covered is not None:
        print_table(
            ("sensor", "readings inside", "windows explained", "spread in errors", "ranges are"),
            (
                (s.name, str(s.inside), str(s.explained), f"{s.width:.2f}", s.verdict)
                for s in covered.sensors
            ),
        )
        say(f"the ranges are {covered.verdict}; 95 % should be inside")
    say(f"written: {out / 'ranges.html'}, {out / 'ranges.json'}")
