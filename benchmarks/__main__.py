"""`python -m benchmarks`: see the package."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from benchmarks.benchmark import Options
from benchmarks.catalogue import BENCHMARKS
from sim2real.errors import Sim2RealError
from sim2real.scale import ExecutorOptions


@dataclass(frozen=True, kw_only=True)
class Command(ExecutorOptions):
    """Measure what the project promises. Without a name: what there is, and what it costs."""

    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")] = ""
    """A benchmark; or `check`: do kept figures hold; or `tables`: write docs/benchmarks.md; or
    `algorithms`: record which version of the loop's algorithms the code is."""
    of: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="NAMES")] = ()
    """Benchmarks to check; all by default."""
    quick: bool = False
    """Small sizes, to see that it works; no figure is kept."""
    json: bool = False
    """Print figures as JSON; with uncommitted changes, nothing is kept."""
    shards: tuple[str, ...] = ()
    """Measure only these shards."""
    again: bool = False
    """Measure again what is kept."""
    minutes: float = 60.0
    """Begin no shard that would not end within this time [min]."""
    data: Path | None = None
    """Folder with real recordings and published tables; $SIM2REAL_REAL_DATA by default."""
    same: str = ""
    """With `algorithms`: why modules that changed give the same results."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit code."""
    command = tyro.cli(Command, prog="python -m benchmarks", args=arguments)
    try:
        return _run(command)
    except Sim2RealError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; shards that were done are kept\n")
        return 130


def _run(command: Command) -> int:
    from benchmarks.algorithms import record_algorithms
    from benchmarks.check import check
    from benchmarks.run import Request, minutes_of, run, told
    from benchmarks.tables import write_tables

    given = command.data or os.environ.get("SIM2REAL_REAL_DATA")
    options = Options(quick=command.quick, data=Path(given) if given else None)
    if not command.name:
        for benchmark in BENCHMARKS:
            minutes, _ = minutes_of(benchmark)
            sys.stdout.write(f"{benchmark.name:10} {told(minutes):>20}  {benchmark.about}\n")
        return 0
    if command.of and command.name != "check":
        raise Sim2RealError(f"{command.name!r} and {command.of[0]!r}: one benchmark at a time")
    if command.name == "check":
        return check(command.of, options)
    if command.same and command.name != "algorithms":
        raise Sim2RealError("--same goes with `algorithms` only")
    if command.name == "algorithms":
        return record_algorithms(command.same)
    if command.name == "tables":
        write_tables()
        return 0
    request = Request(
        options=options, shards=command.shards, again=command.again, minutes=command.minutes,
        json=command.json,
        where=ExecutorOptions(
            executor=command.executor, workers=command.workers, store=command.store
        ),
    )  # fmt: skip
    return run(command.name, request)


if __name__ == "__main__":
    sys.exit(main())
