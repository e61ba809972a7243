"""`sim2real loop`: close the gap to one robot, with a live view of every step."""

from __future__ import annotations

import sys

from sim2real.cli.output import answer, at_the_terminal, print_json, say
from sim2real.loop import (
    SUMMARY_FILE,
    LoopConfig,
    close_the_loop,
    lower_bound,
    plan_the_loop,
)
from sim2real.report import REPORT_FILE, Live, bar, write_loop
from sim2real.robot import OperatorPrompts, robot_scheme


def run_loop(config: LoopConfig) -> int:
    """Run or continue a loop; 0 if the target was met, 1 if the budget was spent."""
    if config.dry_run:
        plan = plan_the_loop(config)
        said = [*map(str, plan.steps), *([plan.ended] if plan.ended else [])]
        return answer(plan, "\n".join(said), json=config.json)
    if not config.json and (most := lower_bound([True] * config.trials)) < config.target:
        say(
            f"{config.trials} attempts show at most {100 * most:.1f} %, 95 % sure, even if all"
            f" succeed: the target of {100 * config.target:g} % cannot be met within --budget"
        )
    simulated = robot_scheme(config.robot).abilities(config.robot).simulated
    prompted = not simulated and sys.stdin.isatty()
    with bar("loop", quiet=config.json or prompted) as progress:  # a prompt and a bar clash
        tell = (lambda text: None) if config.json else say
        talk = OperatorPrompts(
            report=progress, tell=tell, **(at_the_terminal() if prompted else {})
        )
        closed = close_the_loop(config, report=Live(quiet=config.json), prompts=talk)
    write_loop(closed.folder / REPORT_FILE, closed)
    if config.json:
        print_json({"folder": str(closed.folder), **closed.to_dict()})
    else:
        say(closed.why)
        for one in closed.rounds:
            if one.failures is not None and (causes := one.failures.causes()):
                say(causes)
            for step in one.ladder.steps:
                if not step.passed:
                    needed = f"; to pass it, {step.to_pass}" if step.to_pass else ""
                    say(f"not passed: {step.step}: {step.why}{needed}")
        if (expected := closed.rounds[-1].expected) is not None:
            say(f"expected from now on: {expected}")
        if config.lake:
            say(f"lake     {config.lake}")
        say(f"report   {closed.folder / REPORT_FILE}")
        say(f"summary  {closed.folder / SUMMARY_FILE}")
    return 0 if closed.met else 1
