"""How the time of a fit grows with the number of parameters and with the seconds of log."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from benchmarks.benchmark import Result, report
from benchmarks.identify.plan import Plan
from benchmarks.identify.sysid import shared_problem
from benchmarks.identify.sysid_peer import Shared
from sim2real.identification.most_probable import fit
from sim2real.replay.least_squares import LeastSquares

_HORIZON_S = 0.5
_PARAMETERS = (3, 6, 12, 24)
_SECONDS = (1.0, 2.0, 4.0, 8.0)
"""Times the benchmark's log is long, in quarters."""
_REPEATS = 2


def fit_time_s(shared: Shared, names: tuple[str, ...]) -> float:
    """Processor time of a whole fit of some parameters, worlds included [s]."""
    values = dict(zip([p.name for p in shared.twin.parameters], shared.truth, strict=True))
    # What is not fitted is known, so that every fit can succeed.
    known = tuple(
        p if p.name in names else replace(p, nominal=float(values[p.name]))
        for p in shared.twin.parameters
    )
    begin = time.process_time()
    problem = LeastSquares(replace(shared.twin, parameters=known), [shared.log], _HORIZON_S, names)
    fit(problem)
    return time.process_time() - begin


def exponent(sizes: list[float], times: list[float]) -> float:
    """Slope of log time against log size: 1 is linear growth."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def growth(plan: Plan) -> Iterator[Result]:
    """Exponents on the arm."""
    quarter = plan.seconds / 4
    times = []
    for count in _PARAMETERS:
        report(f"growth: {count} parameters")
        mine = []
        for seed in range(plan.seed, plan.seed + _REPEATS):
            shared = shared_problem("arm", seconds=2 * quarter, seed=seed)
            every = tuple(p.name for p in shared.twin.parameters)
            mine.append(fit_time_s(shared, every[:: len(every) // count][:count]))
        times.append(float(np.mean(mine)))
    yield _result("parameters", [float(n) for n in _PARAMETERS], times)
    times = []
    for length in _SECONDS:
        report(f"growth: {length * quarter:g} s")
        mine = []
        for seed in range(plan.seed, plan.seed + _REPEATS):
            shared = shared_problem("arm", seconds=length * quarter, seed=seed)
            every = tuple(p.name for p in shared.twin.parameters)
            mine.append(fit_time_s(shared, every[::4]))
        times.append(float(np.mean(mine)))
    yield _result("seconds", [length * quarter for length in _SECONDS], times)


def _result(what: str, sizes: list[float], times: list[float]) -> Result:
    pairs = ", ".join(f"{n:g}: {t:.2g} s" for n, t in zip(sizes, times, strict=True))
    return Result(
        name=f"identify.time_exponent.{what}",
        value=exponent(sizes, times),
        unit="exponent",
        target="<= 1.1",
        note=f"processor time of fits of the arm by {what}: {pairs}",
    )
