"""`sim2real loop`: close the gap to one robot, with a live view of every step."""

from __future__ import annotations

from sim2real.cli.output import print_json, say
from sim2real.loop.config import LoopConfig


def run_loop(config: LoopConfig) -> int:
    """Run, or go on with, a loop; 0 where the target was met, 1 where the budget was spent."""
    from sim2real.loop.loop import SUMMARY_FILE, loop
    from sim2real.report.live import Live
    from sim2real.report.loop import REPORT_FILE, write_loop
    from sim2real.report.progress import bar

    with bar("loop", quiet=config.json) as progress:
        closed = loop(config, report=Live(quiet=config.json), progress=progress)
    write_loop(closed.folder / REPORT_FILE, closed)
    if config.json:
        print_json({"folder": str(closed.folder), **closed.to_dict()})
    else:
        say(closed.why)
        say(f"report   {closed.folder / REPORT_FILE}")
        say(f"summary  {closed.folder / SUMMARY_FILE}")
    return 0 if closed.met else 1
