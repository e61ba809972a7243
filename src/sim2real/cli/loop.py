"""`sim2real loop`: close the gap to one robot, with a live view of every step."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from sim2real.cli.output import print_json, say
from sim2real.loop.config import LoopConfig

if TYPE_CHECKING:
    from sim2real.loop.steps import Done, Step

_WORDS = {
    "train": "training a policy",
    "widen": "widening the ranges",
    "evaluate": "trying it in worlds it has never seen",
    "export": "making a bundle",
    "record": "recording motions of the robot",
    "ladder": "climbing the ladder of trust",
    "trials": "attempts on the robot",
    "identify": "identifying the robot",
    "attribute": "attributing the gap",
    "predict": "predicting success on the robot",
}


def run_loop(config: LoopConfig) -> int:
    """Run, or go on with, a loop; 0 where the target was met, 1 where the budget was spent."""
    from sim2real.loop.loop import loop
    from sim2real.report.progress import bar

    begin = time.perf_counter()

    def tell(step: Step, done: Done | None) -> None:
        if config.json:
            return
        words = _WORDS.get(step.kind, step.kind)
        at = f"{time.perf_counter() - begin:5.0f} s"
        if done is None:
            say(f"{at}  {words} …")
        else:
            how = "kept" if done.kept else f"{done.seconds:.0f} s"
            say(f"{at}  {words}: {outcome(done)} ({how})")

    with bar("loop", quiet=config.json) as progress:
        closed = loop(config, report=tell, progress=progress)
    if config.json:
        print_json({"folder": str(closed.folder), **closed.to_dict()})
    else:
        say(closed.why)
        say(f"everything is in {closed.folder}")
    return 0 if closed.met else 1


def outcome(done: Done) -> str:
    """What came of a step, in a few words."""
    result = done.result
    match done.step.kind:
        case "train":
            return f"{result['iterations']} updates, {result['success'] or 0:.0%} of the last"
        case "evaluate":
            return f"{result['value']:.1%} of {result['n']}"
        case "record":
            return f"{result['seconds']:.0f} s of motion"
        case "ladder":
            refused = [entry for entry in result["steps"] if not entry["passed"]]
            return f"not passed: {refused[0]['why']}" if refused else "passed"
        case "trials":
            return f"{sum(result['success'])} of {len(result['success'])} succeeded"
        case "identify":
            return "a better twin" if result["promoted"] else f"not promoted: {result['why']}"
        case "predict":
            return f"{result['mean']:.0%}, {result['low']:.0%} to {result['high']:.0%}"
        case _:
            return "done"
