"""`sim2real bench attribute`: gaps planted in twins, and to which dimensions they are attributed.

Each planted world has some dimensions off, drawn from their priors, and the others right. It is
recorded with noise, moving by a multisine and doing its task with the bundled policy; the twin is
identified from that, and the error attributed. Which dimension is truly the largest is known by the
same shares computed with the planted values themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sim2real.attribute.attribution import Attribution
from sim2real.attribute.trajectory import attribute_trajectory
from sim2real.bench.config import BenchAttribute
from sim2real.bench.lost_success import bench_lost_success
from sim2real.bench.planted import HORIZON_S, believed, plant, planted_twin, recorded
from sim2real.bench.run import Report, Result
from sim2real.errors import Sim2RealError
from sim2real.gap.log import Log
from sim2real.policy import Bundle
from sim2real.twin import Twin

_REPLAYED = 20
"""Segments that errors are attributed on."""
_CLEARLY = 1.5
"""Largest true share against the next, from which it is clear which is largest."""
_VISIBLE = 0.25
"""Excess error a reading [variances of its noise] from which a gap is there to be attributed."""
_TRIES = 20
"""Plants that are drawn at most until one has a largest."""


@dataclass(frozen=True, kw_only=True)
class Planted:
    """A world whose gap is known, and its recordings."""

    twin: Twin
    """The twin as it was, before any identification."""
    values: np.ndarray
    """(parameters,) of the world."""
    off: tuple[str, ...]
    """Dimensions that differ."""
    right: tuple[str, ...]
    """Dimensions that do not."""
    logs: tuple[Log, ...]
    truth: Attribution
    """Shares with the planted values themselves."""
    drawn: int
    """Plants that were drawn until one was clear."""


def bench_attribute(config: BenchAttribute, report: Report) -> Iterator[Result]:
    """How often the largest planted dimension comes out largest, and a right one with zero."""
    hits: list[bool] = []
    covered: list[bool] = []
    misses: list[str] = []
    blamed: list[str] = []
    drawn = 0
    for number, name in enumerate(_tasks(config)):
        case = planted(name, config, seed=config.seed + number)
        found = attributed(case, seed=config.seed)
        drawn += case.drawn
        hits.append(found.top.name == case.truth.top.name)
        if not hits[-1]:
            misses.append(f"{name} {case.truth.top.name} as {found.top.name}")
        zeros = [share for share in found.shares if share.name in case.right]
        covered += [not share.clear for share in zeros]
        blamed += [f"{name} {s.name} [{s.low:.1f}, {s.high:.1f}] %" for s in zeros if s.clear]
        report(f"{number + 1} of {config.combinations}: {name}: {_told(case, found)}")
    combinations = (
        f"{sum(hits)} of {len(hits)} combinations, of {drawn} drawn, in which one dimension"
        f" is {_CLEARLY} times the next and the gap is seen"
    )
    yield Result(
        name="attribute.top1",
        value=float(np.mean(hits)),
        unit="share",
        target=">= 0.9",
        note=f"{combinations}; which is largest is known by shares with the planted values"
        + (f"; missed: {', '.join(misses)}" if misses else ""),
    )
    yield Result(
        name="attribute.zero_covered",
        value=float(np.mean(covered)),
        unit="share",
        target=">= 0.9",
        note=f"{sum(covered)} of {len(covered)} planted zeros within their 95 % intervals"
        + (f"; blamed: {', '.join(blamed)}" if blamed else ""),
    )
    if config.losses:
        yield from bench_lost_success(config, report)


def planted(task: str, config: BenchAttribute, *, seed: int) -> Planted:
    """A world with a gap of which one dimension is clearly the largest part, and its recordings."""
    bundle = Bundle.open(config.bundles / task)
    twin = Twin.load(bundle.twin, check=False)
    for attempt in range(_TRIES):
        rng = np.random.default_rng([seed, attempt])
        values, off, right = plant(twin, rng)
        logs = recorded(bundle, twin, values, seconds=config.seconds, seed=seed)
        known = planted_twin(twin, values)
        try:
            truth = attribute_trajectory(
                twin, known, logs, horizon_s=HORIZON_S, segments=_REPLAYED, draws=1
            )
        except Sim2RealError:  # too small a gap to be seen
            continue
        first, second = truth.shares[:2]
        if truth.before >= _VISIBLE and first.value >= _CLEARLY * max(second.value, 0.0):
            return Planted(
                twin=twin,
                values=values,
                off=off,
                right=right,
                logs=tuple(logs),
                truth=truth,
                drawn=attempt + 1,
            )
    raise Sim2RealError(f"no plant of {_TRIES} in twin {twin.name!r} has a largest dimension")


def attributed(case: Planted, *, seed: int) -> Attribution:
    """The shares after an identification that knows nothing of what was planted."""
    after = believed(case.twin, case.logs, seed=seed)
    return attribute_trajectory(
        case.twin, after, case.logs, horizon_s=HORIZON_S, segments=_REPLAYED, seed=seed
    )


def _tasks(config: BenchAttribute) -> list[str]:
    """The task of each combination: in turn, the first ones once more often."""
    return [config.tasks[k % len(config.tasks)] for k in range(config.combinations)]


def _told(case: Planted, found: Attribution) -> str:
    truth = {share.name: share.value for share in case.truth.shares}
    parts = [
        f"{share.name} {share.value:.0f} [{share.low:.0f}, {share.high:.0f}]"
        f" ({truth[share.name]:.0f})"
        for share in found.shares
    ]
    return ", ".join(parts)
