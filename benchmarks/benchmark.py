"""What a benchmark is: facts that are known before it runs, and the measurement itself."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Generic, TypeVar, cast

from sim2real.plain import PlainData

T = TypeVar("T")


def report(text: str) -> None:
    """Say on standard error how far a measurement is."""
    sys.stderr.write(text + "\n")


@dataclass(frozen=True, kw_only=True)
class Result(PlainData, also=("met",)):
    """One number, with what it is compared to."""

    name: str
    """Stable: a figure keeps its name for good."""
    value: float
    unit: str
    interval: tuple[float, float] | None = None
    """95 % interval of the value, where it has one."""
    peer: str = ""
    """What a ratio is against."""
    target: str = ""
    """What should be reached, as '>= 0.8'."""
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the target was reached; None without one."""
        if not self.target:
            return None
        sign, number = self.target.split()
        return self.value >= float(number) if sign == ">=" else self.value <= float(number)


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a benchmark is run."""

    quick: bool = False
    """Small sizes, to see that it works; what comes out is no figure."""
    data: Path | None = None
    """Folder with recordings of real robots and published tables, which are not part of this."""


@dataclass(frozen=True, kw_only=True)
class Measurement(Generic[T]):
    """The work of a benchmark, cut into shards that know nothing of each other."""

    kind: type[T]
    """Dataclass that a shard gives; plain enough for JSON."""
    shards: Callable[[Options], tuple[str, ...]]
    """Names of all shards; with a '/' where they go in folders."""
    run: Callable[[str, Options], T]
    """Measure one shard."""
    results: Callable[[Mapping[str, T], Options], list[Result]]
    """Figures of some shards, in the order of `shards`."""
    plan: object | None = None
    """Sizes of a full run: shards of another plan are not added up."""
    lacking: Callable[[str, Options], str] = lambda shard, options: ""
    """What a shard would need that is not here, in a few words; '' where nothing is."""
    prepare: Callable[[Sequence[str], Options], None] = lambda shards, options: None
    """Do what several shards share, before any of them."""


@dataclass(frozen=True, kw_only=True)
class Tolerance:
    """How far a figure may be off when it is measured again."""

    relative: float = 0.0
    """Share of the kept value."""
    absolute: float = 0.0
    """In the figure's own unit."""
    by_target: tuple[str, ...] = ()
    """Figures that scatter by more, by how their names begin: of them only the target counts."""

    def holds(self, name: str, kept: float, again: float) -> bool:
        """Whether a figure that was measured again agrees with the one that was kept."""
        if name.startswith(self.by_target):
            return True
        return abs(again - kept) <= self.absolute + self.relative * abs(kept)


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """What is known of a benchmark without loading it."""

    name: str
    about: str
    """What it measures, in a line."""
    minutes: float
    """Time on two idle cores while no run is kept that says it better [min]."""
    modules: tuple[str, ...]
    """Modules and rooms that its figures depend on, beside its own code."""
    tolerance: Tolerance = Tolerance()
    """How far figures may be off when a shard is measured again with other code."""
    at_once: bool = False
    """Whether shards use one core each and run side by side; never where time is measured."""

    @property
    def code(self) -> str:
        """The module that measures."""
        return f"benchmarks.{self.name.replace('-', '_')}"

    def load(self) -> Measurement[object]:
        """The measurement; imports what it needs."""
        return cast(Measurement[object], import_module(self.code).MEASUREMENT)


@dataclass(frozen=True, kw_only=True)
class Found:
    """A shard whose figures stand on their own."""

    results: tuple[Result, ...]


def side_by_side(
    shards: Callable[[Options], tuple[str, ...]],
    run: Callable[[str, Options], Iterable[Result]],
    *,
    plan: object | None = None,
    lacking: Callable[[str, Options], str] = lambda shard, options: "",
) -> Measurement[Found]:
    """A measurement whose shards each give figures of their own."""

    def found(shard: str, options: Options) -> Found:
        return Found(results=tuple(run(shard, options)))

    def results(data: Mapping[str, Found], options: Options) -> list[Result]:
        return [result for shard in data.values() for result in shard.results]

    return Measurement(
        kind=Found, shards=shards, run=found, results=results, plan=plan, lacking=lacking
    )


def unless_installed(module: str, extra: str = "bench") -> str:
    """What to install where a peer's package is missing; '' where it is there."""
    try:
        import_module(module)
    except (ImportError, OSError):  # also one whose files are not all there
        return f"{module}: pip install 'sim2real[{extra}]'"
    return ""
