"""Every benchmark: what it measures, what it costs, and which modules its figures depend on."""

from __future__ import annotations

from benchmarks.benchmark import Benchmark
from sim2real.errors import Sim2RealError, nearest

BENCHMARKS = (
    Benchmark(
        name="shape",
        about="Shape of the package: front doors, imports, sizes, types",
        minutes=0.1,
        modules=("sim2real",),
    ),
)


def named(name: str) -> Benchmark:
    """A benchmark by its name; a `Sim2RealError` where there is none."""
    for benchmark in BENCHMARKS:
        if benchmark.name == name:
            return benchmark
    raise Sim2RealError(f"no benchmark {name!r}{nearest(name, [b.name for b in BENCHMARKS])}")
