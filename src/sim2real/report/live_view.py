"""A live view of a loop: a line when a step starts, and one with its result."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sim2real.loop import KeptResult, KeptStep

_WORDS = {
    "train": "training a policy",
    "widen": "widening the ranges",
    "evaluate": "evaluating it in new worlds",
    "export": "making a bundle",
    "record": "recording motions of the robot",
    "ladder": "climbing the ladder of trust",
    "trials": "trials on the robot",
    "identify": "identifying the robot",
    "scatter": "adding the model error to the posterior",
    "seen": "collecting recorded states of the robot",
    "remainder": "learning the remainder",
    "attribute": "attributing the gap",
    "predict": "predicting success on the robot",
    "failures": "finding out why trials failed",
    "show": "filming a failure and a success",
}


class Live:
    """Reports steps on standard output, unless it is quiet."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._begin = time.perf_counter()
        self._begun: set[str] = set()

    def __call__(self, step: KeptStep, done: KeptResult | None) -> None:
        """Report that a step starts, or its result."""
        if self._quiet:
            return
        line = f"{time.perf_counter() - self._begin:5.0f} s  {_WORDS.get(step.kind, step.kind)}"
        if done is None:
            if step.key in self._begun:  # it ran in the background, and the loop now waits for it
                return
            self._begun.add(step.key)
            line += f" (made again: {step.why}) …" if step.why else " …"
        else:
            how = f"{done.seconds:.0f} s" if step.key in self._begun else done.how
            line += f": {outcome(done)} ({how})"
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def outcome(done: KeptResult) -> str:
    """The result of a step, in a few words."""
    result = done.result
    match done.step.kind:
        case "train":
            return (
                f"{result['iterations']} updates, {result['success'] or 0:.0%} success at the end"
            )
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
        case "seen":
            return f"{result['states']} states"
        case "predict":
            won, tried = sum(result["won"]), sum(result["tried"])
            return f"{won / tried:.1%} over {len(result['won'])} robots drawn from the posterior"
        case "attribute":
            return "; ".join(result["success"]["sentences"][:2])
        case "failures":
            return "; ".join(result["sentences"][1:3])
        case _:
            return "done"
