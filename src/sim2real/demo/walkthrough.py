"""`sim2real demo`: the loop on one stand-in pendulum, with a live view of what happens."""

from __future__ import annotations

import json
import shutil
import sys
import time
from pathlib import Path

from sim2real.demo.demo_config import DemoConfig
from sim2real.errors import Sim2RealError
from sim2real.files import write_json, write_text
from sim2real.intervals import Rate
from sim2real.loop import SUMMARY_FILE, LoopConfig, close_the_loop
from sim2real.report import REPORT_FILE, Live, bar, write_loop
from sim2real.robot import OperatorPrompts

TASK = "pendulum-swingup"
_MARK = ".sim2real-demo"


def demo(config: DemoConfig) -> int:
    """Run the demo; the exit code."""
    begin = time.perf_counter()
    out = config.out
    _clear(out)
    _say(
        f"Pendulum {config.unit} differs from its twin in unknown ways. A policy is"
        " trained in the twin, fails on the robot, and the gap is measured, explained and closed.",
        quiet=config.json,
    )
    options = LoopConfig(task=TASK, robot=f"unit:{config.unit}", seed=config.seed, out=out, lake="")
    with bar("demo", quiet=config.json) as progress:
        closed = close_the_loop(
            options, report=Live(quiet=config.json), prompts=OperatorPrompts(report=progress)
        )
    write_loop(out / REPORT_FILE, closed)
    summary = closed.to_dict() | {"seconds": round(time.perf_counter() - begin, 1)}
    write_json(out / SUMMARY_FILE, summary | closed.stored())
    if config.json:
        sys.stdout.write(json.dumps(summary) + "\n")
        return 0
    first, last = closed.rounds[0], closed.rounds[-1]
    failed = [one.failures.causes() for one in closed.rounds if one.failures]
    _say(
        f"\nin simulation    {_rate(first.sim)}\n"
        f"on the robot     {_rate(first.real)}\n"
        f"after the loop   {_rate(last.real)}\n"
        + "".join(f"failures         {causes}\n" for causes in failed if causes)
        + f"from now on      {last.expected or 'nothing is known'}\n"
        f"robot time       {closed.trials} trials and {closed.recorded_s:.0f} s of motion\n"
        f"report           {out / REPORT_FILE}\n"
        f"summary          {out / SUMMARY_FILE}\n"
        f"{summary['seconds']:.0f} s in all"
    )
    return 0


def _clear(out: Path) -> None:
    """Remove a finished demo, keep an interrupted one, and refuse any other folder."""
    if out.exists() and not (out / _MARK).is_file() and (not out.is_dir() or any(out.iterdir())):
        raise Sim2RealError(f"{out} exists and is not an earlier demo; choose another --out")
    if (out / REPORT_FILE).exists() or not (out / "steps").is_dir():
        shutil.rmtree(out, ignore_errors=True)
    write_text(out / _MARK, "made by sim2real demo; replaced by the next one\n")


def _rate(rate: Rate) -> str:
    return f"{rate.value:4.0%}  [{rate.low:.0%}, {rate.high:.0%}] of {rate.n}"


def _say(text: str, *, quiet: bool = False) -> None:
    if not quiet:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
