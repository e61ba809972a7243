"""The whole loop for one robot: record, train, deploy, identify, train again, until it works.

Run:  python examples/close_the_loop.py [--quick] [--out FOLDER]

The robot is stand-in hardware. If you interrupt it, the same command continues where it stopped.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import sim2real as s2r
from sim2real.loop import KeptResult, KeptStep, LoopConfig


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="too short to close anything")
    parser.add_argument("--out", type=Path, help="folder of all results")
    given = parser.parse_args()

    how = LoopConfig(task="pendulum-swingup", robot="unit:2028", out=given.out)
    if given.quick:
        how = replace(
            how, iterations=1, seconds=6.0, budget="2", first=2, explain=False, force=True
        )

    closed = s2r.close_the_loop(how, report=tell)

    print(closed.why)
    for one in closed.rounds:
        print(f"success on the robot: {one.real}")
    print(f"every step is kept in {closed.folder}")


def tell(step: KeptStep, done: KeptResult | None) -> None:
    """Print each step as it begins and ends."""
    print(f"{step.kind}{' …' if done is None else ': done'}")


if __name__ == "__main__":
    main()
